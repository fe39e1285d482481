//! A region server with one region, on a disk that can be slow or faulty, and a connection to it.

pub mod cells;

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use base::BoxFuture;
use base::env::{Clock, Env};
use bytes::{BufMut, Bytes, BytesMut};
use cell::region::{RegionInfo, ServerName};
use cell::schema::{FamilyDescriptor, TableDescriptor, TableName};
use cell::{CellType, KeyValue, LATEST_TIMESTAMP};
use engine::recovery::other_servers_log_dirs;
use engine::region::RegionOptions;
use fs::faulty::{Fault, Faulty, Operation, Plan, Rule};
use fs::memory::MemoryFs;
use fs::{FilePath, FileSystem};
use layout::RootDir;
use prost::Message;
use proto::exception::{Answer, JavaException, class};
use regionserver::schedule::compactions::CompactionOptions;
use regionserver::slow_calls::SlowCalls;
use regionserver::slow_log::{SlowCall, SlowLogOptions};
use regionserver::{Admin, ClientRpc, Disk, RegionServer, RegionServerOptions, RegionServerParts};
use rpc::client::{ConnectOptions, Connection, Request};
use rpc::{CellBlock, Method, ServerOptions};
use wire::service::{AdminService, Caller, RegionServerStatusService};

pub const SECOND: Duration = Duration::from_secs(1);

/// A master that accepts every report, except of a server that it counts as dead.
pub struct AcceptingMaster {
    clock: Arc<dyn Clock>,
    is_dead: Arc<AtomicBool>,
    /// How long each of the next registrations takes. Then the master rejects it, because it
    /// compares its clock with the time in the request.
    pub late_startups: Mutex<Vec<Duration>>,
    pub startups: AtomicUsize,
    region_reports: Arc<RegionReports>,
}

/// The reports about opened and closed regions.
#[derive(Default)]
pub struct RegionReports {
    /// How many of the next reports the master rejects.
    pub rejected: AtomicUsize,
    /// When they came.
    pub times: Mutex<Vec<Duration>>,
}

impl AcceptingMaster {
    pub fn new(env: &Env) -> AcceptingMaster {
        AcceptingMaster {
            clock: env.clock.clone(),
            is_dead: Arc::default(),
            late_startups: Mutex::default(),
            startups: AtomicUsize::new(0),
            region_reports: Arc::default(),
        }
    }
}

impl RegionServerStatusService for AcceptingMaster {
    fn region_server_startup(
        &self,
        _: proto::RegionServerStartupRequest,
    ) -> BoxFuture<'_, Answer<proto::RegionServerStartupResponse>> {
        self.startups.fetch_add(1, Ordering::Relaxed);
        let late = self.late_startups.lock().unwrap().pop();
        Box::pin(async move {
            let Some(duration) = late else { return Ok(proto::RegionServerStartupResponse::default()) };
            self.clock.sleep(duration).await;
            Err(JavaException::new(class::CLOCK_OUT_OF_SYNC, "the time in the request is wrong"))
        })
    }

    fn region_server_report(
        &self,
        _: proto::RegionServerReportRequest,
    ) -> BoxFuture<'_, Answer<proto::RegionServerReportResponse>> {
        let answer = match self.is_dead.load(Ordering::Relaxed) {
            true => Err(JavaException::new(class::YOU_ARE_DEAD, "dead")),
            false => Ok(proto::RegionServerReportResponse::default()),
        };
        Box::pin(std::future::ready(answer))
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
        let reports = &self.region_reports;
        reports.times.lock().unwrap().push(self.clock.monotonic());
        let rejected = reports.rejected.load(Ordering::Relaxed);
        reports.rejected.store(rejected.saturating_sub(1), Ordering::Relaxed);
        let answer = match rejected {
            0 => Ok(proto::ReportRegionStateTransitionResponse::default()),
            _ => Err(JavaException::io("the master loads hbase:meta")),
        };
        Box::pin(std::future::ready(answer))
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

pub struct World {
    pub env: Env,
    pub server: Arc<RegionServer>,
    connection: Connection,
    pub region: proto::RegionSpecifier,
    pub faulty: Faulty,
    pub disk: MemoryFs,
    region_id: u64,
    /// Whether the master counts the server as dead.
    pub is_dead: Arc<AtomicBool>,
    pub region_reports: Arc<RegionReports>,
}

/// Returns a different start code, and thus server name, for each server.
fn next_start_code() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

fn options() -> RegionServerOptions {
    RegionServerOptions {
        region: RegionOptions::default(),
        compaction: CompactionOptions::default(),
        memory_bytes: 64 << 20,
        resident_bytes: || None,
        memstore_bytes: 16 << 20,
        memstore_low_mark: 0.5,
        cache_bytes: 1 << 20,
        on_damage: Default::default(),
        log_durability: fs::SyncLevel::Disk,
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
        measures_user_latencies: true,
        slow_log: SlowLogOptions {
            slow: Some(SECOND / 2),
            slow_scan: Some(SECOND / 2),
            large_bytes: None,
            large_scan_bytes: None,
            calls_max: 2,
        },
        regions_max: 1000,
    }
}

/// The name of the server that starts at `start_code`.
pub fn server_name(start_code: u64) -> ServerName {
    ServerName { host: "host".into(), port: 16020, start_code }
}

/// Starts a server that takes over the logs in `dead_log_dirs`. It has no regions yet.
pub async fn start_server(
    env: &Env,
    fs: Arc<dyn FileSystem>,
    name: ServerName,
    dead_log_dirs: Vec<FilePath>,
) -> Arc<RegionServer> {
    start_server_with(env, fs, Disk::default(), name, dead_log_dirs).await
}

async fn start_server_with(
    env: &Env,
    fs: Arc<dyn FileSystem>,
    disk: Disk,
    name: ServerName,
    dead_log_dirs: Vec<FilePath>,
) -> Arc<RegionServer> {
    let root = RootDir::new(FilePath::root());
    let started = RegionServer::start(RegionServerParts {
        env: env.clone(),
        fs,
        disk,
        root: root.clone(),
        name,
        dead_log_dirs,
        dead_log_records: root.log_records().to_vec(),
        log_records: root.log_records(),
        lease: regionserver::Lease::unlimited(),
        quota_reader: None,
        second_level_cache: None,
        cluster_id: "cluster".into(),
        foreign_files: Arc::new(regionserver::NoForeignFiles),
        cluster_writer: None,
        file_moves: None,
        info_port: 16030,
        options: options(),
        response_budget: rpc::server::Shared::new(&ServerOptions::default()).response_budget().clone(),
        on_fatal: Arc::new(|why| panic!("{why}")),
        on_stop: Arc::new(|_| ()),
    });
    started.await.unwrap()
}

impl World {
    /// A server with one region, and a connection to it.
    pub async fn begin() -> World {
        World::with_family(FamilyDescriptor::new("f")).await
    }

    /// The same with this disk.
    pub async fn with_disk(disk: Disk) -> World {
        World::start(MemoryFs::new(), FamilyDescriptor::new("f"), 1, disk).await
    }

    /// The same with the given family.
    pub async fn with_family(family: FamilyDescriptor) -> World {
        World::on(MemoryFs::new(), family).await
    }

    /// A server on the disk of an earlier one.
    pub async fn on(disk: MemoryFs, family: FamilyDescriptor) -> World {
        World::with_region(disk, family, 1).await
    }

    /// The same with the given region id.
    pub async fn with_region(disk: MemoryFs, family: FamilyDescriptor, region_id: u64) -> World {
        World::start(disk, family, region_id, Disk::default()).await
    }

    async fn start(disk: MemoryFs, family: FamilyDescriptor, region_id: u64, watched: Disk) -> World {
        let start_code = next_start_code();
        // A seed per server, because its file names must differ from those of earlier servers.
        let env = base::testing::env(start_code);
        let faulty = Faulty::new(Arc::new(disk.clone()), Plan::new(env.clock.clone()));
        let fs: Arc<dyn FileSystem> = Arc::new(faulty.clone());
        let root = RootDir::new(FilePath::root());
        root.open_or_create(&*fs, &*env.random).await.unwrap();
        let name = TableName::parse("t").unwrap();
        let info = RegionInfo::new(name.clone(), "".into(), "".into(), region_id);
        let table = TableDescriptor::new(name).with_family(family);
        root.write_table_descriptor(&*fs, &table).await.unwrap();
        let own_name = server_name(start_code);
        let dead_log_dirs = other_servers_log_dirs(&*fs, &root, &own_name).await.unwrap();
        let server = start_server_with(&env, fs, watched, own_name, dead_log_dirs).await;
        let master = AcceptingMaster::new(&env);
        let (is_dead, region_reports) = (master.is_dead.clone(), master.region_reports.clone());
        server.register(Arc::new(master)).await.unwrap();
        let connection = connect(&env, &server).await;
        let region = proto::RegionSpecifier { r#type: 1, value: info.name() };
        let world =
            World { env, server, connection, region, faulty, disk, region_id, is_dead, region_reports };
        world.open(&info).await;
        world
    }

    /// Opens a region of the table. Returns its specifier.
    pub async fn open(&self, info: &RegionInfo) -> proto::RegionSpecifier {
        let fs: &dyn FileSystem = &self.faulty;
        RootDir::new(FilePath::root()).write_region_info(fs, info).await.unwrap();
        let count = self.server.regions().all().len();
        let open = proto::open_region_request::RegionOpenInfo { region: info.into(), ..Default::default() };
        let request = proto::OpenRegionRequest { open_info: vec![open], ..Default::default() };
        Admin(self.server.clone()).open_region(request).await.unwrap();
        while self.server.regions().all().len() == count {
            self.env.clock.sleep(SECOND / 100).await;
        }
        proto::RegionSpecifier { r#type: 1, value: info.name() }
    }

    /// Another server on the part of the disk that survives a power loss now.
    pub async fn after_power_loss(&self, family: FamilyDescriptor) -> World {
        World::with_region(self.disk.crash(&mut || 0), family, self.region_id).await
    }

    /// The engine's region.
    pub fn served(&self) -> Arc<engine::Region> {
        self.server.regions().all().swap_remove(0)
    }

    /// Makes a call as a connection with `codec` does, without the network.
    pub async fn call_by(
        &self,
        codec: rpc::Codec,
        method: &'static str,
        message: &impl Message,
        cells: Bytes,
    ) -> Result<rpc::Reply, JavaException> {
        let address = ([127, 0, 0, 1], 16020).into();
        let connection = rpc::ConnectionInfo {
            peer: address,
            local: address,
            service: "ClientService",
            claimed_user: Some("me".into()),
            principal: None,
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

    /// The caller of another server, over the network.
    pub fn remote_caller(&self) -> RemoteCaller {
        RemoteCaller(self.connection.clone())
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
        assert!(!self.call("Get", &request, BytesMut::new()).await.cells.is_empty(), "the row exists");
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

/// Calls the service of a server over the network, as another server would.
pub struct RemoteCaller(Connection);

impl Caller for RemoteCaller {
    fn call(
        &self,
        _: &'static str,
        method: &'static str,
        param: Bytes,
        cells: Bytes,
    ) -> BoxFuture<'_, Answer<(Bytes, Bytes)>> {
        let request = Request {
            method: Method::of_static(method),
            param,
            cells: CellBlock::from(cells),
            timeout: 60 * SECOND,
            priority: 0,
        };
        Box::pin(async move {
            match self.0.call(request).await {
                Ok(answer) => Ok((answer.message, answer.cells)),
                Err(rpc::client::Error::Remote(remote)) => Err(JavaException {
                    class: remote.class.clone().into(),
                    message: remote.stack_trace.clone(),
                    do_not_retry: remote.do_not_retry,
                    location: remote.location.clone(),
                    server_overloaded: remote.server_overloaded,
                }),
                Err(error) => panic!("the call was lost: {error:?}"),
            }
        })
    }
}

async fn connect(env: &Env, server: &Arc<RegionServer>) -> Connection {
    let watch = server.options().slow_log.watch(Arc::new(SlowCalls(server.clone())));
    let options = ServerOptions { watch: Some(watch), ..ServerOptions::default() };
    let rpc = rpc::Server::new(env.clone(), vec![Arc::new(ClientRpc::new(server.clone()))], options, None);
    let listener = env.net.listen(([127, 0, 0, 1], 16020).into()).await.unwrap();
    rpc.serve(listener);
    // A server serves only until it is dropped.
    static SERVERS: OnceLock<Mutex<Vec<Arc<rpc::Server>>>> = OnceLock::new();
    SERVERS.get_or_init(Default::default).lock().unwrap().push(rpc);
    Connection::connect(env, "host", 16020, "ClientService", &ConnectOptions::for_user("me")).await.unwrap()
}

/// Runs `test` on a runtime whose clock advances only while all tasks wait.
pub fn run(test: impl Future<Output = ()>) {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().start_paused(true).build().unwrap().block_on(test);
}
