//! A master of a cluster.
//!
//! Several masters may run. One of them is elected and active; the others wait. A master that loses
//! its session or its znode ends immediately. The new master first fences the logs of the old one,
//! so that the old master can journal nothing any more, and then finishes its procedures.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use base::BoxFuture;
use base::env::{Env, TaskClass};
use cell::region::ServerName;
use engine::Region;
use fs::Occupied;
use master::chores::ChoreOptions;
use master::store::{MasterStore, cannot_open, fence_earlier_masters};
use master::{Cluster, Connections, Master, MasterParts};
use rpc::Service;
use tracing::{info, warn};
use zk::coordinator::{Mode, publish};
use zk::election::Election;
use zk::servers::ServerTracker;

use crate::cluster_id;
use crate::cluster_switch::{ClusterSwitch, Elected};
use crate::member::{EndProcess, Member};
use crate::services::{Internal, master_services};
use crate::standby::Standby;
use crate::unpublished::Unpublished;
use crate::watchdog::{self, SeenMaster};

/// The services of a master that exist before it is active.
const SERVICES: [&str; 3] = ["MasterService", "RegionServerStatusService", "AdminService"];
/// The longest time between two reads of the live region servers.
const READ_PERIOD: Duration = Duration::from_secs(10);
/// The longest time to resolve the name of this machine.
const RESOLVE_LIMIT: Duration = Duration::from_secs(5);
/// The pause before another attempt to read the live region servers.
const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// A master that takes part in the election.
pub struct Candidate {
    member: Member,
    election: Arc<Election>,
    standby: [Arc<Standby>; 3],
    seen: SeenMaster,
    // Marks this process as alive until it ends. `None` if the storage has no such marks.
    alive: Option<Occupied>,
}

/// The settings of an active master.
pub struct MasterOptions {
    /// Identifies the cluster; from its directory.
    pub cluster_id: String,
    /// The URIs of the root directory and of the directory of logs if they are on HDFS, for
    /// messages.
    pub remote_dirs: Vec<String>,
    /// Whether `hbase:quota` is used.
    pub quotas_enabled: bool,
    /// Called with the reason when a client stops the master.
    pub on_stop: Arc<dyn Fn(&str) + Send + Sync>,
    /// Connections to region servers.
    pub connections: Arc<dyn Connections>,
    /// Periods of the chores.
    pub chores: ChoreOptions,
    /// Puts the edits in all logs of the directory into store files. Called before the master is
    /// active if a standalone server may have used the directory last, or if the directory is new.
    pub replay_logs: ReplayLogs,
}

/// See [`MasterOptions::replay_logs`]. Called with the region of `master:store`, which shows
/// whether another master has taken over.
pub type ReplayLogs = Arc<dyn Fn(Arc<Region>) -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

impl Candidate {
    /// Marks the process as alive.
    ///
    /// # Errors
    /// One line that states why it cannot take part.
    pub async fn new(member: Member) -> Result<Candidate, String> {
        let alive = watchdog::mark_alive(&*member.fs, &member.root, &member.name).await?;
        let Member { env, coordinator, names, name, info_port, .. } = &member;
        // With marks, the watchdog deletes the znode of an earlier process that has ended. Without
        // them, the address is the only proof, unless another machine may have the same name.
        let replaces_earlier = alive.is_none() && resolves_here(env, &name.host).await;
        let election = Election::new(coordinator.clone(), env, names.clone(), name.clone(), *info_port)
            .replacing_earlier(replaces_earlier);
        Ok(Candidate {
            election: Arc::new(election),
            standby: SERVICES.map(Standby::new),
            seen: SeenMaster::default(),
            member,
            alive,
        })
    }

    /// Whether the storage shows to other processes when this one has ended.
    pub fn is_marked_alive(&self) -> bool {
        self.alive.is_some()
    }

    /// The services of a master. They refuse calls until the master is active.
    pub fn services(&self) -> impl Iterator<Item = Arc<dyn Service>> {
        self.standby.iter().map(|service| service.clone() as Arc<dyn Service>)
    }

    /// The active master while this one waits, and the time of its own election.
    pub fn seen_master(&self) -> SeenMaster {
        self.seen.clone()
    }

    /// Waits until this master is elected, or the cluster is shut down. After an election, the
    /// process ends when the master is no longer active.
    ///
    /// # Errors
    /// If the election failed, for example because the session expired.
    pub async fn win(&self) -> Result<Elected, String> {
        let Member { env, fs, root, coordinator, names, name, end_process, .. } = &self.member;
        let switch = ClusterSwitch::new(names);
        let elected = tokio::select! {
            biased;
            elected = switch.elect(&self.election, &**coordinator, &*env.clock) => {
                elected.map_err(|error| format!("the election failed: {error}"))?
            }
            never = watchdog::watch_active_master(env, &**fs, root, &**coordinator, names, &self.seen) => {
                match never {}
            }
        };
        if elected == Elected::ShutDown {
            info!(%name, "the cluster is shut down; this master is not needed");
            return Ok(elected);
        }
        info!(%name, "this master is active");
        self.seen.set_elected(env.clock.now_ms());
        let (election, end_process) = (self.election.clone(), end_process.clone());
        env.spawn(TaskClass::Service, async move {
            if let Some(cause) = election.lost().await {
                end_process(&format!("this master is no longer active: {cause}"));
            }
        });
        Ok(elected)
    }

    /// Ends the participation, so that another master is elected.
    pub async fn resign(&self) {
        self.election.resign().await;
    }

    /// Takes over from the previous master, after [`win`](Self::win): fences its logs, and opens
    /// its journal. The services serve from then on.
    ///
    /// # Errors
    /// One line that states why the master cannot start.
    pub async fn activate(&self, options: MasterOptions) -> Result<ActiveMaster, String> {
        let Member { env, fs, root, coordinator, names, name, info_port, .. } = &self.member;
        self.publish_cluster_id(&options.cluster_id).await?;
        let store = self.open_store(&options.remote_dirs).await?;
        let mut tracker = ServerTracker::new(coordinator.clone(), names);
        let live = tracker.live().await;
        let live = live.map_err(|error| format!("cannot read the region servers: {error}"))?;
        watchdog::delete_unused(&**fs, root, &live).await;
        let living = self.living(&live).await;
        // First: a new `master:store` counts as one that needs a replay only until a master has
        // become active.
        take_over_logs(&store, &living, &options.replay_logs).await?;
        let active_since_ms = store
            .become_active(env.clock.now_ms())
            .await
            .map_err(|error| format!("cannot write master:store: {error}"))?;
        let master = Master::new(MasterParts {
            env: env.clone(),
            fs: fs.clone(),
            root: root.clone(),
            store: store.region().clone(),
            cluster: Some(Cluster { live: living, active_since_ms }),
            connections: options.connections,
            coordinator: coordinator.clone(),
            names: names.clone(),
            server_name: name.clone(),
            info_port: *info_port,
            cluster_id: options.cluster_id,
            quotas_enabled: options.quotas_enabled,
            on_stop: options.on_stop,
            chores: options.chores,
        });
        for service in master_services(&master, Internal::None, Internal::None) {
            if let Some(standby) = self.standby.iter().find(|standby| standby.name() == service.name()) {
                standby.activate(service);
            }
        }
        Ok(ActiveMaster { member: self.member.clone(), master, store, tracker, live })
    }

    /// Publishes the id of the cluster, so that other processes can check their directories. The
    /// rest of the start can take long.
    async fn publish_cluster_id(&self, id: &str) -> Result<(), String> {
        let Member { env, fs, root, coordinator, names, name, .. } = &self.member;
        // Again: a process that created the directory at the same time may have replaced the id. So
        // may one that found the file damaged while this master waited; the id in ZooKeeper counts.
        let stored = root.stored_cluster_id(&**fs).await;
        let stored = stored.map_err(|error| format!("cannot read the id of the cluster: {error}"))?;
        let has_changed = stored.is_some_and(|stored| stored != id);
        if has_changed && !cluster_id::write_back(&self.member, id).await? {
            return Err("the cluster id in the root directory has changed; restart this process".into());
        }
        // Again: another master may have started the cluster since the start of this process.
        cluster_id::check(&self.member, id, cluster_id::Role::Master).await?;
        let data = zk::payload::cluster_id(&format!("master:{}", name.port), &*env.random, id);
        let published = publish(&**coordinator, &names.hbaseid(), data, Mode::Persistent).await;
        published.map(drop).map_err(|error| format!("cannot publish the id of the cluster: {error}"))
    }

    /// Opens `master:store` after fencing the logs of all earlier masters. `remote_dirs` as in
    /// [`MasterOptions`].
    async fn open_store(&self, remote_dirs: &[String]) -> Result<MasterStore, String> {
        let Member { env, fs, root, name, end_process, .. } = &self.member;
        let dead = fence_earlier_masters(&**fs, &*env.random, root, name).await;
        let dead = dead.map_err(|error| format!("cannot fence the logs of earlier masters: {error}"))?;
        let on_failure = on_log_failure(end_process);
        let opened = MasterStore::open(env, fs, root, name, &dead, on_failure).await;
        opened.map_err(|error| cannot_open(&error, remote_dirs))
    }

    /// Those of `servers`, which all have sessions, with a process that has not ended.
    async fn living(&self, servers: &BTreeSet<ServerName>) -> Vec<ServerName> {
        let mut living = Vec::with_capacity(servers.len());
        for server in servers {
            if !watchdog::has_ended(&*self.member.fs, &self.member.root, server).await {
                living.push(server.clone());
            }
        }
        living
    }
}

/// Whether `host` resolves to an address of this machine that other machines can use. False if
/// that takes too long.
async fn resolves_here(env: &Env, host: &str) -> bool {
    env.timeout(RESOLVE_LIMIT, env.net.resolves_here(host)).await.unwrap_or(false)
}

/// Puts the edits in all logs into store files, if a standalone server may have used the directory
/// last. `living` are the region servers whose processes may run.
async fn take_over_logs(
    store: &MasterStore,
    living: &[ServerName],
    replay_logs: &ReplayLogs,
) -> Result<(), String> {
    let failed = |error: engine::Error| format!("cannot use master:store: {error}");
    if !store.needs_replay().await.map_err(failed)? {
        return Ok(());
    }
    // Region servers register only with an active master. So there are some only if `master:store`
    // was lost while the cluster ran, or if sessions of ended servers have not expired yet. The
    // replay would write to regions that a live server has open.
    if let Some(server) = living.first() {
        return Err(format!(
            "cannot replay the logs of earlier runs: region server {server} is live; stop all region servers, and \
             start the master when their sessions have expired"
        ));
    }
    info!("a standalone server may have used this directory last: replaying all logs");
    let replayed = replay_logs(store.region().clone()).await;
    replayed.map_err(|error| format!("cannot replay the logs of earlier runs: {error}"))?;
    store.set_needs_replay(false).await.map_err(failed)
}

/// Ends the process of a master whose log failed.
pub fn on_log_failure(end_process: &EndProcess) -> Arc<dyn Fn(&wal::Error) + Send + Sync> {
    let end_process = end_process.clone();
    Arc::new(move |error| end_process(&format!("the write-ahead log of the master failed: {error}")))
}

/// The active master.
pub struct ActiveMaster {
    member: Member,
    master: Arc<Master>,
    store: MasterStore,
    tracker: ServerTracker,
    live: BTreeSet<ServerName>,
}

impl ActiveMaster {
    /// The master.
    pub fn master(&self) -> &Arc<Master> {
        &self.master
    }

    /// Publishes the cluster, and starts to follow the region servers. Complete the start with
    /// [`Master::initialize`]. Without region servers, that does not end.
    ///
    /// # Errors
    /// One line that states why the master cannot start.
    pub async fn publish(self) -> Result<RunningMaster, String> {
        let ActiveMaster { member, master, store, tracker, live } = self;
        let Member { env, fs, root, coordinator, names, name, .. } = &member;
        let failed = |error: &dyn std::fmt::Display| format!("cannot start: {error}");
        // The running cluster: region servers stop when this znode is deleted.
        let running =
            zk::payload::running(&format!("master:{}", name.port), &*env.random, env.clock.now_ms());
        publish(&**coordinator, &names.running(), running, Mode::Persistent)
            .await
            .map_err(|error| failed(&error))?;
        master.publish_cluster_id().await.map_err(|error| failed(&error))?;
        follow_region_servers(&member, &master, tracker, live);
        watchdog::watch_region_servers(
            env,
            fs.clone(),
            root.clone(),
            Arc::downgrade(&master),
            coordinator.clone(),
            names.clone(),
        );
        Ok(RunningMaster { master, store })
    }
}

/// An active master that follows the region servers.
pub struct RunningMaster {
    master: Arc<Master>,
    store: MasterStore,
}

impl RunningMaster {
    /// The master.
    pub fn master(&self) -> &Arc<Master> {
        &self.master
    }

    /// Flushes and closes the journal.
    ///
    /// # Errors
    /// One line. All edits are in the log.
    pub async fn close(self) -> Result<(), String> {
        let closed = self.store.close().await;
        closed.map_err(|error| format!("cannot flush master:store: {error}; its log has the edits"))
    }
}

/// Starts a task that expires region servers whose sessions have ended.
fn follow_region_servers(
    member: &Member,
    master: &Arc<Master>,
    mut tracker: ServerTracker,
    mut seen: BTreeSet<ServerName>,
) {
    let (master, env) = (Arc::downgrade(master), member.env.clone());
    let mut unpublished = Unpublished::default();
    member.env.spawn(TaskClass::Service, async move {
        loop {
            match tracker.live().await {
                Ok(live) => {
                    let Some(master) = master.upgrade() else { return };
                    for server in seen.difference(&live) {
                        master.expire(server, "its session with ZooKeeper has ended").await;
                    }
                    let registered = master.context().servers.live_names();
                    for server in unpublished.overdue(&registered, &live, env.clock.monotonic()) {
                        master.expire(&server, "it has registered, but has no znode").await;
                    }
                    drop(master);
                    seen = live;
                    match env.timeout(READ_PERIOD, tracker.changed()).await {
                        None | Some(Ok(())) => continue,
                        Some(Err(_)) => {}
                    }
                }
                Err(zk::Error::SessionExpired) => return,
                Err(error) => warn!(%error, "cannot read the live region servers; retrying"),
            }
            env.clock.sleep(RETRY_PAUSE).await;
        }
    });
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use base::testing::env;
    use bytes::Bytes;
    use fs::faulty::{Fault, Faulty, Plan, Rule};
    use fs::memory::MemoryFs;
    use fs::{FilePath, FileSystem};
    use layout::RootDir;
    use zk::{Coordinator, MemoryCoordinator, Names};

    use super::*;
    use crate::remote::{RPC_TIMEOUT, RemoteServers};

    fn server(start_code: u64) -> ServerName {
        ServerName { host: "h".into(), port: 1, start_code }
    }

    async fn open(fs: &Arc<dyn FileSystem>, start_code: u64) -> MasterStore {
        let (env, root, own) = (env(start_code), RootDir::new(FilePath::root()), server(start_code));
        let dead = fence_earlier_masters(&**fs, &*env.random, &root, &own).await.unwrap();
        let on_failure = Arc::new(|_: &wal::Error| ());
        MasterStore::open(&env, fs, &root, &own, &dead, on_failure).await.unwrap()
    }

    /// A replay that counts its calls.
    fn counted(result: Result<(), String>) -> (ReplayLogs, Arc<AtomicUsize>) {
        let calls = Arc::new(AtomicUsize::new(0));
        let counter = calls.clone();
        let replay: ReplayLogs = Arc::new(move |_| {
            counter.fetch_add(1, Ordering::Relaxed);
            Box::pin(std::future::ready(result.clone()))
        });
        (replay, calls)
    }

    /// A master of a cluster with one session, and the reasons for which its process had to end.
    struct Alone {
        candidate: Candidate,
        session: Arc<MemoryCoordinator>,
        ends: Arc<Mutex<Vec<String>>>,
    }

    impl Alone {
        async fn new() -> Alone {
            Alone::on(Arc::new(MemoryFs::new())).await
        }

        async fn on(fs: Arc<dyn FileSystem>) -> Alone {
            let env = env(1);
            let session = MemoryCoordinator::new(&env);
            let ends: Arc<Mutex<Vec<String>>> = Arc::default();
            let recorded = ends.clone();
            let member = Member {
                fs,
                root: RootDir::new(FilePath::root()),
                coordinator: session.clone(),
                names: Names::default(),
                name: server(1),
                info_port: 0,
                end_process: Arc::new(move |why: &str| recorded.lock().unwrap().push(why.to_string())),
                env,
            };
            Alone { candidate: Candidate::new(member).await.unwrap(), session, ends }
        }

        /// Wins the election, and takes over with the directory of the cluster `own`.
        async fn activate(&self) -> Result<(), String> {
            assert_eq!(self.candidate.win().await, Ok(Elected::Active));
            let options = MasterOptions {
                cluster_id: "own".into(),
                quotas_enabled: false,
                on_stop: Arc::new(|_: &str| ()),
                connections: Arc::new(RemoteServers::new(self.candidate.member.env.clone(), RPC_TIMEOUT)),
                chores: ChoreOptions::default(),
                replay_logs: counted(Ok(())).0,
                remote_dirs: Vec::new(),
            };
            self.candidate.activate(options).await.map(drop)
        }

        /// The published id of the cluster.
        async fn published(&self) -> Option<String> {
            let znode = self.session.get(&Names::default().hbaseid()).await.ok()?;
            zk::payload::read_cluster_id(&znode.data).ok()
        }

        /// The reasons, when no task can run any more.
        async fn ends(&self) -> Vec<String> {
            self.candidate.member.env.clock.sleep(RETRY_PAUSE).await;
            self.ends.lock().unwrap().clone()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_master_that_resigns_deletes_its_znode_and_does_not_end_its_process() {
        let alone = Alone::new().await;
        assert_eq!(alone.candidate.win().await, Ok(Elected::Active));
        alone.candidate.resign().await;
        assert_eq!(alone.session.exists(&Names::default().master()).await, Ok(None));
        assert_eq!(alone.ends().await, Vec::<String>::new());
    }

    #[tokio::test(start_paused = true)]
    async fn a_master_that_is_elected_does_not_name_the_previous_one() {
        let alone = Alone::new().await;
        let seen = alone.candidate.seen_master();
        seen.set(server(7), 16010);
        assert_eq!((seen.get(), seen.elected_ms()), (Some((server(7), 16010)), None));
        assert_eq!(alone.candidate.win().await, Ok(Elected::Active));
        assert!(seen.get().is_none() && seen.elected_ms().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_master_without_its_znode_ends_its_process() {
        let alone = Alone::new().await;
        assert_eq!(alone.candidate.win().await, Ok(Elected::Active));
        alone.session.delete(&Names::default().master(), None).await.unwrap();
        assert_eq!(alone.ends().await, ["this master is no longer active: its znode is deleted"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_master_with_the_directory_of_another_live_cluster_changes_nothing() {
        let (alone, names) = (Alone::new().await, Names::default());
        let Member { env, fs, root, .. } = &alone.candidate.member;
        let id = zk::payload::cluster_id("m", &*env.random, "other");
        publish(&*alone.session, &names.hbaseid(), id, Mode::Persistent).await.unwrap();
        let live = names.region_server(&server(7).to_string());
        publish(&*alone.session, &live, Bytes::new(), Mode::Persistent).await.unwrap();
        let before = alone.session.get(&names.hbaseid()).await.unwrap();
        let refused = alone.activate().await.unwrap_err();
        assert!(refused.contains("cluster id own") && refused.contains("has other;"), "{refused}");
        let after = alone.session.get(&names.hbaseid()).await.unwrap();
        assert_eq!((after.data, after.stat), (before.data, before.stat));
        assert_eq!(alone.session.exists(&names.running()).await, Ok(None));
        assert!(fs.stat(root.master_data().path()).await.unwrap().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn the_id_of_the_cluster_is_published_before_the_journal_is_opened() {
        let faulty = Faulty::new(Arc::new(MemoryFs::new()), Plan::new(env(1).clock));
        faulty.add(Rule::new(Fault::Fail).at("MasterData"));
        let alone = Alone::on(Arc::new(faulty)).await;
        assert!(alone.activate().await.is_err());
        assert_eq!(alone.published().await, Some("own".to_string()));
    }

    #[tokio::test(start_paused = true)]
    async fn an_id_that_another_process_has_replaced_is_not_published() {
        let alone = Alone::new().await;
        let Member { env, fs, root, .. } = &alone.candidate.member;
        fs.make_dirs(&root.tmp_dir()).await.unwrap();
        root.write_cluster_id(&**fs, &*env.random, "newer").await.unwrap();
        let refused = alone.activate().await.unwrap_err();
        assert!(refused.contains("has changed"), "{refused}");
        assert_eq!(alone.published().await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_published_id_is_written_back_to_a_directory_that_has_lost_it() {
        for (published, is_accepted) in [("own", true), ("other", false)] {
            let (alone, names) = (Alone::new().await, Names::default());
            let Member { env, fs, root, .. } = &alone.candidate.member;
            fs.make_dirs(&root.tmp_dir()).await.unwrap();
            root.write_cluster_id(&**fs, &*env.random, "generated").await.unwrap();
            let id = zk::payload::cluster_id("m", &*env.random, published);
            publish(&*alone.session, &names.hbaseid(), id, Mode::Persistent).await.unwrap();
            let is_refused = alone.activate().await.is_err_and(|error| error.contains("has changed"));
            assert_eq!(is_refused, !is_accepted, "{published}");
            let expected = if is_accepted { "own" } else { "generated" };
            assert_eq!(root.stored_cluster_id(&**fs).await.unwrap(), Some(expected.to_string()));
            assert_eq!(alone.published().await, Some(published.to_string()));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn logs_are_replayed_once_after_each_use_by_a_standalone_server() {
        let fs: Arc<dyn FileSystem> = Arc::new(MemoryFs::new());
        let (replay, calls) = counted(Ok(()));
        for use_of_cluster in 1..=3 {
            let standalone = open(&fs, 10 * use_of_cluster).await;
            standalone.set_needs_replay(true).await.unwrap();
            standalone.close().await.unwrap();
            for master in 1..=2 {
                let store = open(&fs, 10 * use_of_cluster + master).await;
                take_over_logs(&store, &[], &replay).await.unwrap();
                store.become_active(master).await.unwrap();
                store.close().await.unwrap();
            }
            assert_eq!(calls.load(Ordering::Relaxed) as u64, use_of_cluster);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_replay_is_repeated_by_the_next_master() {
        let fs: Arc<dyn FileSystem> = Arc::new(MemoryFs::new());
        let store = open(&fs, 1).await;
        let (failing, _) = counted(Err("no".into()));
        let failed = take_over_logs(&store, &[], &failing).await;
        assert_eq!(failed.unwrap_err(), "cannot replay the logs of earlier runs: no");
        store.close().await.unwrap();
        let store = open(&fs, 2).await;
        let (replay, calls) = counted(Ok(()));
        take_over_logs(&store, &[], &replay).await.unwrap();
        assert_eq!(calls.load(Ordering::Relaxed), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_replaced_master_store_needs_a_replay_while_no_region_server_is_live() {
        let fs: Arc<dyn FileSystem> = Arc::new(MemoryFs::new());
        let (replay, calls) = counted(Ok(()));
        let store = open(&fs, 1).await;
        take_over_logs(&store, &[], &replay).await.unwrap();
        store.become_active(1).await.unwrap();
        store.close().await.unwrap();

        // As by `grampus repair master`.
        fs.delete(RootDir::new(FilePath::root()).master_data().path()).await.unwrap();
        let store = open(&fs, 2).await;
        let refused = take_over_logs(&store, &[server(7)], &replay).await.unwrap_err();
        assert!(refused.contains("region server h,1,7 is live; stop all region servers"), "{refused}");
        assert_eq!(calls.load(Ordering::Relaxed), 1);
        take_over_logs(&store, &[], &replay).await.unwrap();
        assert_eq!(calls.load(Ordering::Relaxed), 2);
    }
}
