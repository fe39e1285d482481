//! `grampus start`: master and region server in this process.
//!
//! The options, ports and data directory are checked before anything is changed, and an error is
//! one line. Then the two roles, master and region server, start concurrently. Clients may connect
//! while regions are being opened.

use std::io::{ErrorKind, IsTerminal};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base::config::{Config, RootUri, Sources};
use base::env::{Env, Listener, TaskClass};
use base::pool::Pool;
use cell::region::ServerName;
use console::{Identity, LogLineCounter, MasterPages, Peers, RegionServerPages, beans};
use engine::recovery::other_servers_log_dirs;
use fs::reserve::{Reserve, WithReserve};
use fs::space::Space;
use fs::{FilePath, FileSystem};
use layout::RootDir;
use master::chores::ChoreOptions;
use master::procedure::journal::Journal;
use master::service::MasterAdmin;
use master::store::MasterStore;
use master::switches::Switches;
use master::{Master, MasterParts};
use os::Runtimes;
use regionserver::slow_log::SlowCalls;
use regionserver::{Admin, ClientRpc, Disk, RegionServer, RegionServerParts};
use rpc::{ServerOptions, Service};
use tracing::{info, warn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use wire::service::{
    AdminService, ClientMetaService, MasterService, RegionServerStatusService, dispatch_admin,
    dispatch_client_meta, dispatch_master, dispatch_region_server_status,
};
use zk::Coordinator;
use zk::coordinator::{Mode, publish};
use zk::memory::MemoryCoordinator;
use zk::names::Names;

use crate::address::advertised_host;
use crate::arguments::ServerArguments;
use crate::direct::Direct;
use crate::lock::{DirectoryLock, LockError};
use crate::notify;
use crate::registry::Registry;
use crate::services::{Dispatched, INTERNAL_ADMIN_METHODS, Internal};
use crate::settings::{Limits, on_damage, region_server_options, slow_log_options};
use crate::signals::Stop;
use crate::sinks::{RoleMetrics, Sinks};

/// Number of threads for blocking disk calls.
const DISK_THREADS: usize = 8;

/// If no write finishes for this long during a stop, the disk does not respond. The process then
/// exits without completing the stop.
const STALL_TIMEOUT: Duration = Duration::from_secs(60);

/// Environment variables that begin with `GRAMPUS_` but are not derived from the key of an option.
const OTHER_VARIABLES: [&str; 5] =
    ["GRAMPUS_LOG", "GRAMPUS_ZOOKEEPER", "GRAMPUS_DATA", "GRAMPUS_BIND", "GRAMPUS_HOST"];

/// Starts both roles, serves until a stop is requested, and stops.
pub fn run(arguments: &ServerArguments) -> Result<(), String> {
    let config = load_config(arguments)?;
    let sinks = Sinks::load(&config, arguments.config.as_deref())?;
    start_logging();
    for warning in config.warnings() {
        warn!("{warning}");
    }
    sinks.log_summary();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let open_files_max = crate::limits::check(&config, cores)?;
    let runtimes = Runtimes::start(cores, cores.div_ceil(2))
        .map_err(|error| format!("cannot start threads: {error}"))?;
    let env = os::env(Arc::new(runtimes));
    os::block_on(serve(env, config, sinks, open_files_max))
}

/// Loads the options from these arguments, the environment and the configuration files.
///
/// # Errors
/// One line that names the invalid value and its source.
pub fn load_config(arguments: &ServerArguments) -> Result<Config, String> {
    let mut sources = Sources::of_process();
    if let Some(dir) = &arguments.config {
        require_site_file(dir)?;
        sources.directories.push(dir.clone());
    }
    sources.other_variables.extend(OTHER_VARIABLES.map(String::from));
    let mut set = |key: &str, value: String| sources.overrides.push((key.to_string(), value));
    if let Some(data) = &arguments.data {
        let data = data.to_str().ok_or_else(|| format!("--data {}: not valid UTF-8", data.display()))?;
        set("hbase.rootdir", data.to_string());
    }
    if let Some(offset) = arguments.port_offset {
        set("grampus.port.offset", offset.to_string());
    }
    if let Some(bind) = arguments.bind {
        for key in [
            "hbase.master.ipc.address",
            "hbase.regionserver.ipc.address",
            "hbase.master.info.bindAddress",
            "hbase.regionserver.info.bindAddress",
            "hbase.zookeeper.property.clientPortAddress",
        ] {
            set(key, bind.to_string());
        }
    }
    if let Some(host) = &arguments.host {
        set("hbase.master.hostname", host.clone());
        set("hbase.regionserver.hostname", host.clone());
    }
    for argument in &arguments.overrides {
        sources.set(argument).map_err(|error| error.to_string())?;
    }
    Config::load(&sources).map_err(|error| error.to_string())
}

/// Requires `hbase-site.xml` in a directory given by `--config`. Without the file the server would
/// start with its defaults, for example with another data directory.
fn require_site_file(dir: &Path) -> Result<(), String> {
    match dir.join("hbase-site.xml").try_exists() {
        Ok(true) => Ok(()),
        Ok(false) => {
            Err(format!("--config {0} (or HBASE_CONF_DIR): there is no hbase-site.xml in {0}", dir.display()))
        }
        Err(error) => Err(format!("--config {}: {error}", dir.display())),
    }
}

fn start_logging() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("GRAMPUS_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false);
    tracing_subscriber::registry().with(filter).with(lines).with(LogLineCounter).init();
}

/// The listening sockets of a server, all bound before anything is changed.
struct Listeners {
    master: Box<dyn Listener>,
    region_server: Box<dyn Listener>,
    zookeeper: Box<dyn Listener>,
    master_pages: Option<Box<dyn Listener>>,
    region_server_pages: Option<Box<dyn Listener>>,
}

impl Listeners {
    async fn bind(env: &Env, config: &Config) -> Result<Listeners, String> {
        Ok(Listeners {
            master: listen(env, config.master_address, config.master_port, "hbase.master.port").await?,
            region_server: listen(
                env,
                config.region_server_address,
                config.region_server_port,
                "hbase.regionserver.port",
            )
            .await?,
            zookeeper: listen(
                env,
                config.zookeeper_address,
                config.zookeeper_port,
                "hbase.zookeeper.property.clientPort",
            )
            .await?,
            master_pages: match config.master_info_port {
                Some(port) => {
                    Some(listen(env, config.master_info_address, port, "hbase.master.info.port").await?)
                }
                None => None,
            },
            region_server_pages: match config.region_server_info_port {
                Some(port) => Some(
                    listen(env, config.region_server_info_address, port, "hbase.regionserver.info.port")
                        .await?,
                ),
                None => None,
            },
        })
    }
}

async fn listen(env: &Env, address: IpAddr, port: u16, key: &str) -> Result<Box<dyn Listener>, String> {
    let address = SocketAddr::new(address, port);
    env.net.listen(address).await.map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => format!(
            "{address} is in use by another process (a running server?); choose another port with --set \
             {key}=PORT, or shift all ports with --port-offset N"
        ),
        _ => format!("cannot listen on {address} ({key}): {error}"),
    })
}

/// The locked data directory.
pub(crate) struct DataDirectory {
    pub(crate) fs: Arc<dyn FileSystem>,
    disk: Disk,
    instruments: Arc<fs::measured::Instruments>,
    pub(crate) root: RootDir,
    cluster_id: String,
    _lock: DirectoryLock,
}

impl DataDirectory {
    /// Opens an existing data directory.
    ///
    /// # Errors
    /// One line that states why the directory cannot be opened.
    pub(crate) async fn open_existing(env: &Env, config: &Config) -> Result<DataDirectory, String> {
        let dir = local_root(config)?;
        match is_directory(dir) {
            true => DataDirectory::open(env, config).await,
            false => {
                Err(format!("there is no data directory {}; choose another with --data DIR", dir.display()))
            }
        }
    }

    async fn open(env: &Env, config: &Config) -> Result<DataDirectory, String> {
        let dir = local_root(config)?;
        let shown = dir.display();
        make_directory(dir).map_err(|error| format!("cannot make the data directory {shown}: {error}"))?;
        let root = RootDir::new(FilePath::root());
        let lock =
            DirectoryLock::acquire(&dir.join(root.lock_file().as_str())).map_err(
                |refused| match refused {
                    LockError::InUse => format!(
                        "the data directory {shown} is in use by another grampus; stop it, or choose \
                                       another directory with --data DIR"
                    ),
                    LockError::Io(error) => format!("cannot lock the data directory {shown}: {error}"),
                },
            )?;
        let pool = Arc::new(Pool::new("disk", DISK_THREADS));
        let mut local = fs::local::LocalFs::new(dir, pool).map_err(|error| format!("{shown}: {error}"))?;
        if config.reads_directly(base::memory::limit_bytes()) {
            local = local.with_direct_io();
        }
        let instruments = fs::measured::Instruments::begin(env.clock.clone());
        let local: Arc<dyn FileSystem> = Arc::new(local);
        let disk = prepare_disk(&local, &root, config).await.map_err(|error| format!("{shown}: {error}"))?;
        let reserved: Arc<dyn FileSystem> = match &disk.reserve {
            Some(reserve) => Arc::new(WithReserve::new(local, reserve.clone())),
            None => local,
        };
        let fs: Arc<dyn FileSystem> = Arc::new(fs::measured::Measured::new(reserved, instruments.clone()));
        let identity = match root.open_or_create(&*fs, &*env.random).await {
            Ok(identity) => identity,
            Err(error) => {
                if matches!(error, layout::Error::NotOurs { .. }) {
                    lock.remove();
                }
                // Only Grampus creates this directory.
                let has_log_records = is_directory(&dir.join(root.log_record().parent().as_str()));
                let may_restore_marker = match &error {
                    layout::Error::NotOurs { .. } => has_log_records,
                    layout::Error::Corrupt { file, .. } => file.name() == layout::identity::MARKER,
                    _ => false,
                };
                let remedy = match may_restore_marker {
                    true => format!(
                        ". It contains other files of Grampus. If only grampus.root was lost or damaged, restore it: {}",
                        layout::identity::restoring_command(&dir.display().to_string())
                    ),
                    false => String::new(),
                };
                return Err(format!("the data directory {shown}: {error}{remedy}"));
            }
        };
        // The files of the disk reserve are allocated later, while the server is already serving.
        fs.make_dirs(&root.reserve_dir()).await.map_err(|error| format!("{shown}: {error}"))?;
        Ok(DataDirectory { fs, disk, instruments, root, cluster_id: identity.cluster_id, _lock: lock })
    }
}

/// The local directory of `hbase.rootdir`.
///
/// # Errors
/// One line that names the option, if its file system is not supported.
fn local_root(config: &Config) -> Result<&Path, String> {
    match &config.root {
        RootUri::Local(dir) => Ok(dir),
        RootUri::Other { scheme, .. } => {
            let reason = format!("{scheme}:// is not supported yet; use a local directory");
            Err(config.refused("hbase.rootdir", reason).to_string())
        }
    }
}

/// Measures the free space of the disk of `fs`, and opens the disk reserve with the files that it
/// already has. Missing files are allocated later.
async fn prepare_disk(fs: &Arc<dyn FileSystem>, root: &RootDir, config: &Config) -> fs::Result<Disk> {
    let Some(found) = fs.space().await? else {
        return Ok(Disk { lock: Some(root.lock_file()), ..Disk::default() });
    };
    let bytes = config.disk_reserve_bytes_of(found.total_bytes);
    let space = Arc::new(Space::new(bytes));
    space.record_poll(found, 0);
    let reserve = Reserve::open(fs.clone(), root.reserve_dir(), bytes, space.clone()).await?;
    Ok(Disk { space, reserve: Some(reserve), lock: Some(root.lock_file()), warnings: Vec::new() })
}

#[allow(clippy::disallowed_methods, reason = "FileSystem only has paths relative to the data directory")]
fn is_directory(dir: &Path) -> bool {
    dir.is_dir()
}

#[allow(clippy::disallowed_methods, reason = "FileSystem only has paths relative to the data directory")]
fn make_directory(dir: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(dir)
}

async fn serve(env: Env, config: Config, sinks: Sinks, open_files_max: u64) -> Result<(), String> {
    let started = env.clock.monotonic();
    let limits = Limits::from_config(&config, open_files_max);
    let listeners = Listeners::bind(&env, &config).await?;
    let mut data = DataDirectory::open(&env, &config).await?;
    if let Some(warning) = crate::limits::check_store_files(&*data.fs, &data.root, open_files_max).await {
        warn!("{warning}");
        data.disk.warnings.push(warning);
    }
    let stop = Stop::new();
    let node = Node::start(&env, &config, &limits, &data, &listeners, &stop).await?;
    let addresses = Addresses::from_listeners(&listeners);
    let (servers, roles) = node.serve(&env, &config, &limits, listeners, &sinks);
    sinks.start(&env, roles);
    node.initialize().await?;
    let stop_signal = stop.listen().map_err(|error| format!("cannot wait for signals: {error}"))?;
    announce(&addresses, &limits, &config.root, env.clock.monotonic() - started);
    notify::send_state(notify::READY);
    let reason = stop_signal.wait().await;
    notify::send_state(notify::STOPPING);
    println!("stopping ({reason}): flushing memstores");
    let finished_writes = || data.instruments.files.write_time.micros().count();
    let stopped = async {
        for server in servers {
            server.stop().await;
        }
        node.stop().await
    };
    tokio::select! {
        biased;
        stopped = stopped => stopped,
        () = stalled(&env, finished_writes) => Err(format!(
            "exiting before the stop is complete: no write finished for {} s; acknowledged writes are in the \
             log, and the next start replays them",
            STALL_TIMEOUT.as_secs()
        )),
    }
}

/// Waits until `progress` has not changed for [`STALL_TIMEOUT`].
async fn stalled(env: &Env, progress: impl Fn() -> u64) {
    let (mut before, mut since) = (progress(), env.clock.monotonic());
    while env.clock.monotonic() < since + STALL_TIMEOUT {
        env.clock.sleep(Duration::from_millis(500)).await;
        let now = progress();
        if now != before {
            (before, since) = (now, env.clock.monotonic());
        }
    }
}

/// The master and the region server of this process.
struct Node {
    coordinator: Arc<dyn Coordinator>,
    names: Names,
    region_server: Arc<RegionServer>,
    master: Arc<Master>,
    store: MasterStore,
    cluster_id: String,
    file_instruments: Arc<fs::measured::Instruments>,
}

impl Node {
    async fn start(
        env: &Env,
        config: &Config,
        limits: &Limits,
        data: &DataDirectory,
        listeners: &Listeners,
        stop: &Stop,
    ) -> Result<Node, String> {
        let start_code = env.clock.now_ms();
        let name_of = |host: Option<&str>, listener: &dyn Listener| {
            let address = listener.local_addr();
            ServerName { host: advertised_host(host, address.ip()), port: address.port(), start_code }
        };
        let master_name = name_of(config.master_host.as_deref(), &*listeners.master);
        let server_name = name_of(config.region_server_host.as_deref(), &*listeners.region_server);
        let coordinator: Arc<dyn Coordinator> = MemoryCoordinator::new(env);
        let names = Names::below(&config.zookeeper_parent);
        let on_log_failure = |error: &wal::Error| end_process(&error.to_string());
        let on_log_failure = Arc::new(on_log_failure);
        let on_damage = on_damage(config);
        // This process holds the lock of the directory, so no other process writes to the logs of
        // earlier runs.
        let unreadable = |error: fs::Error| format!("cannot list the logs of earlier runs: {error}");
        let store_root = data.root.master_data();
        let dead_master_log_dirs =
            other_servers_log_dirs(&*data.fs, &store_root, &master_name).await.map_err(unreadable)?;
        let dead_server_log_dirs =
            other_servers_log_dirs(&*data.fs, &data.root, &server_name).await.map_err(unreadable)?;
        let store = MasterStore::open(
            env,
            &data.fs,
            &data.root,
            &master_name,
            &dead_master_log_dirs,
            on_damage,
            on_log_failure,
        );
        let on_stop = stop.clone();
        let region_server = RegionServer::start(RegionServerParts {
            env: env.clone(),
            fs: data.fs.clone(),
            disk: data.disk.clone(),
            root: data.root.clone(),
            name: server_name,
            dead_log_dirs: dead_server_log_dirs,
            info_port: port_of(listeners.region_server_pages.as_deref()),
            options: region_server_options(config, &limits.memory),
            response_budget: limits.shared.response_budget().clone(),
            on_fatal: Arc::new(end_process),
            on_stop: Arc::new(move |why| on_stop.request(why)),
        });
        let (store, region_server) = tokio::join!(store, region_server);
        let store = store.map_err(|error| {
            let remedy = "if its files are damaged, replace it with an empty one: `grampus repair master`";
            format!("cannot open master:store: {error}; {remedy}")
        })?;
        let region_server =
            region_server.map_err(|error| format!("cannot start the region server: {error}"))?;
        let direct = Arc::new(Direct::default());
        direct.connect(&region_server);
        let on_stop = stop.clone();
        let master = Master::new(MasterParts {
            env: env.clone(),
            fs: data.fs.clone(),
            root: data.root.clone(),
            journal: Journal::new(store.region().clone()),
            connections: direct,
            coordinator: coordinator.clone(),
            names: names.clone(),
            server_name: master_name,
            info_port: port_of(listeners.master_pages.as_deref()),
            cluster_id: data.cluster_id.clone(),
            quotas_enabled: config.quotas_enabled,
            on_stop: Box::new(move |why| on_stop.request(why)),
            switches: Switches::new(store.region().clone()),
            chores: ChoreOptions {
                janitor_period: Duration::from_millis(config.janitor_period_ms),
                cleaner_period: Duration::from_millis(config.cleaner_period_ms),
                snapshot_period: Duration::from_millis(config.snapshot_cleaner_period_ms),
                file_ttl: Duration::from_millis(config.archived_file_ttl_ms),
                log_ttl: Duration::from_millis(config.old_log_ttl_ms),
                space: data.disk.space.clone(),
                log_holders: Arc::default(),
            },
        });
        let (cluster_id, file_instruments) = (data.cluster_id.clone(), data.instruments.clone());
        Ok(Node { coordinator, names, region_server, master, store, cluster_id, file_instruments })
    }

    /// Starts to serve on all ports. Returns the RPC servers and the metrics of each role.
    fn serve(
        &self,
        env: &Env,
        config: &Config,
        limits: &Limits,
        listeners: Listeners,
        sinks: &Sinks,
    ) -> (Vec<Arc<rpc::Server>>, RoleMetrics) {
        let client_meta: Arc<dyn ClientMetaService> =
            Arc::new(Registry::new(self.coordinator.clone(), self.names.clone()));
        let client_meta: Arc<dyn Service> =
            Dispatched::new("ClientMetaService", client_meta, dispatch_client_meta, Internal::None);
        let master: Arc<dyn MasterService> = self.master.clone();
        let status: Arc<dyn RegionServerStatusService> = self.master.clone();
        let admin: Arc<dyn AdminService> = Arc::new(Admin(self.region_server.clone()));
        let master_admin: Arc<dyn AdminService> = Arc::new(MasterAdmin(self.master.clone()));
        let master_services: Vec<Arc<dyn Service>> = vec![
            client_meta.clone(),
            Dispatched::new("MasterService", master, dispatch_master, Internal::None),
            Dispatched::new(
                "RegionServerStatusService",
                status,
                dispatch_region_server_status,
                Internal::All,
            ),
            Dispatched::new("AdminService", master_admin, dispatch_admin, INTERNAL_ADMIN_METHODS),
        ];
        let region_server_services: Vec<Arc<dyn Service>> = vec![
            client_meta,
            Arc::new(ClientRpc::new(self.region_server.clone())),
            Dispatched::new("AdminService", admin, dispatch_admin, INTERNAL_ADMIN_METHODS),
        ];
        let new_rpc_server = |services, slow_call_watch| {
            let options = ServerOptions { watch: slow_call_watch, ..limits.rpc.clone() };
            let shared = limits.shared.clone();
            rpc::Server::sharing(env.clone(), services, options, Some(self.cluster_id.clone()), shared)
        };
        let host = &self.master.server_name().host;
        let master_services = sinks.traced(env, "Master", host, master_services);
        let host = &self.region_server.name().host;
        let region_server_services = sinks.traced(env, "RegionServer", host, region_server_services);
        let slow_calls = Arc::new(SlowCalls(self.region_server.clone()));
        let slow_call_watch = slow_log_options(config).watch(slow_calls);
        let servers = vec![
            new_rpc_server(master_services, None),
            new_rpc_server(region_server_services, Some(slow_call_watch)),
        ];
        servers[0].serve(listeners.master);
        servers[1].serve(listeners.region_server);
        let identity = Identity {
            cluster_id: self.cluster_id.clone(),
            zookeeper_quorum: listeners.zookeeper.local_addr().to_string(),
            memory: limits.memory,
            shared: limits.shared.clone(),
            sinks: sinks.count(),
            files: self.file_instruments.clone(),
        };
        zk::endpoint::Endpoint::new(env.clone(), self.coordinator.clone(), limits.zookeeper.clone())
            .serve(listeners.zookeeper);
        let master_metrics = Arc::new(beans::master::beans(env, &self.master, &servers[0], &identity));
        let region_server = &self.region_server;
        let region_server_metrics = beans::region_server::beans(env, region_server, &servers[1], &identity);
        let region_server_metrics = Arc::new(region_server_metrics);
        let peers = Peers {
            master: pages_url(self.master.server_name(), listeners.master_pages.as_deref()),
            region_server: pages_url(self.region_server.name(), listeners.region_server_pages.as_deref()),
        };
        if let Some(listener) = listeners.master_pages {
            let (metrics, rpc_server) = (master_metrics.clone(), &servers[0]);
            let pages = MasterPages::new(env, self.master.clone(), metrics, rpc_server, config, &peers);
            env.spawn(
                TaskClass::Service,
                web::serve(env.clone(), listener, Arc::new(pages), limits.pages.clone()),
            );
        }
        if let Some(listener) = listeners.region_server_pages {
            let (server, metrics) = (self.region_server.clone(), region_server_metrics.clone());
            let pages = RegionServerPages::new(env, server, metrics, &servers[1], config, &identity, &peers);
            env.spawn(
                TaskClass::Service,
                web::serve(env.clone(), listener, Arc::new(pages), limits.pages.clone()),
            );
        }
        (servers, [("Master", master_metrics), ("RegionServer", region_server_metrics)])
    }

    async fn initialize(&self) -> Result<(), String> {
        let failed = |error: &dyn std::fmt::Display| format!("cannot start: {error}");
        self.master.publish().await.map_err(|error| failed(&error))?;
        let server = self.names.region_server(&self.region_server.name().to_string());
        publish(&*self.coordinator, &server, bytes::Bytes::new(), Mode::Persistent)
            .await
            .map_err(|error| failed(&error))?;
        self.region_server.register(self.master.clone()).await.map_err(|error| failed(&error))?;
        self.master.initialize().await.map_err(|error| failed(&error))?;
        // Report again now that the regions are open, so that clients see them in the cluster
        // status immediately.
        self.region_server.report().await;
        Ok(())
    }

    async fn stop(&self) -> Result<(), String> {
        let region_server_stopped = self.region_server.stop().await;
        let store_closed = self.store.close().await;
        region_server_stopped?;
        store_closed.map_err(|error| format!("cannot flush master:store: {error}; its log has the edits"))?;
        info!("stopped");
        Ok(())
    }
}

/// URL of the status pages at `listener`.
fn pages_url(server: &ServerName, listener: Option<&dyn Listener>) -> Option<String> {
    listener.map(|listener| Peers::address(server, listener.local_addr().port()) + "/")
}

fn port_of(listener: Option<&dyn Listener>) -> u16 {
    listener.map_or(0, |listener| listener.local_addr().port())
}

/// Ends the process because the write-ahead log failed. Acknowledged writes are on disk, and the
/// next start replays them. If the process continued, it could acknowledge writes that are not
/// durable.
fn end_process(why: &str) {
    eprintln!("grampus: the write-ahead log failed, exiting: {why}");
    std::process::exit(1);
}

/// The listening addresses, which are printed at start.
struct Addresses {
    master: SocketAddr,
    region_server: SocketAddr,
    zookeeper: SocketAddr,
    master_pages: Option<SocketAddr>,
    region_server_pages: Option<SocketAddr>,
}

impl Addresses {
    fn from_listeners(listeners: &Listeners) -> Addresses {
        let page =
            |listener: &Option<Box<dyn Listener>>| listener.as_ref().map(|listener| listener.local_addr());
        Addresses {
            master: listeners.master.local_addr(),
            region_server: listeners.region_server.local_addr(),
            zookeeper: listeners.zookeeper.local_addr(),
            master_pages: page(&listeners.master_pages),
            region_server_pages: page(&listeners.region_server_pages),
        }
    }
}

fn announce(addresses: &Addresses, limits: &Limits, root: &RootUri, took: Duration) {
    let page = |address: Option<SocketAddr>| {
        address.map_or(String::new(), |address| format!("page http://{address}/"))
    };
    println!("grampus {} is ready after {} ms", env!("CARGO_PKG_VERSION"), took.as_millis());
    println!("  data       {root} (every acknowledged write is on disk)");
    println!("  memory     {}", limits.memory);
    println!("  master     {:<22} {}", addresses.master, page(addresses.master_pages));
    println!("  regions    {:<22} {}", addresses.region_server, page(addresses.region_server_pages));
    println!("  ZooKeeper  {:<22} (for clients that connect through ZooKeeper)", addresses.zookeeper);
    if !addresses.region_server.ip().is_loopback() {
        println!("  WARNING: no authentication; every client that can reach these ports can read and write.");
    }
}
