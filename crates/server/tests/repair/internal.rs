//! Calls between master and region server are rejected when a client sends them, and change
//! nothing.

use std::time::Duration;

use base::testing;
use cell::region::{RegionInfo, ServerName};
use cell::schema::TableName;
use client::connections::OutgoingCall;
use client::{Client, ClientOptions, Connections, Error, Registry};
use prost::Message;
use proto::exception::class;
use proto::region_state_transition::TransitionCode;

use crate::common::{PORTS, Server, TempDir};
use crate::directory::{rows, shell};
use crate::network;

const CALL_WITHIN: Duration = Duration::from_secs(10);

/// A client that calls a server's ports.
struct PortClient {
    connections: Connections,
    offset: u16,
}

impl PortClient {
    /// Checks that the call is rejected as internal.
    async fn refused<M: Message>(&self, service: &'static str, method: &'static str, message: &M) {
        let port = if service == "AdminService" { PORTS[3] } else { PORTS[1] };
        let call = OutgoingCall::new(service, method, message);
        let answer = self.connections.call("127.0.0.1", port + self.offset, call).await;
        let answer: Result<(proto::EmptyMsg, _), Error> = answer;
        match answer {
            Err(Error::Remote(exception)) => {
                assert!(exception.is(class::ACCESS_DENIED), "{service}.{method}: {exception}");
            }
            Err(error) => panic!("{service}.{method}: {error}"),
            Ok(_) => panic!("{service}.{method} is accepted"),
        }
    }
}

#[test]
fn clients_cannot_make_internal_calls() {
    let dir = TempDir::new();
    let server = Server::start(&dir.join("data"));
    shell(&server, "create 't', 'f', SPLITS => ['m']; put 't', 'a', 'f:q', '1'; put 't', 'z', 'f:q', '2'");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(call_all(&server));
    assert_eq!(rows(&server, "t"), ["a=1", "z=2"]);
    shell(&server, "put 't', 'b', 'f:q', '3'; split 't', 'c'; create 'u', 'f'");
    assert_eq!(server.stop().code(), Some(0));
}

async fn call_all(server: &Server) {
    let env = network::env(1);
    let registry = Registry::zookeeper(&server.zookeeper(), "/hbase");
    let client = Client::new(env.clone(), registry, ClientOptions::default());
    let table = TableName::parse("t").unwrap();
    let region = client.admin().regions(&table).await.unwrap()[0].clone();
    let status = client.admin().cluster_status().await.unwrap();
    let living = status.servers[0].server.clone();
    let unknown = ServerName { host: "elsewhere".into(), port: 16020, start_code: 1 };
    let client =
        PortClient { connections: Connections::new(env, "stranger", CALL_WITHIN), offset: server.offset };
    for name in [&living, &unknown] {
        of_region_server(&client, name, &region).await;
    }
    of_master(&client, &living, &region).await;
}

/// Calls that a region server sends to the master.
async fn of_region_server(client: &PortClient, name: &ServerName, region: &RegionInfo) {
    let service = "RegionServerStatusService";
    let startup = proto::RegionServerStartupRequest {
        port: name.port.into(),
        server_start_code: name.start_code,
        server_current_time: testing::env(1).clock.now_ms(),
        use_this_hostname_instead: Some(name.host.clone()),
    };
    client.refused(service, "RegionServerStartup", &startup).await;
    let load = proto::RegionServerReportRequest { server: name.into(), load: None };
    client.refused(service, "RegionServerReport", &load).await;
    let fatal = proto::ReportRsFatalErrorRequest { server: name.into(), error_message: "x".into() };
    client.refused(service, "ReportRSFatalError", &fatal).await;
    for code in [TransitionCode::Opened, TransitionCode::Closed, TransitionCode::ReadyToSplit] {
        let transition = proto::RegionStateTransition {
            transition_code: code as i32,
            region_info: vec![region.into()],
            open_seq_num: Some(1),
            ..proto::RegionStateTransition::default()
        };
        let report =
            proto::ReportRegionStateTransitionRequest { server: name.into(), transition: vec![transition] };
        client.refused(service, "ReportRegionStateTransition", &report).await;
    }
}

/// Calls that the master sends to a region server.
async fn of_master(client: &PortClient, living: &ServerName, region: &RegionInfo) {
    let service = "AdminService";
    let close = proto::CloseRegionRequest {
        region: wire::convert::region_specifier(region),
        server_start_code: Some(living.start_code),
        ..proto::CloseRegionRequest::default()
    };
    client.refused(service, "CloseRegion", &close).await;
    let open_info = proto::open_region_request::RegionOpenInfo {
        region: region.into(),
        ..proto::open_region_request::RegionOpenInfo::default()
    };
    let open = proto::OpenRegionRequest { open_info: vec![open_info], ..proto::OpenRegionRequest::default() };
    client.refused(service, "OpenRegion", &open).await;
    let warmup = proto::WarmupRegionRequest { region_info: region.into() };
    client.refused(service, "WarmupRegion", &warmup).await;
    let execute = proto::ExecuteProceduresRequest {
        close_region: vec![close],
        ..proto::ExecuteProceduresRequest::default()
    };
    client.refused(service, "ExecuteProcedures", &execute).await;
}
