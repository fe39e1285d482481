//! A region server with one region, on a disk that can be made slow or faulty, and a connection to it.
#![allow(dead_code, reason = "no test uses all of it")]

pub mod cells;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use base::BoxFuture;
use base::env::Env;
use bytes::{BufMut, Bytes, BytesMut};
use cell::region::{RegionInfo, ServerName};
use cell::schema::{FamilyDescriptor, TableDescriptor, TableName};
use cell::{CellType, KeyValue, LATEST_TIMESTAMP};
use engine::region::RegionOptions;
use fs::faulty::{Fault, Faulty, Operation, Plan, Rule};
use fs::memory::MemoryFs;
use fs::{FilePath, FileSystem};
use layout::RootDir;
use prost::Message;
use regionserver::schedule::compactions::CompactionOptions;
use regionserver::slow_log::{SlowCall, SlowCalls, SlowLogOptions};
use regionserver::{Admin, ClientRpc, RegionServer, RegionServerOptions, RegionServerParts};
use rpc::client::{ConnectOptions, Connection, Request};
use rpc::{CellBlock, Method, ServerOptions};
use wire::exception::Answer;
use wire::service::{AdminService, RegionServerStatusService};

pub const SECOND: Duration = Duration::from_secs(1);

/// A master that takes note of everything.
struct Agreeable;

impl RegionServerStatusService for Agreeable {
    fn region_server_startup(
        &self,
        _: proto::RegionServerStartupRequest,
    ) -> BoxFuture<'_, Answer<proto::RegionServerStartupResponse>> {
        Box::pin(std::future::ready(Ok(proto::RegionServerStartupResponse::default())))
    }

    fn region_server_report(
        &self,
        _: proto::RegionServerReportRequest,
    ) -> BoxFuture<'_, Answer<proto::RegionServerReportResponse>> {
        Box::pin(std::future::ready(Ok(proto::RegionServerReportResponse::default())))
    }

    fn report_rs_fatal_error(
        &self,
        _: proto::ReportRsFatalErrorRequest,
    ) -> BoxFuture<'_, Answer<proto::ReportRsFatalErrorResponse>> {
        Box::pin(std::future::ready(Ok(proto::ReportRsFatalErrorResponse::default())))
    }

    fn report_region_state_transition(
        &self,
        _: proto::ReportRegionStateTransitionRequest,
    ) -> BoxFuture<'_, Answer<proto::ReportRegionStateTransitionResponse>> {
        Box::pin(std::future::ready(Ok(proto::ReportRegionStateTransitionResponse::default())))
    }
}

pub struct World {
    pub env: Env,
    pub server: Arc<RegionServer>,
    connection: Connection,
    pub region: proto::RegionSpecifier,
    pub faulty: Faulty,
    pub disk: MemoryFs,
    region_id: u64,
}

/// Each server has a name of its own.
fn next_start_code() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

fn options() -> RegionServerOptions {
    RegionServerOptions {
        region: RegionOptions::default(),
        compaction: CompactionOptions::default(),
        memory_bytes: 64 << 20,
        memstore_bytes: 16 << 20,
        memstore_low_mark: 0.95,
        cache_bytes: 1 << 20,
        on_damage: Default::default(),
        log_roll_bytes: 64 << 20,
        log_roll_period: Duration::from_secs(3600),
        logs_max: 32,
        flush_period: Duration::from_secs(3600),
        scanner_lease: Duration::from_secs(60),
        scanners_max: 100,
        scanner_bytes_max: 1 << 20,
        result_bytes_max: 100 << 20,
        batch_rows_warning: 5000,
        minibatch_changes: 20_000,
        rejects_large_batches: false,
        nonce_grace: Duration::from_secs(1800),
        quotas: None,
        unit_bytes: (1024, 1024),
        hotspots_period: Duration::from_secs(10),
        times_users: true,
        slow_log: SlowLogOptions {
            slow: Some(SECOND / 2),
            slow_scan: Some(SECOND / 2),
            large_bytes: None,
            large_scan_bytes: None,
            kept: 2,
        },
        regions_max: 1000,
    }
}

impl World {
    /// A server with one region, and a connection to it.
    pub async fn begin() -> World {
        World::with_family(FamilyDescriptor::new("f")).await
    }

    /// The same with a region of another family.
    pub async fn with_family(family: FamilyDescriptor) -> World {
        World::on(MemoryFs::new(), family).await
    }

    /// A server on what another one left on its disk.
    pub async fn on(disk: MemoryFs, family: FamilyDescriptor) -> World {
        World::with_region(disk, family, 1).await
    }

    /// The same with a region that was made at another time.
    pub async fn with_region(disk: MemoryFs, family: FamilyDescriptor, region_id: u64) -> World {
        let start_code = next_start_code();
        // Names of files must differ from those that another server gave.
        let env = base::testing::env(start_code);
        let faulty = Faulty::new(Arc::new(disk.clone()), Plan::new(env.clock.clone()));
        let fs: Arc<dyn FileSystem> = Arc::new(faulty.clone());
        let root = RootDir::new(FilePath::root());
        root.open_or_create(&*fs, &*env.random).await.unwrap();
        let name = TableName::parse("t").unwrap();
        let info = RegionInfo::new(name.clone(), "".into(), "".into(), region_id);
        let table = TableDescriptor::new(name).with_family(family);
        root.write_table_descriptor(&*fs, &table).await.unwrap();
        root.write_region_info(&*fs, &info).await.unwrap();
        let shared = rpc::server::Shared::new(&ServerOptions::default());
        let server = RegionServer::start(RegionServerParts {
            env: env.clone(),
            fs,
            disk: regionserver::Disk::default(),
            root,
            name: ServerName { host: "host".into(), port: 16020, start_code },
            info_port: 16030,
            options: options(),
            answers: shared.answers().clone(),
            on_fatal: Arc::new(|why| panic!("{why}")),
            on_stop: Arc::new(|_| ()),
        })
        .await
        .unwrap();
        server.join(Arc::new(Agreeable)).await.unwrap();
        let open =
            proto::open_region_request::RegionOpenInfo { region: (&info).into(), ..Default::default() };
        let request = proto::OpenRegionRequest { open_info: vec![open], ..Default::default() };
        Admin(server.clone()).open_region(request).await.unwrap();
        while server.regions().is_empty() {
            env.clock.sleep(SECOND / 100).await;
        }
        let connection = connect(&env, &server).await;
        let region = proto::RegionSpecifier { r#type: 1, value: info.name() };
        World { env, server, connection, region, faulty, disk, region_id }
    }

    /// Another server on what survives of the disk when this one loses its power.
    pub async fn after_power_loss(&self, family: FamilyDescriptor) -> World {
        World::with_region(self.disk.crash(&mut || 0), family, self.region_id).await
    }

    /// The region.
    pub fn served(&self) -> Arc<engine::Region> {
        self.server.regions().all().swap_remove(0)
    }

    /// Makes a call as a connection with `codec` does.
    pub async fn call_by(
        &self,
        codec: rpc::Codec,
        method: &'static str,
        message: &impl Message,
        cells: Bytes,
    ) -> Result<rpc::Reply, rpc::Failure> {
        let address = ([127, 0, 0, 1], 16020).into();
        let connection = rpc::ConnectionInfo {
            peer: address,
            local: address,
            service: "ClientService",
            user: Some("me".into()),
            version: Some(rpc::ClientVersion { major: 2, minor: 5, text: "2.5.10".into() }),
            codec: Some(codec),
            compressor: None,
            presence: rpc::Presence::default(),
        };
        let call = rpc::Call {
            method: Method::of_static(method),
            param: message.encode_to_vec().into(),
            cells,
            connection: Arc::new(connection),
            trace_info: Bytes::new(),
            priority: 0,
            received: Duration::ZERO,
            deadline: None,
            begun: Duration::ZERO,
        };
        rpc::Service::call(&ClientRpc::new(self.server.clone()), call).await
    }

    async fn call(
        &self,
        method: &'static str,
        message: &impl Message,
        cells: BytesMut,
    ) -> rpc::client::Answer {
        self.call_raw(method, message.encode_to_vec().into(), cells).await
    }

    pub async fn call_raw(&self, method: &'static str, param: Bytes, cells: BytesMut) -> rpc::client::Answer {
        let request = Request {
            method: Method::of_static(method),
            param,
            cells: CellBlock::from(cells.freeze()),
            timeout: 60 * SECOND,
            priority: 0,
        };
        self.connection.call(request).await.unwrap()
    }

    pub async fn put(&self, row: &'static str) {
        let cell = KeyValue::new(row.as_bytes(), b"f", b"q", LATEST_TIMESTAMP, CellType::Put, b"v");
        let mut cells = BytesMut::new();
        cells.put_u32(cell.bytes().len() as u32);
        cells.put_slice(cell.bytes());
        let mutation = proto::MutationProto {
            row: Some(row.into()),
            mutate_type: Some(proto::mutation_proto::MutationType::Put.into()),
            associated_cell_count: Some(1),
            ..Default::default()
        };
        let request = proto::MutateRequest { region: self.region.clone(), mutation, ..Default::default() };
        self.call("Mutate", &request, cells).await;
    }

    pub async fn get(&self, row: &'static str) {
        let get = proto::Get { row: row.into(), ..Default::default() };
        let request = proto::GetRequest { region: self.region.clone(), get };
        assert!(!self.call("Get", &request, BytesMut::new()).await.cells.is_empty(), "the row is there");
    }

    pub async fn scan(&self) {
        let request = proto::ScanRequest {
            region: Some(self.region.clone()),
            scan: Some(proto::Scan::default()),
            number_of_rows: Some(100),
            ..Default::default()
        };
        self.call("Scan", &request, BytesMut::new()).await;
    }

    pub fn slow_calls(&self) -> Vec<Arc<SlowCall>> {
        self.server.slow_log().newest_first()
    }

    pub fn delay(&self, operation: Operation, by: Duration) {
        self.faulty.add(Rule::new(Fault::Delay(by)).on(operation));
    }
}

async fn connect(env: &Env, server: &Arc<RegionServer>) -> Connection {
    let watch = server.options().slow_log.watch(Arc::new(SlowCalls(server.clone())));
    let options = ServerOptions { watch: Some(watch), ..ServerOptions::default() };
    let rpc = rpc::Server::new(env.clone(), vec![Arc::new(ClientRpc::new(server.clone()))], options, None);
    let listener = env.net.listen(([127, 0, 0, 1], 16020).into()).await.unwrap();
    rpc.serve(listener);
    // It serves as long as it is there.
    static SERVERS: OnceLock<std::sync::Mutex<Vec<Arc<rpc::Server>>>> = OnceLock::new();
    SERVERS.get_or_init(Default::default).lock().unwrap().push(rpc);
    Connection::connect(env, "host", 16020, "ClientService", &ConnectOptions::for_user("me")).await.unwrap()
}

/// Runs `test` on a runtime whose time passes only when all wait.
pub fn run(test: impl Future<Output = ()>) {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().start_paused(true).build().unwrap().block_on(test);
}
