//! A simulated cluster: masters, region servers, ZooKeeper, and their shared directory or HDFS.
//!
//! The processes run the crate `roles`, as those of `grampus master` and `grampus regionserver` do.
//! Calls between them are repeated now and then, as after a lost connection.
//!
//! * [`checks`]: what must hold when all faults have ended;
//! * `dropped_family`: a family that is dropped and added again;
//! * [`operator`]: administrative operations during the faults;
//! * [`scenario`]: runs with faults of all kinds;
//! * [`step_kills`]: runs with kills at durable steps.

pub mod checks;
mod dropped_family;
pub mod operator;
pub mod scenario;
pub mod step_kills;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use base::BoxFuture;
use base::env::{Env, TaskClass};
use bytes::Bytes;
use cell::region::ServerName;
use client::Registry;
use engine::recovery::OnDamage;
use fs::shared::Shared;
use fs::{FilePath, FileSystem};
use layout::RootDir;
use master::chores::ChoreOptions;
use master::{Connections, Master};
use proto::exception::Answer;
use regionserver::{Lease, RegionServer, RegionServerParts};
use roles::candidate::ReplayLogs;
use roles::member::{end_with_session, wait_for_cluster};
use roles::region_server::{active_master, register, stop_with_cluster};
use roles::remote::{RPC_TIMEOUT, RemoteServers};
use roles::services::{Internal, client_meta, region_server_services};
use roles::{Candidate, Elected, MasterOptions, Member};
use tokio::sync::watch;
use wire::service::{AdminService, Caller, ClientService, RegionServerStatusService, Remote};
use zk::names::Names;

use crate::disk::DiskFaults;
use crate::duplicates::{DuplicatingCaller, DuplicationOptions};
use crate::ensemble::{self, SimEnsemble, SimSession};
use crate::hdfs::SimHdfs;
use crate::node::{
    MASTER_PORT, REGION_SERVER_PORT, ZNODE_PARENT, any_address, chore_options, region_server_options,
    serve_rpc, text,
};
use crate::process::{Life, Process};
use crate::world::World;

/// Session timeout of all processes.
const SESSION_TIMEOUT: Duration = Duration::from_secs(4);
/// How long clients may take to read their responses before a region server that stops closes its
/// session, as in the product.
const DRAIN_LIMIT: Duration = Duration::from_secs(2);
/// The pause between two polls of HDFS. Short, so that some polls fail because of an outage.
const REMOTE_POLL_PERIOD: Duration = Duration::from_secs(5);
/// Which calls between the processes are repeated, and when.
const DUPLICATION: DuplicationOptions =
    DuplicationOptions { is_repeated: |_, _| true, one_in: 12, delay_max: Duration::from_secs(8) };

/// Numbers of processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterSize {
    /// Masters, of which one is active.
    pub masters: usize,
    /// Region servers.
    pub region_servers: usize,
}

/// A fault of the product that is simulated, to measure whether the checks find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Planted {
    /// No check between a sync and its acknowledgement, and no lease: a server acknowledges writes
    /// until ZooKeeper reports the end of its session.
    UnfencedLogs,
    /// No lease: a server answers reads until ZooKeeper reports the end of its session.
    EndlessLease,
    /// Some edits of `hbase:meta` are acknowledged and not written.
    LostMetaEdits,
    /// Syncs have no effect, and power may be lost.
    IgnoredSyncs,
}

/// The processes of a cluster.
pub struct Cluster {
    /// ZooKeeper.
    pub ensemble: Arc<SimEnsemble>,
    /// Masters.
    pub masters: Vec<Arc<Process>>,
    /// Region servers.
    pub region_servers: Vec<Arc<Process>>,
    /// HDFS, if the cluster uses it instead of the shared directory.
    pub hdfs: Option<Arc<SimHdfs>>,
    /// The roles that run in these processes.
    pub running: Arc<RunningRoles>,
}

/// Where the processes of a cluster have their files.
#[derive(Clone)]
enum Storage {
    /// The disk of the world.
    Shared,
    Hdfs(Weak<SimHdfs>),
}

impl Storage {
    fn hdfs(&self) -> Option<Arc<SimHdfs>> {
        match self {
            Storage::Shared => None,
            Storage::Hdfs(hdfs) => hdfs.upgrade(),
        }
    }

    /// The file system of a process.
    async fn connect(&self, life: &Life, planted: Option<Planted>) -> Arc<dyn FileSystem> {
        match (self.hdfs(), planted) {
            (Some(hdfs), _) => hdfs.connect(life).await,
            (None, Some(Planted::UnfencedLogs)) => life.fs.clone(),
            (None, _) => Arc::new(Shared::new(life.fs.clone())),
        }
    }
}

/// The roles that run, for checks. By process.
#[derive(Default)]
pub struct RunningRoles {
    masters: Mutex<BTreeMap<String, Weak<Master>>>,
    region_servers: Mutex<BTreeMap<String, RunningServer>>,
}

/// A region server that runs.
#[derive(Clone)]
struct RunningServer {
    server: Weak<RegionServer>,
    stop: watch::Sender<bool>,
}

impl RunningRoles {
    /// The master of a process, once it is active.
    pub fn master(&self, process: &str) -> Option<Arc<Master>> {
        lock(&self.masters).get(process).and_then(Weak::upgrade)
    }

    /// The region server of a process.
    pub fn region_server(&self, process: &str) -> Option<Arc<RegionServer>> {
        lock(&self.region_servers).get(process).and_then(|running| running.server.upgrade())
    }

    /// Requests a stop of the region server of a process: it closes its regions first.
    pub fn stop_region_server(&self, process: &str) {
        if let Some(running) = lock(&self.region_servers).get(process) {
            request_stop(&running.stop);
        }
    }
}

impl Cluster {
    /// Adds the processes to a world. They are not started, except those of HDFS.
    pub fn new(world: &Arc<World>, size: ClusterSize, planted: Option<Planted>, on_hdfs: bool) -> Cluster {
        let unfenced = planted == Some(Planted::UnfencedLogs);
        let hdfs = on_hdfs.then(|| SimHdfs::start(world, unfenced));
        let storage = hdfs.as_ref().map_or(Storage::Shared, |hdfs| Storage::Hdfs(Arc::downgrade(hdfs)));
        let ensemble = SimEnsemble::start(world, SESSION_TIMEOUT);
        let running: Arc<RunningRoles> = Arc::default();
        let masters = (1..=size.masters).map(|n| {
            let (ensemble, running) = (Arc::downgrade(&ensemble), running.clone());
            let storage = storage.clone();
            world.add_process(&format!("master{n}"), move |life| {
                let (ensemble, running, storage) = (ensemble.clone(), running.clone(), storage.clone());
                async move {
                    let Some(ensemble) = ensemble.upgrade() else { return };
                    let ended = run_master(&life, ensemble, &storage, &running, planted).await;
                    life.exit(&ended.err().unwrap_or_default());
                }
            })
        });
        let masters = masters.collect();
        let region_servers = (1..=size.region_servers).map(|n| {
            let (ensemble, running) = (Arc::downgrade(&ensemble), running.clone());
            let storage = storage.clone();
            world.add_process(&format!("server{n}"), move |life| {
                let (ensemble, running, storage) = (ensemble.clone(), running.clone(), storage.clone());
                async move {
                    let Some(ensemble) = ensemble.upgrade() else { return };
                    let ended = run_region_server(&life, ensemble, &storage, &running, planted).await;
                    life.exit(&ended.err().unwrap_or_default());
                }
            })
        });
        let region_servers = region_servers.collect();
        Cluster { ensemble, masters, region_servers, hdfs, running }
    }

    /// Where clients find the cluster.
    pub fn registry() -> Registry {
        Registry::zookeeper(ensemble::HOST, ZNODE_PARENT)
    }

    /// All masters and region servers.
    pub fn processes(&self) -> impl Iterator<Item = &Arc<Process>> {
        self.masters.iter().chain(&self.region_servers)
    }

    /// The process of the master that is active and initialized, with the master.
    pub fn active_master(&self) -> Option<(Arc<Process>, Arc<Master>)> {
        let active = |process: &Arc<Process>| {
            let master = self.running.master(process.name()).filter(|master| master.is_initialized());
            master.filter(|_| process.is_running()).map(|master| (process.clone(), master))
        };
        self.masters.iter().find_map(active)
    }
}

/// Whether leases of region servers do not end by their own clocks.
fn is_endless(planted: Option<Planted>) -> bool {
    matches!(planted, Some(Planted::EndlessLease | Planted::UnfencedLogs))
}

/// The session and the member of a process.
async fn join(
    life: &Life,
    ensemble: &Arc<SimEnsemble>,
    storage: &Storage,
    port: u16,
    planted: Option<Planted>,
) -> (Arc<SimSession>, Member) {
    let name =
        ServerName { host: life.process.name().to_string(), port, start_code: life.env.clock.now_ms() };
    // As in the product, the files are opened before the session.
    let fs = storage.connect(life, planted).await;
    let session = ensemble.connect(life).await;
    let exiting = life.clone();
    if planted == Some(Planted::IgnoredSyncs) {
        let faults = life.process.disk_faults();
        life.process.set_disk_faults(DiskFaults { ignores_syncs: true, ..faults });
    }
    let member = Member {
        env: life.env.clone(),
        fs,
        root: RootDir::new(FilePath::root()),
        coordinator: session.clone(),
        names: Names::below(ZNODE_PARENT),
        name,
        info_port: 0,
        end_process: Arc::new(move |why| exiting.exit(why)),
    };
    if port == REGION_SERVER_PORT && is_endless(planted) {
        let (session, end_process) = (Arc::downgrade(&session), member.end_process.clone());
        life.env.spawn(TaskClass::Service, SimSession::wait_for_reported_end(session, end_process));
    } else {
        end_with_session(&member.env, &*member.coordinator, member.end_process.clone());
    }
    (session, member)
}

async fn run_master(
    life: &Life,
    ensemble: Arc<SimEnsemble>,
    storage: &Storage,
    running: &RunningRoles,
    planted: Option<Planted>,
) -> Result<(), String> {
    let env = &life.env;
    let listener = env.net.listen(any_address(MASTER_PORT)).await.map_err(text)?;
    let (_session, member) = join(life, &ensemble, storage, MASTER_PORT, planted).await;
    let identity = member.root.open_or_create(&*member.fs, &*env.random).await.map_err(text)?;
    let candidate = Candidate::new(member.clone()).await?;
    let mut services = vec![client_meta(&member.coordinator, &member.names)];
    services.extend(candidate.services());
    let _rpc = serve_rpc(env, listener, services);
    if candidate.win().await? == Elected::ShutDown {
        return Ok(());
    }
    let on_stop = life.clone();
    let active = candidate
        .activate(MasterOptions {
            cluster_id: identity.cluster_id,
            remote_dirs: Vec::new(),
            quotas_enabled: false,
            on_stop: Arc::new(move |why| on_stop.exit(why)),
            connections: Arc::new(RepeatedCalls::new(env, planted)),
            // The operator balances, at times that the history knows.
            chores: ChoreOptions { balancer_period: Duration::from_secs(86_400), ..chore_options() },
            replay_logs: replay_logs(&member),
        })
        .await?;
    lock(&running.masters).insert(life.process.name().to_string(), Arc::downgrade(active.master()));
    let active = active.publish().await?;
    active.master().initialize().await.map_err(text)?;
    life.process.record("is the active master");
    std::future::pending::<()>().await;
    active.close().await
}

/// Puts the edits in the logs of a standalone server into store files.
fn replay_logs(member: &Member) -> ReplayLogs {
    let (env, fs, root) = (member.env.clone(), member.fs.clone(), member.root.clone());
    Arc::new(move |master_store| {
        let (env, fs, root) = (env.clone(), fs.clone(), root.clone());
        Box::pin(async move {
            let replayed = adoption::replay_logs(&env, &fs, &root, OnDamage::default(), &master_store).await;
            replayed.map(drop).map_err(text)
        })
    })
}

async fn run_region_server(
    life: &Life,
    ensemble: Arc<SimEnsemble>,
    storage: &Storage,
    running: &RunningRoles,
    planted: Option<Planted>,
) -> Result<(), String> {
    let env = &life.env;
    let listener = env.net.listen(any_address(REGION_SERVER_PORT)).await.map_err(text)?;
    let (session, member) = join(life, &ensemble, storage, REGION_SERVER_PORT, planted).await;
    let Member { coordinator, names, .. } = &member;
    wait_for_cluster(env, &**coordinator, names).await?;
    member.root.open_or_create(&*member.fs, &*env.random).await.map_err(text)?;
    let master = DuplicatingCaller::new(active_master(env, coordinator, names), env.clone(), DUPLICATION);
    let master: Arc<dyn RegionServerStatusService> = Arc::new(Remote(master));
    let _alive = register(&member, &*master).await?;
    let stop = watch::Sender::new(false);
    let mut parts = region_server_parts(life, &member, &session, &stop);
    if let Some(hdfs) = storage.hdfs() {
        parts.options.log_durability = hdfs.durability();
        parts.disk = regionserver::Disk { poll_period: REMOTE_POLL_PERIOD, ..regionserver::Disk::remote() };
    }
    if is_endless(planted) {
        parts.lease = Lease::unlimited();
    }
    let server = RegionServer::start(parts).await;
    let server = OpenServer(server.map_err(text)?);
    let registered = RunningServer { server: Arc::downgrade(&server.0), stop: stop.clone() };
    lock(&running.region_servers).insert(life.process.name().to_string(), registered);
    let mut services = vec![client_meta(coordinator, names)];
    services.extend(region_server_services(&server.0, Internal::None));
    let rpc = serve_rpc(env, listener, services);
    server.0.join(master);
    let on_shutdown = stop.clone();
    let request = Arc::new(move |_: &str| request_stop(&on_shutdown));
    stop_with_cluster(env, coordinator.clone(), names, request);
    // The sender lives as long as this function.
    let _ = stop.subscribe().wait_for(|stop| *stop).await;
    let stopped = server.0.stop().await;
    env.timeout(DRAIN_LIMIT, rpc.stop()).await;
    session.close();
    rpc.stop().await;
    stopped
}

fn region_server_parts(
    life: &Life,
    member: &Member,
    session: &Arc<SimSession>,
    stop: &watch::Sender<bool>,
) -> RegionServerParts {
    let (on_fatal, on_stop, lease) = (life.clone(), stop.clone(), Arc::downgrade(session));
    RegionServerParts {
        env: life.env.clone(),
        fs: member.fs.clone(),
        disk: regionserver::Disk::default(),
        root: member.root.clone(),
        log_records: member.root.log_records_of(&member.name),
        name: member.name.clone(),
        info_port: 0,
        options: region_server_options(),
        dead_log_dirs: Vec::new(),
        dead_log_records: Vec::new(),
        lease: Lease::new(move || lease.upgrade().is_some_and(|session| session.is_valid())),
        quota_reader: None,
        second_level_cache: None,
        cluster_id: "cluster".into(),
        foreign_files: Arc::new(regionserver::NoForeignFiles),
        cluster_writer: None,
        file_moves: None,
        response_budget: base::budget::Budget::new(64 << 20),
        on_fatal: Arc::new(move |why| on_fatal.exit(&format!("log failed: {why}"))),
        on_stop: Arc::new(move |_| request_stop(&on_stop)),
    }
}

/// A region server. A killed process leaves its regions open, which refer to the region server's
/// schedule, and this to the regions. They are freed when this is dropped.
struct OpenServer(Arc<RegionServer>);

impl Drop for OpenServer {
    fn drop(&mut self) {
        crate::node::release_regions(&self.0);
    }
}

/// Connections to region servers on which some calls are repeated.
struct RepeatedCalls {
    env: Env,
    servers: RemoteServers,
    planted: Option<Planted>,
}

impl RepeatedCalls {
    fn new(env: &Env, planted: Option<Planted>) -> RepeatedCalls {
        let servers = RemoteServers::new(env.clone(), RPC_TIMEOUT);
        RepeatedCalls { env: env.clone(), servers, planted }
    }
}

impl Connections for RepeatedCalls {
    fn admin(&self, server: &ServerName) -> Arc<dyn AdminService> {
        let caller = self.servers.caller(server);
        Arc::new(Remote(DuplicatingCaller::new(caller, self.env.clone(), DUPLICATION)))
    }

    fn client(&self, server: &ServerName) -> Arc<dyn ClientService> {
        match self.planted {
            Some(Planted::LostMetaEdits) => {
                Arc::new(Remote(LosingCaller { inner: self.servers.caller(server), env: self.env.clone() }))
            }
            _ => self.servers.client(server),
        }
    }

    fn forget(&self, server: &ServerName) {
        self.servers.forget(server);
    }
}

/// Loses some writes of the master.
struct LosingCaller<C> {
    inner: C,
    env: Env,
}

impl<C: Caller> Caller for LosingCaller<C> {
    fn call(
        &self,
        service: &'static str,
        method: &'static str,
        param: Bytes,
        cells: Bytes,
    ) -> BoxFuture<'_, Answer<(Bytes, Bytes)>> {
        if method == "Multi" && self.env.random.next_u64().is_multiple_of(8) {
            return Box::pin(std::future::ready(Ok((Bytes::new(), Bytes::new()))));
        }
        self.inner.call(service, method, param, cells)
    }
}

fn request_stop(stop: &watch::Sender<bool>) {
    stop.send_replace(true);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
