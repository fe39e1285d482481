//! A master and a region server on one file system. They call each other and are called without
//! sockets.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use base::BoxFuture;
use base::env::Env;
use bytes::Bytes;
use cell::mutation::Mutation;
use cell::query::Scan;
use cell::region::{RegionInfo, ServerName};
use cell::schema::TableName;
use cell::{CellType, KeyValue, LATEST_TIMESTAMP};
use engine::Region;
use engine::recovery::other_servers_log_dirs;
use fs::FileSystem;
use layout::RootDir;
use master::chores::ChoreOptions;
use master::procedure::journal::Journal;
use master::store::MasterStore;
use master::{Connections, Master, MasterParts};
use proto::exception::{Answer, JavaClass, JavaException, class};
use proto::get_procedure_result_response::State;
use regionserver::{Admin, Lease, LocalCaller, RegionServer, RegionServerOptions, RegionServerParts};
use wire::service::{
    AdminService, Caller, ClientService, MasterService, RegionServerStatusService, Remote, dispatch_admin,
    dispatch_region_server_status,
};
use zk::memory::MemoryCoordinator;
use zk::names::Names;

/// Time on the test's clock in which every procedure must end.
const PROCEDURE_TIMEOUT: Duration = Duration::from_secs(60);
/// The pause between two polls.
const POLL_PAUSE: Duration = Duration::from_millis(5);

/// The services of a region server.
type Services = (Arc<dyn AdminService>, Arc<dyn ClientService>);

/// Returns the services of the added server of the requested name; for all other names those of the
/// first server.
#[derive(Default)]
struct Direct {
    first: OnceLock<Services>,
    first_server: OnceLock<Arc<RegionServer>>,
    added: Mutex<HashMap<ServerName, Services>>,
}

impl Direct {
    fn services(&self, server: &ServerName) -> Services {
        let added = self.added.lock().unwrap();
        added.get(server).unwrap_or_else(|| self.first.get().unwrap()).clone()
    }
}

/// The master to which a region server reports.
pub type ActiveMaster = Mutex<Arc<Master>>;

/// Calls a service of the other role with encoded messages, as over a network.
enum Encoded {
    Admin(Arc<Admin>),
    Status(Arc<ActiveMaster>),
}

impl Caller for Encoded {
    fn call(
        &self,
        service: &'static str,
        method: &'static str,
        param: Bytes,
        cells: Bytes,
    ) -> base::BoxFuture<'_, Answer<(Bytes, Bytes)>> {
        assert!(cells.is_empty(), "{service} takes no cells");
        Box::pin(async move {
            let answer = match self {
                Encoded::Admin(admin) => dispatch_admin(&**admin, method, param).await,
                Encoded::Status(active) => {
                    let master = active.lock().unwrap().clone();
                    dispatch_region_server_status(&*master, method, param).await
                }
            };
            answer.map(|response| (response, Bytes::new()))
        })
    }
}

/// Calls a region server, if the master can reach it.
struct Interruptible {
    server: Encoded,
    is_reachable: Arc<AtomicBool>,
    /// The exception of a call while it is not reachable.
    otherwise: JavaClass,
}

impl Caller for Interruptible {
    fn call(
        &self,
        service: &'static str,
        method: &'static str,
        param: Bytes,
        cells: Bytes,
    ) -> BoxFuture<'_, Answer<(Bytes, Bytes)>> {
        if self.is_reachable.load(Ordering::Relaxed) {
            return self.server.call(service, method, param, cells);
        }
        let unreachable = JavaException::new(self.otherwise, "not reachable");
        Box::pin(std::future::ready(Err(unreachable)))
    }
}

/// A server that receives calls and does not answer.
struct Silent;

impl Caller for Silent {
    fn call(
        &self,
        _: &'static str,
        _: &'static str,
        _: Bytes,
        _: Bytes,
    ) -> BoxFuture<'_, Answer<(Bytes, Bytes)>> {
        Box::pin(std::future::pending())
    }
}

impl Connections for Direct {
    fn admin(&self, server: &ServerName) -> Arc<dyn AdminService> {
        self.services(server).0
    }

    fn client(&self, server: &ServerName) -> Arc<dyn ClientService> {
        self.services(server).1
    }

    fn discard_old_edits<'a>(&'a self, regions: &'a [RegionInfo]) -> BoxFuture<'a, Answer<()>> {
        Box::pin(async move { self.first_server.get().unwrap().discard_old_edits(regions).await })
    }
}

/// How the two roles call each other.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Calls {
    /// By method calls, as in one process.
    Direct,
    /// With encoded messages, as between processes.
    Encoded,
}

/// A master and its region server.
pub struct Cluster {
    pub env: Env,
    pub master: Arc<Master>,
    pub server: Arc<RegionServer>,
    pub root: RootDir,
    pub fs: Arc<dyn FileSystem>,
    pub coordinator: Arc<MemoryCoordinator>,
    store: MasterStore,
    connections: Arc<Direct>,
}

/// How a cluster starts.
#[derive(Clone, Copy, Default)]
struct StartOptions {
    /// Whether quotas are enabled.
    has_quotas: bool,
    /// Whether region servers count as other processes, so that dead ones are recovered.
    has_processes: bool,
}

impl Cluster {
    /// Starts a cluster on the contents of a file system. Returns the error as text.
    pub async fn start(env: &Env, fs: Arc<dyn FileSystem>) -> Result<Cluster, String> {
        Cluster::start_as(env, fs, StartOptions::default()).await
    }

    /// The same with `hbase.quota.enabled`.
    pub async fn start_with_quotas(env: &Env, fs: Arc<dyn FileSystem>) -> Result<Cluster, String> {
        Cluster::start_as(env, fs, StartOptions { has_quotas: true, ..StartOptions::default() }).await
    }

    /// The same without quotas. Region servers count as other processes: dead ones are recovered.
    pub async fn start_with_processes(env: &Env, fs: Arc<dyn FileSystem>) -> Result<Cluster, String> {
        Cluster::start_as(env, fs, StartOptions { has_processes: true, ..StartOptions::default() }).await
    }

    async fn start_as(env: &Env, fs: Arc<dyn FileSystem>, options: StartOptions) -> Result<Cluster, String> {
        let root = RootDir::new(fs::FilePath::root());
        let name = |port| ServerName { host: "h".into(), port, start_code: env.clock.now_ms() };
        root.open_or_create(&*fs, &*env.random).await.map_err(text)?;
        let dead_master_log_dirs =
            other_servers_log_dirs(&*fs, &root.master_data(), &name(1)).await.map_err(text)?;
        let dead_log_dirs = other_servers_log_dirs(&*fs, &root, &name(2)).await.map_err(text)?;
        let on_fatal = Arc::new(|_: &wal::Error| ());
        let store = MasterStore::open(env, &fs, &root, &name(1), &dead_master_log_dirs, on_fatal)
            .await
            .map_err(text)?;
        let server = match options.has_processes {
            true => process(env, &fs, &root, name(2)),
            false => RegionServerParts {
                dead_log_dirs,
                dead_log_records: root.log_records().to_vec(),
                log_records: root.log_records(),
                ..process(env, &fs, &root, name(2))
            },
        };
        let server = RegionServer::start(server).await.map_err(text)?;
        let connections = Arc::new(Direct::default());
        assert!(connections.first.set(services(&server)).is_ok());
        assert!(connections.first_server.set(server.clone()).is_ok());
        let coordinator = MemoryCoordinator::new(env);
        let master = Master::new(MasterParts {
            env: env.clone(),
            fs: fs.clone(),
            root: root.clone(),
            store: store.region().clone(),
            cluster: options
                .has_processes
                .then(|| master::Cluster { live: vec![name(2)], active_since_ms: env.clock.now_ms() }),
            connections: connections.clone(),
            coordinator: coordinator.clone(),
            names: Names::below("/hbase"),
            server_name: name(1),
            info_port: 0,
            cluster_id: "c".into(),
            quotas_enabled: options.has_quotas,
            on_stop: Arc::new(|_| ()),
            chores: chores(),
        });
        server.register(status(&master)).await.map_err(text)?;
        master.initialize().await.map_err(text)?;
        Ok(Cluster { env: env.clone(), master, server, root, fs, coordinator, store, connections })
    }

    /// Starts another region server.
    pub async fn add_server(&self, port: u16) -> Arc<RegionServer> {
        self.add_server_of(&self.master, port).await
    }

    /// Starts another region server, which only `master` knows.
    pub async fn add_server_of(&self, master: &Arc<Master>, port: u16) -> Arc<RegionServer> {
        self.add_server_reporting_to(status(master), port).await
    }

    /// Starts another region server, which reports to the current value of `active`.
    pub async fn add_server_following(&self, active: &Arc<ActiveMaster>, port: u16) -> Arc<RegionServer> {
        self.add_server_reporting_to(Arc::new(Remote(Encoded::Status(active.clone()))), port).await
    }

    async fn add_server_reporting_to(
        &self,
        master: Arc<dyn RegionServerStatusService>,
        port: u16,
    ) -> Arc<RegionServer> {
        let server = self.start_server(port, &self.fs).await;
        self.connections.added.lock().unwrap().insert(server.name().clone(), services(&server));
        server.register(master).await.unwrap();
        server
    }

    /// Starts another region server, which has its own access to the files.
    pub async fn add_server_with_access(&self, port: u16, fs: Arc<dyn FileSystem>) -> Arc<RegionServer> {
        let server = self.start_server(port, &fs).await;
        self.connections.added.lock().unwrap().insert(server.name().clone(), services(&server));
        server.register(status(&self.master)).await.unwrap();
        server
    }

    /// Starts another region server. The master reaches it only while `is_reachable` is set.
    pub async fn add_interruptible_server(
        &self,
        port: u16,
        is_reachable: &Arc<AtomicBool>,
    ) -> Arc<RegionServer> {
        self.add_partly_reachable_server(port, is_reachable, class::CONNECT_EXCEPTION).await
    }

    /// Starts another region server. It does not serve before `has_started` is set.
    pub async fn add_starting_server(&self, port: u16, has_started: &Arc<AtomicBool>) -> Arc<RegionServer> {
        self.add_partly_reachable_server(port, has_started, class::SERVER_NOT_RUNNING_YET).await
    }

    async fn add_partly_reachable_server(
        &self,
        port: u16,
        is_reachable: &Arc<AtomicBool>,
        otherwise: JavaClass,
    ) -> Arc<RegionServer> {
        let server = self.start_server(port, &self.fs).await;
        let admin = Encoded::Admin(Arc::new(Admin(server.clone())));
        let admin = Interruptible { server: admin, is_reachable: is_reachable.clone(), otherwise };
        let (_, client) = services(&server);
        let services: Services = (Arc::new(Remote(admin)), client);
        self.connections.added.lock().unwrap().insert(server.name().clone(), services);
        server.register(status(&self.master)).await.unwrap();
        server
    }

    /// Starts another region server, which answers no call of the master.
    pub async fn add_silent_server(&self, port: u16) -> Arc<RegionServer> {
        let server = self.start_server(port, &self.fs).await;
        let services: Services = (Arc::new(Remote(Silent)), Arc::new(Remote(Silent)));
        self.connections.added.lock().unwrap().insert(server.name().clone(), services);
        server.register(status(&self.master)).await.unwrap();
        server
    }

    async fn start_server(&self, port: u16, fs: &Arc<dyn FileSystem>) -> Arc<RegionServer> {
        let name = ServerName { host: "h".into(), port, start_code: self.env.clock.now_ms() };
        RegionServer::start(process(&self.env, fs, &self.root, name)).await.unwrap()
    }

    /// The next master, before its initialization, for which only `server` is live.
    pub fn successor_with(&self, server: &RegionServer) -> Arc<Master> {
        let active_since_ms = self.env.clock.now_ms();
        self.uninitialized_master(Some(master::Cluster {
            live: vec![server.name().clone()],
            active_since_ms,
        }))
    }

    /// The next master, before its initialization, and a new region server that only it knows.
    pub async fn successor(&self, port: u16) -> (Arc<Master>, Arc<RegionServer>) {
        let name = ServerName { host: "h".into(), port, start_code: self.env.clock.now_ms() };
        let active_since_ms = self.env.clock.now_ms();
        let master = self.uninitialized_master(Some(master::Cluster { live: vec![name], active_since_ms }));
        let server = self.add_server_of(&master, port).await;
        (master, server)
    }

    /// Another master of the same data, before its initialization.
    pub fn master_without_regions(&self) -> Arc<Master> {
        self.uninitialized_master(None)
    }

    /// The same, whose region servers are other processes.
    pub fn master_of_other_processes(&self) -> Arc<Master> {
        self.uninitialized_master(Some(master::Cluster { live: Vec::new(), active_since_ms: 1 }))
    }

    fn uninitialized_master(&self, cluster: Option<master::Cluster>) -> Arc<Master> {
        Master::new(MasterParts {
            env: self.env.clone(),
            fs: self.fs.clone(),
            root: self.root.clone(),
            store: self.store.region().clone(),
            cluster,
            connections: self.connections.clone(),
            coordinator: MemoryCoordinator::new(&self.env),
            names: Names::below("/hbase"),
            server_name: self.master.server_name().clone(),
            info_port: 0,
            cluster_id: "c".into(),
            quotas_enabled: false,
            on_stop: Arc::new(|_| ()),
            chores: chores(),
        })
    }

    /// The journal of the master's procedures.
    pub fn journal(&self) -> Journal {
        Journal::new(self.store.region().clone())
    }

    /// Registers a later master at the region server, as its first order does.
    pub async fn replace_master(&self) {
        let open =
            proto::OpenRegionRequest { initiating_master_active_time: Some(i64::MAX), ..Default::default() };
        let request = proto::ExecuteProceduresRequest { open_region: vec![open], ..Default::default() };
        Admin(self.server.clone()).execute_procedures(request).await.unwrap();
    }

    /// Takes the logs of `master:store`, as a later master does before anything else.
    pub async fn take_master_store(&self) {
        let (store, own) = (self.root.master_data(), self.master.server_name());
        self.fs.rename(&store.wal_dir(own), &store.fenced_wal_dir(own)).await.unwrap();
    }

    /// Stops both, in order.
    pub async fn stop(self) {
        self.server.stop().await.unwrap();
        self.store.close().await.unwrap();
    }

    /// Waits until a procedure has ended.
    pub async fn wait(&self, proc_id: Option<u64>) -> Answer<()> {
        let until = self.env.clock.monotonic() + PROCEDURE_TIMEOUT;
        let request = proto::GetProcedureResultRequest { proc_id: proc_id.expect("a number") };
        while self.env.clock.monotonic() < until {
            let answer = self.master.get_procedure_result(request).await?;
            match answer.state() {
                State::Running => self.env.clock.sleep(POLL_PAUSE).await,
                _ => return answer.exception.map_or(Ok(()), |e| Err(JavaException::from_foreign(&e))),
            }
        }
        Err(JavaException::io("the procedure does not end"))
    }

    /// Waits until no procedure is running.
    pub async fn settle(&self) {
        let until = self.env.clock.monotonic() + PROCEDURE_TIMEOUT;
        let runs = |procedure: &proto::Procedure| {
            matches!(
                procedure.state(),
                proto::ProcedureState::Runnable | proto::ProcedureState::WaitingTimeout
            )
        };
        loop {
            let all = self.master.get_procedures(proto::GetProceduresRequest {}).await.unwrap().procedure;
            match all.iter().find(|procedure| runs(procedure)) {
                None => return,
                Some(stuck) => {
                    assert!(self.env.clock.monotonic() < until, "{} does not end", stuck.class_name);
                }
            }
            self.env.clock.sleep(POLL_PAUSE).await;
        }
    }

    /// The open regions of a table.
    pub fn regions(&self, table: &TableName) -> Vec<Arc<Region>> {
        let mut regions = self.server.regions().all();
        regions.retain(|region| &region.info().table == table);
        regions
    }

    /// Writes `family:q` of a row.
    pub async fn put(&self, table: &TableName, row: &str, family: &str, value: &str) {
        let row = Bytes::copy_from_slice(row.as_bytes());
        let regions = self.regions(table);
        let region = regions.iter().find(|region| region.info().contains(&row)).expect("a region");
        let cell =
            KeyValue::new(&row, family.as_bytes(), b"q", LATEST_TIMESTAMP, CellType::Put, value.as_bytes());
        region.batch_atomic(vec![Mutation::put(row, vec![cell])]).await.unwrap();
    }

    /// Deletes a row.
    pub async fn delete(&self, table: &TableName, row: &str) {
        let row = Bytes::copy_from_slice(row.as_bytes());
        let regions = self.regions(table);
        let region = regions.iter().find(|region| region.info().contains(&row)).expect("a region");
        region.batch_atomic(vec![Mutation::delete(row, vec![])]).await.unwrap();
    }

    /// Like `put`, but retries while regions are being moved or split.
    pub async fn put_with_retries(&self, table: &TableName, row: &str, family: &str, value: &str) {
        let row = Bytes::copy_from_slice(row.as_bytes());
        let cell =
            KeyValue::new(&row, family.as_bytes(), b"q", LATEST_TIMESTAMP, CellType::Put, value.as_bytes());
        loop {
            let regions = self.regions(table);
            if let Some(region) = regions.iter().find(|region| region.info().contains(&row))
                && region.batch_atomic(vec![Mutation::put(row.clone(), vec![cell.clone()])]).await.is_ok()
            {
                return;
            }
            self.env.clock.sleep(POLL_PAUSE).await;
        }
    }

    /// All cells of an enabled table, as `row/family=value`.
    pub async fn cells(&self, table: &TableName) -> Vec<String> {
        let mut cells = Vec::new();
        for region in self.regions(table) {
            let list = region.scan_all(&Scan::default()).await.unwrap();
            cells.extend(list.cells.iter().map(|(cell, _)| {
                let cell = cell.view(0);
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                format!("{}/{}={}", text(cell.row()), text(cell.family()), text(cell.value))
            }));
        }
        cells
    }

    /// A table's state; `None` if the table does not exist.
    pub async fn state(&self, table: &TableName) -> Option<i32> {
        let request = proto::GetTableStateRequest { table_name: table.into() };
        self.master.get_table_state(request).await.ok().map(|answer| answer.table_state.state)
    }
}

/// The parts of a region server that has logs of its own, and takes over none.
fn process(env: &Env, fs: &Arc<dyn FileSystem>, root: &RootDir, name: ServerName) -> RegionServerParts {
    RegionServerParts {
        env: env.clone(),
        fs: fs.clone(),
        disk: regionserver::Disk::default(),
        root: root.clone(),
        log_records: root.log_records_of(&name),
        name,
        info_port: 0,
        options: options(),
        dead_log_dirs: Vec::new(),
        dead_log_records: Vec::new(),
        lease: Lease::unlimited(),
        quota_reader: None,
        second_level_cache: None,
        cluster_id: "cluster".into(),
        foreign_files: Arc::new(regionserver::NoForeignFiles),
        cluster_writer: None,
        file_moves: None,
        response_budget: base::budget::Budget::new(1 << 30),
        on_fatal: Arc::new(|_| ()),
        on_stop: Arc::new(|_| ()),
    }
}

/// The services of a server as the master calls them.
fn services(server: &Arc<RegionServer>) -> Services {
    let admin = Arc::new(Admin(server.clone()));
    let admin: Arc<dyn AdminService> = match crate::calls() {
        Calls::Direct => admin,
        Calls::Encoded => Arc::new(Remote(Encoded::Admin(admin))),
    };
    // This one always encodes its calls.
    (admin, Arc::new(Remote(LocalCaller(server.clone()))))
}

/// The service of the master as region servers call it.
fn status(master: &Arc<Master>) -> Arc<dyn RegionServerStatusService> {
    match crate::calls() {
        Calls::Direct => master.clone(),
        Calls::Encoded => Arc::new(Remote(Encoded::Status(Arc::new(Mutex::new(master.clone()))))),
    }
}

/// The cleaner of MOB files runs often, so that its test is short.
fn chores() -> ChoreOptions {
    ChoreOptions {
        mob_period: Duration::from_secs(600),
        mob_min_age: Duration::from_secs(60),
        ..ChoreOptions::default()
    }
}

fn options() -> RegionServerOptions {
    RegionServerOptions {
        compaction: regionserver::schedule::compactions::CompactionOptions::default(),
        region: engine::region::RegionOptions::default(),
        memory_bytes: 256 << 20,
        resident_bytes: || None,
        memstore_bytes: 64 << 20,
        memstore_low_mark: 0.95,
        cache_bytes: 1 << 20,
        on_damage: Default::default(),
        log_durability: fs::SyncLevel::Disk,
        log_roll_bytes: 16 << 20,
        log_roll_period: Duration::from_secs(3600),
        logs_max: 32,
        flush_period: Duration::from_secs(3600),
        scanner_lease: Duration::from_secs(60),
        scanners_max: 100,
        scanner_bytes_max: 1 << 20,
        result_bytes_max: 1 << 20,
        minibatch_changes: 20_000,
        batch_rows_warning: 5000,
        rejects_large_batches: false,
        nonce_grace: Duration::from_secs(1800),
        quotas: None,
        unit_bytes: (1024, 1024),
        measures_user_latencies: false,
        hotspots_period: Duration::from_secs(10),
        slow_log: regionserver::slow_log::SlowLogOptions::default(),
        regions_max: 1000,
    }
}

fn text(error: impl ToString) -> String {
    error.to_string()
}
