//! `grampus start`: master and region server in this process.
//!
//! The options, ports and data directory are checked before anything is changed. An error message
//! is a single line. Then the two roles, master and region server, start concurrently. Clients may
//! connect while regions are being opened.
#![deny(clippy::print_stdout, reason = "ends the server when the reader of its output has gone")]

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base::config::{Config, RootUri, Sources};
use base::env::{Env, Listener};
use cell::region::ServerName;
use console::{Identity, Peers};
use engine::recovery::other_servers_log_dirs;
use master::store::{MasterStore, cannot_open};
use master::{Master, MasterParts};
use os::{Runtimes, service_manager};
use regionserver::{Lease, RegionServer, RegionServerParts};
use tracing::{info, warn};
use zk::Coordinator;
use zk::coordinator::{Mode, publish};
use zk::memory::MemoryCoordinator;
use zk::names::Names;

use crate::address::advertised_host;
use crate::arguments::ServerArguments;
use crate::data::{DataDirectory, Users};
use crate::direct::Direct;
use crate::host::{Host, end_process, listen, pages_url, port_of};
use crate::logging;
use crate::output::print_line;
use crate::rest;
use crate::second_level_cache;
use crate::settings::{Limits, chore_options, region_server_options};
use crate::signals::Stop;
use crate::sinks::{RoleMetrics, Sinks};
use crate::thrift::{self, ThriftListener};
use crate::tiers;
use crate::watchdog::{Probe, Watchdog};

/// If no write finishes for this long during a stop, the disk does not respond. The process then
/// exits without completing the stop.
const STALL_TIMEOUT: Duration = Duration::from_secs(60);

/// Environment variables that begin with `GRAMPUS_` but are not derived from the key of an option.
const OTHER_VARIABLES: [&str; 5] =
    ["GRAMPUS_LOG", "GRAMPUS_ZOOKEEPER", "GRAMPUS_DATA", "GRAMPUS_BIND", "GRAMPUS_HOST"];

/// Starts both roles, serves until a stop is requested, and stops.
pub fn run(arguments: &ServerArguments) -> Result<(), String> {
    let process = Process::start(arguments)?;
    check_not_distributed(&process.config)?;
    os::block_on(serve(process))
}

/// Refuses the configuration of a cluster: one process alone is not what its operator wants.
fn check_not_distributed(config: &Config) -> Result<(), String> {
    const KEY: &str = "hbase.cluster.distributed";
    let is_ignored = config.unsafe_ignored.split(',').any(|key| key.trim() == KEY);
    if !config.is_distributed || is_ignored {
        return Ok(());
    }
    let reason = format!(
        "`grampus start` runs one process, and to ignore this key would be unsafe. Start `grampus master` and \
         `grampus regionserver` instead, or one process nevertheless with --set grampus.unsafe.ignore.keys={KEY}"
    );
    Err(config.refused(KEY, reason).to_string())
}

/// A process that runs roles: its options and threads.
pub(crate) struct Process {
    pub(crate) env: Env,
    pub(crate) runtimes: Arc<Runtimes>,
    pub(crate) config: Config,
    pub(crate) sinks: Sinks,
    pub(crate) open_files_max: u64,
}

impl Process {
    /// Loads the options, and starts logging and threads.
    ///
    /// # Errors
    /// One line that states what is wrong.
    pub(crate) fn start(arguments: &ServerArguments) -> Result<Process, String> {
        let config = load_config(arguments)?;
        let sinks = Sinks::load(&config, arguments.config.as_deref())?;
        logging::start(&config)?;
        for warning in config.warnings() {
            warn!("{warning}");
        }
        sinks.log_summary();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let open_files_max = crate::limits::check(&config, cores)?;
        let runtimes = Runtimes::start(cores, cores.div_ceil(2))
            .map_err(|error| format!("cannot start threads: {error}"))?;
        let runtimes = Arc::new(runtimes);
        Ok(Process { env: os::env(runtimes.clone()), runtimes, config, sinks, open_files_max })
    }
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
            "hbase.rest.host",
            "hbase.regionserver.thrift.ipaddress",
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

/// The listening sockets of a server, all bound before anything is changed.
struct Listeners {
    master: Box<dyn Listener>,
    region_server: Box<dyn Listener>,
    zookeeper: Box<dyn Listener>,
    master_pages: Option<Box<dyn Listener>>,
    region_server_pages: Option<Box<dyn Listener>>,
    rest: Option<Box<dyn Listener>>,
    thrift: Vec<ThriftListener>,
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
            rest: rest::bind(env, config).await?,
            thrift: thrift::bind(env, config).await?,
        })
    }
}

async fn serve(process: Process) -> Result<(), String> {
    let Process { env, runtimes, config, sinks, open_files_max } = process;
    let started = env.clock.monotonic();
    let limits = Limits::from_config(&config, open_files_max);
    let mut listeners = Listeners::bind(&env, &config).await?;
    let mut data = DataDirectory::open(&env, &config, Users::One).await?;
    if let Some(warning) = crate::limits::check_store_files(&*data.fs, &data.root, open_files_max).await {
        warn!("{warning}");
        data.disk.warnings.push(warning);
    }
    let stop = Stop::new();
    let node = Node::start(&env, &config, &limits, &data, &listeners, &stop).await?;
    let addresses = Addresses::from_listeners(&listeners);
    let rest_listener = listeners.rest.take();
    let thrift_listeners = std::mem::take(&mut listeners.thrift);
    let (servers, roles) = node.serve(&env, &config, &limits, listeners, &sinks);
    sinks.start(&env, roles);
    node.initialize().await?;
    rest::serve(&env, &config, open_files_max, (&node.coordinator, &node.names), rest_listener)?;
    thrift::serve(&env, &config, open_files_max, (&node.coordinator, &node.names), thrift_listeners);
    let stop_signal = stop.listen().map_err(|error| format!("cannot wait for signals: {error}"))?;
    announce(&addresses, &limits, &config.root, env.clock.monotonic() - started);
    service_manager::send_state(service_manager::READY);
    let probes = vec![
        Probe::Master(addresses.master),
        Probe::RegionServer(addresses.region_server),
        Probe::Meta(addresses.region_server),
    ];
    let watchdog = Watchdog::start(&env, runtimes, probes);
    let reason = stop_signal.wait().await;
    watchdog.enter_stop();
    service_manager::send_state(service_manager::STOPPING);
    print_line!("stopping ({reason}): flushing memstores");
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
        let on_log_failure =
            |error: &wal::Error| end_process(&format!("the write-ahead log of the master failed: {error}"));
        let on_log_failure = Arc::new(on_log_failure);
        // This process holds the lock of the directory, so no other process writes to the logs of
        // earlier runs.
        let unreadable = |error: fs::Error| format!("cannot list the logs of earlier runs: {error}");
        let store_root = data.root.master_data();
        let dead_master_log_dirs =
            other_servers_log_dirs(&*data.fs, &store_root, &master_name).await.map_err(unreadable)?;
        let dead_server_log_dirs =
            other_servers_log_dirs(&*data.fs, &data.root, &server_name).await.map_err(unreadable)?;
        let store =
            MasterStore::open(env, &data.fs, &data.root, &master_name, &dead_master_log_dirs, on_log_failure);
        let on_stop = stop.clone();
        let region_server = RegionServer::start(RegionServerParts {
            env: env.clone(),
            fs: data.fs.clone(),
            disk: data.disk.clone(),
            root: data.root.clone(),
            name: server_name,
            dead_log_dirs: dead_server_log_dirs,
            dead_log_records: data.root.log_records().to_vec(),
            log_records: data.root.log_records(),
            lease: Lease::unlimited(),
            quota_reader: None,
            second_level_cache: second_level_cache::open(env, config).await,
            cluster_id: data.cluster_id.clone(),
            foreign_files: crate::foreign_files::open(env, config)?,
            cluster_writer: Some(roles::region_server::cluster_writer(env, coordinator.clone(), &names)),
            file_moves: tiers::moves(config, data.disk.tiers.as_ref()),
            info_port: port_of(listeners.region_server_pages.as_deref()),
            options: region_server_options(config, &limits.memory),
            response_budget: limits.shared.response_budget().clone(),
            on_fatal: Arc::new(end_process),
            on_stop: Arc::new(move |why| on_stop.request(why)),
        });
        let (store, region_server) = tokio::join!(store, region_server);
        let store = store.map_err(|error| cannot_open(&error, &[]))?;
        let region_server =
            region_server.map_err(|error| format!("cannot start the region server: {error}"))?;
        let recorded = store.set_needs_replay(true).await;
        recorded.map_err(|error| format!("cannot write master:store: {error}"))?;
        let direct = Arc::new(Direct::default());
        direct.connect(&region_server);
        let on_stop = stop.clone();
        let master = Master::new(MasterParts {
            env: env.clone(),
            fs: data.fs.clone(),
            root: data.root.clone(),
            store: store.region().clone(),
            cluster: None,
            connections: direct,
            coordinator: coordinator.clone(),
            names: names.clone(),
            server_name: master_name,
            info_port: port_of(listeners.master_pages.as_deref()),
            cluster_id: data.cluster_id.clone(),
            quotas_enabled: config.quotas_enabled,
            on_stop: Arc::new(move |why| on_stop.request(why)),
            chores: chore_options(config, &data.disk),
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
        let host = Host {
            env,
            config,
            limits,
            sinks,
            coordinator: &self.coordinator,
            names: &self.names,
            identity: Identity {
                cluster_id: self.cluster_id.clone(),
                zookeeper_quorum: listeners.zookeeper.local_addr().to_string(),
                memory: limits.memory,
                shared: limits.shared.clone(),
                sinks: sinks.count(),
                files: self.file_instruments.clone(),
            },
            peers: Peers {
                master: pages_url(self.master.server_name(), listeners.master_pages.as_deref()),
                region_server: pages_url(self.region_server.name(), listeners.region_server_pages.as_deref()),
            },
            accepts_internal_calls: false,
        };
        let services = host.master_services(&self.master);
        let master_rpc = host.rpc_server("Master", &self.master.server_name().host, services, None);
        let region_server_rpc = host.region_server_rpc(&self.region_server);
        master_rpc.serve(listeners.master);
        region_server_rpc.serve(listeners.region_server);
        zk::endpoint::Endpoint::new(env.clone(), self.coordinator.clone(), limits.zookeeper.clone())
            .serve(listeners.zookeeper);
        let master_metrics = host.serve_master_pages(&self.master, &master_rpc, listeners.master_pages);
        let region_server_metrics = host.serve_region_server_pages(
            &self.region_server,
            &region_server_rpc,
            listeners.region_server_pages,
        );
        let metrics = vec![("Master", master_metrics), ("RegionServer", region_server_metrics)];
        (vec![master_rpc, region_server_rpc], metrics)
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

/// The listening addresses, which are printed at start.
struct Addresses {
    master: SocketAddr,
    region_server: SocketAddr,
    zookeeper: SocketAddr,
    master_pages: Option<SocketAddr>,
    region_server_pages: Option<SocketAddr>,
    rest: Option<SocketAddr>,
    /// The names of the Thrift services, and their addresses.
    thrift: Vec<(&'static str, SocketAddr)>,
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
            rest: page(&listeners.rest),
            thrift: listeners.thrift.iter().map(ThriftListener::name_and_address).collect(),
        }
    }
}

fn announce(addresses: &Addresses, limits: &Limits, root: &RootUri, took: Duration) {
    let page = |address: Option<SocketAddr>| {
        address.map_or(String::new(), |address| format!("page http://{address}/"))
    };
    print_line!("grampus {} is ready after {} ms", env!("CARGO_PKG_VERSION"), took.as_millis());
    print_line!("  data       {root} (every acknowledged write is on disk)");
    print_line!("  memory     {}", limits.memory);
    print_line!("  master     {:<22} {}", addresses.master, page(addresses.master_pages));
    print_line!("  regions    {:<22} {}", addresses.region_server, page(addresses.region_server_pages));
    print_line!("  ZooKeeper  {:<22} (for clients that connect through ZooKeeper)", addresses.zookeeper);
    if let Some(rest) = addresses.rest {
        print_line!("  REST       http://{rest}/");
    }
    for (name, address) in &addresses.thrift {
        print_line!("  {name}   {address}");
    }
    let thrift = addresses.thrift.iter().map(|(_, address)| Some(*address));
    if [Some(addresses.region_server), addresses.rest]
        .into_iter()
        .chain(thrift)
        .flatten()
        .any(|address| !address.ip().is_loopback())
    {
        print_line!(
            "  WARNING: no authentication; every client that can reach these ports can read and write."
        );
    }
}
