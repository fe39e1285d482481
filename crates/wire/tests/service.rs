//! A service behaves the same in the same process and across the network.

#![allow(clippy::unwrap_used)] // A panic is how a test fails.

use std::sync::Mutex;

use base::BoxFuture;
use bytes::Bytes;
use prost::Message;
use proto::exception::{Answer, JavaException, class};
use wire::service::{
    Caller, CellRequest, ClientService, RegionServerStatusService, Remote, dispatch_region_server_status,
    no_endpoint, refuse_client,
};

/// A master that knows one server and records its last error message.
#[derive(Default)]
struct OneServerMaster {
    last_words: Mutex<String>,
}

fn known() -> proto::ServerName {
    proto::ServerName { host_name: "h1".into(), port: Some(16020), start_code: Some(7) }
}

impl RegionServerStatusService for OneServerMaster {
    fn region_server_startup(
        &self,
        request: proto::RegionServerStartupRequest,
    ) -> BoxFuture<'_, Answer<proto::RegionServerStartupResponse>> {
        let seen = proto::NameStringPair { name: "port".into(), value: request.port.to_string() };
        Box::pin(async { Ok(proto::RegionServerStartupResponse { map_entries: vec![seen] }) })
    }

    fn region_server_report(
        &self,
        request: proto::RegionServerReportRequest,
    ) -> BoxFuture<'_, Answer<proto::RegionServerReportResponse>> {
        Box::pin(async move {
            if request.server == known() {
                Ok(proto::RegionServerReportResponse {})
            } else {
                Err(JavaException::new(class::YOU_ARE_DEAD, "unknown server"))
            }
        })
    }

    fn report_rs_fatal_error(
        &self,
        request: proto::ReportRsFatalErrorRequest,
    ) -> BoxFuture<'_, Answer<proto::ReportRsFatalErrorResponse>> {
        *self.last_words.lock().unwrap() = request.error_message;
        Box::pin(async { Ok(proto::ReportRsFatalErrorResponse {}) })
    }

    fn report_region_state_transition(
        &self,
        _: proto::ReportRegionStateTransitionRequest,
    ) -> BoxFuture<'_, Answer<proto::ReportRegionStateTransitionResponse>> {
        Box::pin(async { Err(JavaException::new(class::PLEASE_HOLD, "Master is initializing")) })
    }

    fn get_last_flushed_sequence_id(
        &self,
        _: proto::GetLastFlushedSequenceIdRequest,
    ) -> BoxFuture<'_, Answer<proto::GetLastFlushedSequenceIdResponse>> {
        Box::pin(std::future::ready(Ok(proto::GetLastFlushedSequenceIdResponse::default())))
    }

    fn report_procedure_done(
        &self,
        _: proto::ReportProcedureDoneRequest,
    ) -> BoxFuture<'_, Answer<proto::ReportProcedureDoneResponse>> {
        Box::pin(std::future::ready(Ok(proto::ReportProcedureDoneResponse::default())))
    }

    fn get_live_region_servers(
        &self,
        _: proto::GetLiveRegionServersRequest,
    ) -> BoxFuture<'_, Answer<proto::GetLiveRegionServersResponse>> {
        Box::pin(std::future::ready(Ok(proto::GetLiveRegionServersResponse::default())))
    }
}

/// A fake network: transfers exceptions and responses as bytes.
struct Wire(OneServerMaster);

impl Caller for Wire {
    fn call(
        &self,
        service: &'static str,
        method: &'static str,
        param: Bytes,
        cells: Bytes,
    ) -> BoxFuture<'_, Answer<(Bytes, Bytes)>> {
        assert_eq!(service, "RegionServerStatusService");
        assert!(cells.is_empty());
        let answer = dispatch_region_server_status(&self.0, method, param);
        Box::pin(async move {
            match answer.await {
                Ok(response) => Ok((response, Bytes::new())),
                Err(exception) => {
                    let bytes = proto::ExceptionResponse::from(&exception).encode_to_vec();
                    Err(JavaException::from_response(&proto::ExceptionResponse::decode(&bytes[..]).unwrap()))
                }
            }
        })
    }
}

async fn check(master: &dyn RegionServerStatusService) {
    let startup = proto::RegionServerStartupRequest { port: 16020, ..Default::default() };
    let response = master.region_server_startup(startup).await.unwrap();
    assert_eq!(response.map_entries[0].value, "16020");
    let report = |server| proto::RegionServerReportRequest { server, load: None };
    assert!(master.region_server_report(report(known())).await.is_ok());
    let error = master.region_server_report(report(proto::ServerName::default())).await.unwrap_err();
    assert_eq!(error, JavaException::new(class::YOU_ARE_DEAD, "unknown server"));
    let words = proto::ReportRsFatalErrorRequest { server: known(), error_message: "disk full".into() };
    master.report_rs_fatal_error(words).await.unwrap();
    let transition = proto::ReportRegionStateTransitionRequest::default();
    let early = master.report_region_state_transition(transition).await.unwrap_err();
    assert!(early.is(class::PLEASE_HOLD) && !early.do_not_retry);
}

#[tokio::test]
async fn a_service_is_the_same_locally_and_remotely() {
    let near = OneServerMaster::default();
    check(&near).await;
    let far = Remote(Wire(OneServerMaster::default()));
    check(&far).await;
    assert_eq!(*near.last_words.lock().unwrap(), "disk full");
    assert_eq!(*far.0.0.last_words.lock().unwrap(), "disk full");
}

#[tokio::test]
async fn unknown_methods_and_unreadable_messages_are_refused() {
    let master = OneServerMaster::default();
    let call = |method, param: &'static [u8]| {
        dispatch_region_server_status(&master, method, Bytes::from_static(param))
    };
    for (method, param) in [
        ("ReportRegionSpaceUse", &b""[..]),
        ("NoSuchMethod", b""),
        ("regionServerReport", b""),
        ("RegionServerReport", b"\x0a\xff\xff"),
    ] {
        let exception = call(method, param).await.unwrap_err();
        assert!(exception.is(class::DO_NOT_RETRY_IO) && exception.message.contains(method), "{exception}");
    }
}

/// Returns the cells that it receives.
struct Echo;

impl Caller for Echo {
    fn call(
        &self,
        _: &'static str,
        _: &'static str,
        _: Bytes,
        cells: Bytes,
    ) -> BoxFuture<'_, Answer<(Bytes, Bytes)>> {
        Box::pin(async { Ok((Bytes::new(), cells)) })
    }
}

#[tokio::test]
async fn cell_blocks_are_passed_on() {
    let request =
        CellRequest { message: proto::MultiRequest::default(), cells: Bytes::from_static(b"cells") };
    let reply = Remote(Echo).multi(request).await.unwrap();
    assert_eq!(reply.cells, "cells");
}

#[test]
fn unknown_endpoints_have_the_exception_of_hbase() {
    let exception = no_endpoint("AggregateService", b"t,,1.ab.");
    assert!(exception.is(class::UNKNOWN_PROTOCOL));
    assert_eq!(
        exception.message,
        "No registered coprocessor service found for AggregateService in region t,,1.ab."
    );
    let request = proto::CoprocessorServiceRequest {
        call: proto::CoprocessorServiceCall { service_name: "AggregateService".into(), ..Default::default() },
        ..Default::default()
    };
    let exception = refuse_client("ExecRegionServerService", &request.encode_to_vec().into());
    assert_eq!(exception.message, "No registered coprocessor service found for AggregateService");
    assert!(refuse_client("NoSuchMethod", &Bytes::new()).message.contains("NoSuchMethod"));
}
