//! The standalone server: a master and a region server in one process, which call each other
//! directly.
//! The processes of a cluster ([`cluster`](crate::cluster)) have the same options.

use std::fmt::Display;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use base::BoxFuture;
use base::env::{Env, Listener};
use cell::region::{RegionInfo, ServerName};
use client::Registry;
use engine::recovery::other_servers_log_dirs;
use fs::FilePath;
use layout::RootDir;
use master::chores::ChoreOptions;
use master::store::MasterStore;
use master::{Connections, Master, MasterParts};
use proto::exception::Answer;
use regionserver::{Admin, Lease, LocalCaller, RegionServer, RegionServerOptions, RegionServerParts};
use roles::services::{INTERNAL_ADMIN_METHODS, Internal, master_services, region_server_services};
use rpc::{Server, ServerOptions, Service};
use wire::service::{AdminService, ClientService, Remote};
use zk::memory::MemoryCoordinator;
use zk::names::Names;
use zk::{Coordinator, Endpoint, EndpointOptions};

use crate::process::{Life, Process};
use crate::world::World;

/// Parent of the znodes.
pub(crate) const ZNODE_PARENT: &str = "/hbase";
pub(crate) const MASTER_PORT: u16 = 16000;
pub(crate) const REGION_SERVER_PORT: u16 = 16020;
const ZOOKEEPER_PORT: u16 = 2181;

/// Adds a standalone server. Clients find it through [`registry_of`] its host.
pub fn standalone(world: &Arc<World>, name: &str) -> Arc<Process> {
    world.add_process(name, |life| async move {
        let ended = match Standalone::start(&life).await {
            Ok(node) => node.serve(&life).await,
            Err(error) => Err(error),
        };
        let reason = ended.err().unwrap_or_default();
        life.exit(&reason);
    })
}

/// Where clients find the standalone server on this host.
pub fn registry_of(host: &str) -> Registry {
    Registry::zookeeper(&format!("{host}:{ZOOKEEPER_PORT}"), ZNODE_PARENT)
}

/// A master and a region server in one process.
struct Standalone {
    coordinator: Arc<dyn Coordinator>,
    master: Arc<Master>,
    region_server: Arc<RegionServer>,
    // Open as long as the node.
    _store: MasterStore,
}

impl Standalone {
    async fn start(life: &Life) -> Result<Standalone, String> {
        let (env, fs, root) = (&life.env, &life.fs, RootDir::new(FilePath::root()));
        let start_code = env.clock.now_ms();
        let name = |port| ServerName { host: life.process.name().to_string(), port, start_code };
        let (master_name, server_name) = (name(MASTER_PORT), name(REGION_SERVER_PORT));
        let identity = root.open_or_create(&**fs, &*env.random).await.map_err(text)?;
        let master_root = root.master_data();
        let dead_masters = other_servers_log_dirs(&**fs, &master_root, &master_name).await.map_err(text)?;
        let dead_log_dirs = other_servers_log_dirs(&**fs, &root, &server_name).await.map_err(text)?;
        let exiting = life.clone();
        let on_log_failure =
            Arc::new(move |error: &wal::Error| exiting.exit(&format!("log failed: {error}")));
        let store = MasterStore::open(env, fs, &root, &master_name, &dead_masters, on_log_failure);
        let region_server = RegionServer::start(region_server_parts(life, &root, server_name, dead_log_dirs));
        let (store, region_server) = tokio::join!(store, region_server);
        let (store, region_server) = (store.map_err(text)?, region_server.map_err(text)?);
        store.set_needs_replay(true).await.map_err(text)?;
        let direct = Direct::default();
        direct.connect(&region_server);
        let coordinator: Arc<dyn Coordinator> = MemoryCoordinator::new(env);
        let on_stop = life.clone();
        let master = Master::new(MasterParts {
            env: env.clone(),
            fs: fs.clone(),
            root,
            store: store.region().clone(),
            cluster: None,
            connections: Arc::new(direct),
            coordinator: coordinator.clone(),
            names: Names::below(ZNODE_PARENT),
            server_name: master_name,
            info_port: 0,
            cluster_id: identity.cluster_id,
            quotas_enabled: false,
            on_stop: Arc::new(move |why| on_stop.exit(why)),
            chores: chore_options(),
        });
        Ok(Standalone { coordinator, master, region_server, _store: store })
    }

    /// Serves until the process ends.
    async fn serve(self, life: &Life) -> Result<(), String> {
        let env = &life.env;
        let master = master_services(&self.master, Internal::All, INTERNAL_ADMIN_METHODS);
        let region_server = region_server_services(&self.region_server, INTERNAL_ADMIN_METHODS);
        let listen = async |port| env.net.listen(any_address(port)).await.map_err(text);
        let _servers = [
            serve_rpc(env, listen(MASTER_PORT).await?, master),
            serve_rpc(env, listen(REGION_SERVER_PORT).await?, region_server),
        ];
        let endpoint = Endpoint::new(env.clone(), self.coordinator.clone(), EndpointOptions::default());
        endpoint.serve(env.net.listen(any_address(ZOOKEEPER_PORT)).await.map_err(text)?);
        self.master.publish().await.map_err(text)?;
        self.region_server.register(self.master.clone()).await.map_err(text)?;
        self.master.initialize().await.map_err(text)?;
        std::future::pending().await
    }
}

impl Drop for Standalone {
    fn drop(&mut self) {
        release_regions(&self.region_server);
    }
}

/// Frees the regions of a killed process. They refer to the region server's schedule, which refers
/// to the regions and queued compactions, so they would never be freed.
pub(crate) fn release_regions(server: &RegionServer) {
    for region in server.regions().all() {
        server.regions().remove(region.encoded_name());
    }
    server.schedule().compactions().switch(false);
}

/// Serves RPC on a socket.
pub(crate) fn serve_rpc(
    env: &Env,
    listener: Box<dyn Listener>,
    services: Vec<Arc<dyn Service>>,
) -> Arc<Server> {
    let server = Server::new(env.clone(), services, ServerOptions::default(), None);
    server.serve(listener);
    server
}

/// This port on all addresses of the host.
pub(crate) fn any_address(port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port)
}

fn region_server_parts(
    life: &Life,
    root: &RootDir,
    name: ServerName,
    dead_log_dirs: Vec<FilePath>,
) -> RegionServerParts {
    let (on_fatal, on_stop) = (life.clone(), life.clone());
    RegionServerParts {
        env: life.env.clone(),
        fs: life.fs.clone(),
        disk: regionserver::Disk::default(),
        root: root.clone(),
        name,
        info_port: 0,
        options: region_server_options(),
        dead_log_dirs,
        dead_log_records: root.log_records().to_vec(),
        log_records: root.log_records(),
        lease: Lease::unlimited(),
        quota_reader: None,
        second_level_cache: None,
        cluster_id: "cluster".into(),
        foreign_files: Arc::new(regionserver::NoForeignFiles),
        cluster_writer: None,
        file_moves: None,
        response_budget: base::budget::Budget::new(64 << 20),
        on_fatal: Arc::new(move |why| on_fatal.exit(&format!("log failed: {why}"))),
        on_stop: Arc::new(move |why| on_stop.exit(why)),
    }
}

/// Small sizes and short periods, so that flushes, compactions and log rolls are frequent.
pub(crate) fn region_server_options() -> RegionServerOptions {
    RegionServerOptions {
        compaction: regionserver::schedule::compactions::CompactionOptions::default(),
        region: engine::region::RegionOptions { flush_bytes: 64 << 10, ..Default::default() },
        memory_bytes: 64 << 20,
        resident_bytes: || None,
        memstore_bytes: 8 << 20,
        memstore_low_mark: 0.95,
        cache_bytes: 1 << 20,
        on_damage: Default::default(),
        log_durability: fs::SyncLevel::Disk,
        log_roll_bytes: 128 << 10,
        log_roll_period: Duration::from_secs(20),
        logs_max: 8,
        flush_period: Duration::from_secs(30),
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

/// Short periods of the master's chores.
pub(crate) fn chore_options() -> ChoreOptions {
    ChoreOptions {
        janitor_period: Duration::from_secs(15),
        cleaner_period: Duration::from_secs(15),
        file_ttl: Duration::from_secs(20),
        log_ttl: Duration::from_secs(20),
        ..ChoreOptions::default()
    }
}

/// The message of an error.
pub(crate) fn text(error: impl Display) -> String {
    error.to_string()
}

/// The services of the region server in the same process. The region server has a reference to the
/// master, so this one is weak: otherwise no life of the process would ever be freed.
#[derive(Default)]
struct Direct(OnceLock<Weak<RegionServer>>);

impl Direct {
    fn connect(&self, server: &Arc<RegionServer>) {
        assert!(self.0.set(Arc::downgrade(server)).is_ok(), "there is one region server");
    }

    fn server(&self) -> Arc<RegionServer> {
        self.0.get().and_then(Weak::upgrade).expect("the master is not called after the region server's end")
    }
}

impl Connections for Direct {
    fn admin(&self, _: &ServerName) -> Arc<dyn AdminService> {
        Arc::new(Admin(self.server()))
    }

    fn client(&self, _: &ServerName) -> Arc<dyn ClientService> {
        Arc::new(Remote(LocalCaller(self.server())))
    }

    fn discard_old_edits<'a>(&'a self, regions: &'a [RegionInfo]) -> BoxFuture<'a, Answer<()>> {
        Box::pin(async move { self.server().discard_old_edits(regions).await })
    }
}
