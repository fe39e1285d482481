//! `grampus start`: master and region server in this process.
//!
//! Everything that can be wrong with the machine (options, directory, ports) is looked at before anything is changed,
//! and each is one line. Then the roles start side by side, and clients may connect while regions open.

use std::io::{ErrorKind, IsTerminal};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ::sinks::Role;
use base::config::{Config, Sources};
use base::env::{Env, Listener, TaskClass};
use base::pool::Pool;
use cell::region::ServerName;
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
use crate::arguments::StartArguments;
use crate::beans::{self, Identity};
use crate::direct::Direct;
use crate::lock::{DirectoryLock, Refused};
use crate::log_counts::CountLines;
use crate::notify;
use crate::os::{self, Runtimes};
use crate::pages::{MasterPages, Peers, RegionServerPages};
use crate::registry::Registry;
use crate::services::{Dispatched, Internal, OF_MASTER};
use crate::settings::{Limits, on_damage, region_server_options, slow_log_options};
use crate::signals::Stop;
use crate::sinks::Sinks;

/// Threads for calls of the disk that block.
const DISK_THREADS: usize = 8;

/// A stop in which nothing was written for so long has met a disk that does not answer.
const STALL: Duration = Duration::from_secs(60);

/// Variables of the process that are not options by their keys.
const VARIABLES: [&str; 5] =
    ["GRAMPUS_LOG", "GRAMPUS_ZOOKEEPER", "GRAMPUS_DATA", "GRAMPUS_BIND", "GRAMPUS_HOST"];

/// Starts, serves until told to stop, and stops.
pub fn run(arguments: &StartArguments) -> Result<(), String> {
    let config = load_config(arguments)?;
    let sinks = Sinks::load(&config, arguments.config.as_deref())?;
    start_logging();
    for warning in config.warnings() {
        warn!("{warning}");
    }
    sinks.tell();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let files = crate::limits::check(&config, cores)?;
    let runtimes = Runtimes::start(cores, cores.div_ceil(2))
        .map_err(|error| format!("cannot start threads: {error}"))?;
    let env = os::env(Arc::new(runtimes));
    os::block_on(serve(env, config, sinks, files))
}

/// The options of a server that is started with these arguments in this environment.
///
/// # Errors
/// One line that says where a value was given that cannot be meant.
pub fn load_config(arguments: &StartArguments) -> Result<Config, String> {
    let mut sources = Sources::of_process();
    if let Some(dir) = &arguments.config {
        require_site_file(dir)?;
        sources.directories.push(dir.clone());
    }
    sources.other_variables.extend(VARIABLES.map(String::from));
    let mut set = |key: &str, value: String| sources.overrides.push((key.to_string(), value));
    if let Some(data) = &arguments.data {
        let data = data.to_str().ok_or_else(|| format!("--data {}: not a name in UTF-8", data.display()))?;
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

/// Who names a directory means the file in it: without it the server would start with its defaults, elsewhere.
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
    tracing_subscriber::registry().with(filter).with(lines).with(CountLines).init();
}

/// The sockets of a server, all bound before anything is changed.
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
            "{address} is in use by another process (a server that runs already?); choose another port by --set \
             {key}=PORT, or other ports altogether by --port-offset N"
        ),
        _ => format!("cannot listen on {address} ({key}): {error}"),
    })
}

/// The data directory, locked.
pub(crate) struct Data {
    pub(crate) fs: Arc<dyn FileSystem>,
    disk: Disk,
    instruments: Arc<fs::measured::Instruments>,
    pub(crate) root: RootDir,
    cluster_id: String,
    _lock: DirectoryLock,
}

impl Data {
    /// Opens a directory that a server has used.
    ///
    /// # Errors
    /// One line: why it cannot be opened.
    pub(crate) async fn open_existing(env: &Env, config: &Config) -> Result<Data, String> {
        let dir = &config.root_dir;
        match is_directory(dir) {
            true => Data::open(env, config).await,
            false => {
                Err(format!("there is no data directory {}; choose another by --data DIR", dir.display()))
            }
        }
    }

    async fn open(env: &Env, config: &Config) -> Result<Data, String> {
        let dir = &config.root_dir;
        let shown = dir.display();
        make_directory(dir).map_err(|error| format!("cannot make the data directory {shown}: {error}"))?;
        let root = RootDir::new(FilePath::root());
        let lock =
            DirectoryLock::take(&dir.join(root.lock_file().as_str())).map_err(|refused| match refused {
                Refused::InUse => format!(
                    "the data directory {shown} is in use by another grampus; stop it, or choose \
                                       another directory by --data DIR"
                ),
                Refused::Io(error) => format!("cannot lock the data directory {shown}: {error}"),
            })?;
        let pool = Arc::new(Pool::new("disk", DISK_THREADS));
        let mut local = fs::local::LocalFs::new(dir, pool).map_err(|error| format!("{shown}: {error}"))?;
        if config.reads_directly(base::memory::limit_bytes()) {
            local = local.past_page_cache();
        }
        let instruments = fs::measured::Instruments::begin(env.clock.clone());
        let local: Arc<dyn FileSystem> = Arc::new(local);
        let disk = open_disk(&local, &root, config).await.map_err(|error| format!("{shown}: {error}"))?;
        let reserved: Arc<dyn FileSystem> = match &disk.reserve {
            Some(reserve) => Arc::new(WithReserve::new(local, reserve.clone())),
            None => local,
        };
        let fs: Arc<dyn FileSystem> = Arc::new(fs::measured::Measured::new(reserved, instruments.clone()));
        let identity = match root.open_or_create(&*fs, &*env.random).await {
            Ok(identity) => identity,
            Err(error) => {
                if matches!(error, layout::Error::NotOurs { .. }) {
                    lock.withdraw();
                }
                let has_traces = is_directory(&dir.join(root.log_record().parent().as_str()));
                let is_marker = match &error {
                    layout::Error::NotOurs { .. } => has_traces,
                    layout::Error::Corrupt { file, .. } => file.name() == layout::identity::MARKER,
                    _ => false,
                };
                let remedy = match is_marker {
                    true => format!(
                        ". It has other files of Grampus. If only its marker was lost or damaged, restore it: {}",
                        layout::identity::restoring_command(&dir.display().to_string())
                    ),
                    false => String::new(),
                };
                return Err(format!("the data directory {shown}: {error}{remedy}"));
            }
        };
        // With the other directories; what is in it is allocated once the server serves.
        fs.make_dirs(&root.reserve_dir()).await.map_err(|error| format!("{shown}: {error}"))?;
        Ok(Data { fs, disk, instruments, root, cluster_id: identity.cluster_id, _lock: lock })
    }
}

/// The disk below `fs`, with the reserve as the last run left it.
async fn open_disk(fs: &Arc<dyn FileSystem>, root: &RootDir, config: &Config) -> fs::Result<Disk> {
    let Some(found) = fs.space().await? else {
        return Ok(Disk { lock: Some(root.lock_file()), ..Disk::default() });
    };
    let bytes = config.disk_reserve_bytes_of(found.total_bytes);
    let space = Arc::new(Space::new(bytes));
    space.polled(found, 0);
    let reserve = Reserve::open(fs.clone(), root.reserve_dir(), bytes, space.clone()).await?;
    Ok(Disk { space, reserve: Some(reserve), lock: Some(root.lock_file()), warnings: Vec::new() })
}

#[allow(clippy::disallowed_methods, reason = "the file system begins below this directory")]
fn is_directory(dir: &Path) -> bool {
    dir.is_dir()
}

#[allow(clippy::disallowed_methods, reason = "the file system begins below this directory")]
fn make_directory(dir: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(dir)
}

async fn serve(env: Env, config: Config, sinks: Sinks, files: u64) -> Result<(), String> {
    let started = env.clock.monotonic();
    let limits = Limits::of(&config, files);
    let listeners = Listeners::bind(&env, &config).await?;
    let mut data = Data::open(&env, &config).await?;
    if let Some(warning) = crate::limits::check_store_files(&*data.fs, &data.root, files).await {
        warn!("{warning}");
        data.disk.warnings.push(warning);
    }
    let stop = Stop::new();
    let node = Node::start(&env, &config, &limits, &data, &listeners, &stop).await?;
    let addresses = Addresses::of(&listeners);
    let (servers, roles) = node.serve(&env, &config, &limits, listeners, &sinks);
    ::sinks::start_all(&env, sinks.plans, &roles, &os::outside_of_sinks());
    node.initialize().await?;
    let reason = stop.listen().map_err(|error| format!("cannot wait for signals: {error}"))?;
    announce(&addresses, &limits, &config.root_dir, env.clock.monotonic() - started);
    notify::tell(notify::READY);
    let reason = reason.wait().await;
    notify::tell(notify::STOPPING);
    println!("stopping ({reason}): flushing what is in memory");
    let progress = || data.instruments.files.write_time.micros().count();
    let stopped = async {
        for server in servers {
            server.stop().await;
        }
        node.stop().await
    };
    tokio::select! {
        biased;
        stopped = stopped => stopped,
        () = stalled(&env, progress) => Err(format!(
            "the stop was given up: for {} s nothing could be written; what was acknowledged is in the log, and the next \
             start replays it",
            STALL.as_secs()
        )),
    }
}

/// Waits until `progress` has not changed for [`STALL`].
async fn stalled(env: &Env, progress: impl Fn() -> u64) {
    let (mut before, mut since) = (progress(), env.clock.monotonic());
    while env.clock.monotonic() < since + STALL {
        env.clock.sleep(Duration::from_millis(500)).await;
        let now = progress();
        if now != before {
            (before, since) = (now, env.clock.monotonic());
        }
    }
}

/// Both roles of this process.
struct Node {
    coordinator: Arc<dyn Coordinator>,
    names: Names,
    region_server: Arc<RegionServer>,
    master: Arc<Master>,
    store: MasterStore,
    cluster_id: String,
    files: Arc<fs::measured::Instruments>,
}

impl Node {
    async fn start(
        env: &Env,
        config: &Config,
        limits: &Limits,
        data: &Data,
        listeners: &Listeners,
        stop: &Stop,
    ) -> Result<Node, String> {
        let start_code = env.clock.now_ms();
        let name = |host: Option<&str>, listener: &dyn Listener| {
            let address = listener.local_addr();
            ServerName { host: advertised_host(host, address.ip()), port: address.port(), start_code }
        };
        let master_name = name(config.master_host.as_deref(), &*listeners.master);
        let server_name = name(config.region_server_host.as_deref(), &*listeners.region_server);
        let coordinator: Arc<dyn Coordinator> = MemoryCoordinator::new(env);
        let names = Names::below(&config.zookeeper_parent);
        let on_log_failure = |error: &wal::Error| end_process(&error.to_string());
        let on_log_failure = Arc::new(on_log_failure);
        let on_damage = on_damage(config);
        let store = MasterStore::open(env, &data.fs, &data.root, &master_name, on_damage, on_log_failure);
        let on_stop = stop.clone();
        let region_server = RegionServer::start(RegionServerParts {
            env: env.clone(),
            fs: data.fs.clone(),
            disk: data.disk.clone(),
            root: data.root.clone(),
            name: server_name,
            info_port: port_of(listeners.region_server_pages.as_deref()),
            options: region_server_options(config, &limits.memory),
            answers: limits.shared.answers().clone(),
            on_fatal: Arc::new(end_process),
            on_stop: Arc::new(move |why| on_stop.request(why)),
        });
        let (store, region_server) = tokio::join!(store, region_server);
        let store = store.map_err(|error| {
            let remedy = "if its files are damaged, replace it by `grampus repair master`";
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
            },
        });
        let (cluster_id, files) = (data.cluster_id.clone(), data.instruments.clone());
        Ok(Node { coordinator, names, region_server, master, store, cluster_id, files })
    }

    /// Begins to answer on all ports; returns who answers calls, and what the roles show.
    fn serve(
        &self,
        env: &Env,
        config: &Config,
        limits: &Limits,
        listeners: Listeners,
        sinks: &Sinks,
    ) -> (Vec<Arc<rpc::Server>>, [Role; 2]) {
        let client_meta: Arc<dyn ClientMetaService> =
            Arc::new(Registry::new(self.coordinator.clone(), self.names.clone()));
        let client_meta: Arc<dyn Service> =
            Dispatched::new("ClientMetaService", client_meta, dispatch_client_meta, Internal::None);
        let master: Arc<dyn MasterService> = self.master.clone();
        let status: Arc<dyn RegionServerStatusService> = self.master.clone();
        let admin: Arc<dyn AdminService> = Arc::new(Admin(self.region_server.clone()));
        let master_admin: Arc<dyn AdminService> = Arc::new(MasterAdmin(self.master.clone()));
        let of_master: Vec<Arc<dyn Service>> = vec![
            client_meta.clone(),
            Dispatched::new("MasterService", master, dispatch_master, Internal::None),
            Dispatched::new(
                "RegionServerStatusService",
                status,
                dispatch_region_server_status,
                Internal::All,
            ),
            Dispatched::new("AdminService", master_admin, dispatch_admin, OF_MASTER),
        ];
        let of_region_server: Vec<Arc<dyn Service>> = vec![
            client_meta,
            Arc::new(ClientRpc::new(self.region_server.clone())),
            Dispatched::new("AdminService", admin, dispatch_admin, OF_MASTER),
        ];
        let rpc = |services, watch| {
            let options = ServerOptions { watch, ..limits.rpc.clone() };
            let shared = limits.shared.clone();
            rpc::Server::sharing(env.clone(), services, options, Some(self.cluster_id.clone()), shared)
        };
        let host = &self.master.server_name().host;
        let of_master = sinks.traced(env, "Master", host, of_master);
        let host = &self.region_server.name().host;
        let of_region_server = sinks.traced(env, "RegionServer", host, of_region_server);
        let slow_calls = Arc::new(SlowCalls(self.region_server.clone()));
        let watch = slow_log_options(config).watch(slow_calls);
        let servers = vec![rpc(of_master, None), rpc(of_region_server, Some(watch))];
        servers[0].serve(listeners.master);
        servers[1].serve(listeners.region_server);
        let identity = Identity {
            cluster_id: self.cluster_id.clone(),
            zookeeper_quorum: listeners.zookeeper.local_addr().to_string(),
            memory_bytes: limits.memory.total,
            sinks: sinks.plans.len() as u64,
            files: self.files.clone(),
        };
        zk::endpoint::Endpoint::new(env.clone(), self.coordinator.clone(), limits.zookeeper.clone())
            .serve(listeners.zookeeper);
        let of_master = Arc::new(beans::master::beans(env, &self.master, &servers[0], &identity));
        let region_server = &self.region_server;
        let of_region_server =
            beans::region_server::beans(env, region_server, &servers[1], limits, &identity);
        let of_region_server = Arc::new(of_region_server);
        let peers = Peers {
            master: address_of(self.master.server_name(), listeners.master_pages.as_deref()),
            region_server: address_of(self.region_server.name(), listeners.region_server_pages.as_deref()),
        };
        if let Some(listener) = listeners.master_pages {
            let of = (of_master.clone(), &servers[0]);
            let pages = MasterPages::new(env, self.master.clone(), of, config, &peers);
            env.spawn(
                TaskClass::Service,
                web::serve(env.clone(), listener, Arc::new(pages), limits.pages.clone()),
            );
        }
        if let Some(listener) = listeners.region_server_pages {
            let (of, about) = ((of_region_server.clone(), &servers[1]), (limits, &identity, &peers));
            let pages = RegionServerPages::new(env, self.region_server.clone(), of, config, about);
            env.spawn(
                TaskClass::Service,
                web::serve(env.clone(), listener, Arc::new(pages), limits.pages.clone()),
            );
        }
        let roles = [
            Role { name: "Master", registry: of_master },
            Role { name: "RegionServer", registry: of_region_server },
        ];
        (servers, roles)
    }

    async fn initialize(&self) -> Result<(), String> {
        let failed = |error: &dyn std::fmt::Display| format!("cannot start: {error}");
        self.master.publish().await.map_err(|error| failed(&error))?;
        let server = self.names.region_server(&self.region_server.name().to_string());
        publish(&*self.coordinator, &server, bytes::Bytes::new(), Mode::Persistent)
            .await
            .map_err(|error| failed(&error))?;
        self.region_server.join(self.master.clone()).await.map_err(|error| failed(&error))?;
        self.master.initialize().await.map_err(|error| failed(&error))?;
        // Now with regions: who asks for the cluster's status at once is told of them.
        self.region_server.report().await;
        Ok(())
    }

    async fn stop(&self) -> Result<(), String> {
        let of_regions = self.region_server.stop().await;
        let of_store = self.store.close().await;
        of_regions?;
        of_store.map_err(|error| format!("master:store was not flushed ({error}); its log has the rest"))?;
        info!("stopped");
        Ok(())
    }
}

/// Where browsers find the pages at `listener`.
fn address_of(server: &ServerName, listener: Option<&dyn Listener>) -> Option<String> {
    listener.map(|listener| Peers::address(server, listener.local_addr().port()) + "/")
}

fn port_of(listener: Option<&dyn Listener>) -> u16 {
    listener.map_or(0, |listener| listener.local_addr().port())
}

/// The log can take no more. What was not acknowledged is not promised, and what was is on disk: the next start
/// replays it. Going on could only acknowledge what may be lost.
fn end_process(why: &str) {
    eprintln!("grampus: the log failed, ending at once: {why}");
    std::process::exit(1);
}

/// Where everything is, for the person who started it.
struct Addresses {
    master: SocketAddr,
    region_server: SocketAddr,
    zookeeper: SocketAddr,
    master_pages: Option<SocketAddr>,
    region_server_pages: Option<SocketAddr>,
}

impl Addresses {
    fn of(listeners: &Listeners) -> Addresses {
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

fn announce(addresses: &Addresses, limits: &Limits, dir: &Path, took: Duration) {
    let page = |address: Option<SocketAddr>| {
        address.map_or(String::new(), |address| format!("page http://{address}/"))
    };
    println!("grampus {} is ready after {} ms", env!("CARGO_PKG_VERSION"), took.as_millis());
    println!("  data       {} (every acknowledged write is on disk)", dir.display());
    println!("  memory     {}", limits.memory);
    println!("  master     {:<22} {}", addresses.master, page(addresses.master_pages));
    println!("  regions    {:<22} {}", addresses.region_server, page(addresses.region_server_pages));
    println!("  ZooKeeper  {:<22} (its protocol, for clients that look there)", addresses.zookeeper);
    if !addresses.region_server.ip().is_loopback() {
        println!("  Nobody is asked for a password: everyone who reaches these ports can read and write.");
    }
}
