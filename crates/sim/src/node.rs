//! The nodes under test: how the roles of the product are assembled in a simulated process.
//!
//! So far there is one node, a standalone server: a master and a region server that call each other
//! directly. A cluster of separate roles replaces [`standalone`] and uses
//! [`SimEnsemble`](crate::ensemble::SimEnsemble) and [`Fenced`](crate::fenced::Fenced).

use std::fmt::Display;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use base::BoxFuture;
use base::env::Env;
use bytes::Bytes;
use cell::region::ServerName;
use client::Registry;
use engine::recovery::other_servers_log_dirs;
use fs::FilePath;
use layout::RootDir;
use master::chores::ChoreOptions;
use master::store::MasterStore;
use master::{Connections, Master, MasterParts};
use proto::exception::{Answer, JavaException};
use regionserver::{
    Admin, ClientRpc, Lease, LocalCaller, RegionServer, RegionServerOptions, RegionServerParts,
};
use rpc::{Call, Reply, Server, ServerOptions, Service};
use wire::service::{AdminService, ClientService, MasterService, Remote, dispatch_admin, dispatch_master};
use zk::memory::MemoryCoordinator;
use zk::names::Names;
use zk::{Coordinator, Endpoint, EndpointOptions};

use crate::process::{Life, Process};
use crate::world::World;

/// Parent of the znodes.
const ZNODE_PARENT: &str = "/hbase";
const MASTER_PORT: u16 = 16000;
const REGION_SERVER_PORT: u16 = 16020;
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
        let on_damage = Default::default();
        let store = MasterStore::open(env, fs, &root, &master_name, &dead_masters, on_damage, on_log_failure);
        let region_server = RegionServer::start(region_server_parts(life, &root, server_name, dead_log_dirs));
        let (store, region_server) = tokio::join!(store, region_server);
        let (store, region_server) = (store.map_err(text)?, region_server.map_err(text)?);
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
        let master: Arc<dyn Service> = Arc::new(MasterRpc(self.master.clone()));
        let client: Arc<dyn Service> = Arc::new(ClientRpc::new(self.region_server.clone()));
        let admin: Arc<dyn Service> = Arc::new(AdminRpc(self.region_server.clone()));
        let _servers = [
            serve_rpc(env, MASTER_PORT, vec![master]).await?,
            serve_rpc(env, REGION_SERVER_PORT, vec![client, admin]).await?,
        ];
        let endpoint = Endpoint::new(env.clone(), self.coordinator.clone(), EndpointOptions::default());
        endpoint.serve(env.net.listen(any_address(ZOOKEEPER_PORT)).await.map_err(text)?);
        self.master.publish().await.map_err(text)?;
        self.region_server.register(self.master.clone()).await.map_err(text)?;
        self.master.initialize().await.map_err(text)?;
        std::future::pending().await
    }
}

async fn serve_rpc(env: &Env, port: u16, services: Vec<Arc<dyn Service>>) -> Result<Arc<Server>, String> {
    let listener = env.net.listen(any_address(port)).await.map_err(text)?;
    let server = Server::new(env.clone(), services, ServerOptions::default(), None);
    server.serve(listener);
    Ok(server)
}

fn any_address(port: u16) -> SocketAddr {
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
        response_budget: base::budget::Budget::new(64 << 20),
        on_fatal: Arc::new(move |why| on_fatal.exit(&format!("log failed: {why}"))),
        on_stop: Arc::new(move |why| on_stop.exit(why)),
    }
}

/// Small sizes and short periods, so that flushes, compactions and log rolls are frequent.
fn region_server_options() -> RegionServerOptions {
    RegionServerOptions {
        compaction: regionserver::schedule::compactions::CompactionOptions::default(),
        region: engine::region::RegionOptions { flush_bytes: 64 << 10, ..Default::default() },
        memory_bytes: 64 << 20,
        memstore_bytes: 8 << 20,
        memstore_low_mark: 0.95,
        cache_bytes: 1 << 20,
        on_damage: Default::default(),
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

fn chore_options() -> ChoreOptions {
    ChoreOptions {
        janitor_period: Duration::from_secs(15),
        cleaner_period: Duration::from_secs(15),
        file_ttl: Duration::from_secs(20),
        log_ttl: Duration::from_secs(20),
        ..ChoreOptions::default()
    }
}

fn text(error: impl Display) -> String {
    error.to_string()
}

/// The services of the region server in the same process.
#[derive(Default)]
struct Direct(OnceLock<(Arc<Admin>, Arc<Remote<LocalCaller>>)>);

impl Direct {
    fn connect(&self, server: &Arc<RegionServer>) {
        let services = (Arc::new(Admin(server.clone())), Arc::new(Remote(LocalCaller(server.clone()))));
        assert!(self.0.set(services).is_ok(), "there is one region server");
    }

    fn services(&self) -> &(Arc<Admin>, Arc<Remote<LocalCaller>>) {
        self.0.get().expect("connected before the master starts")
    }
}

impl Connections for Direct {
    fn admin(&self, _: &ServerName) -> Arc<dyn AdminService> {
        self.services().0.clone()
    }

    fn client(&self, _: &ServerName) -> Arc<dyn ClientService> {
        self.services().1.clone()
    }
}

/// `MasterService` for the RPC server.
struct MasterRpc(Arc<Master>);

impl Service for MasterRpc {
    fn name(&self) -> &'static str {
        "MasterService"
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Result<Reply, JavaException>> {
        let master: Arc<dyn MasterService> = self.0.clone();
        Box::pin(async move {
            let answer: Answer<Bytes> = dispatch_master(&*master, &call.method, call.param).await;
            answer.map(Reply::message)
        })
    }
}

/// `AdminService` of the region server for the RPC server.
struct AdminRpc(Arc<RegionServer>);

impl Service for AdminRpc {
    fn name(&self) -> &'static str {
        "AdminService"
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Result<Reply, JavaException>> {
        let admin = Admin(self.0.clone());
        Box::pin(async move {
            let answer: Answer<Bytes> = dispatch_admin(&admin, &call.method, call.param).await;
            answer.map(Reply::message)
        })
    }
}
