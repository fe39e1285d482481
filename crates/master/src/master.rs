//! The master of a cluster. At start it opens `hbase:meta`, opens the regions of enabled tables,
//! and resumes procedures.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use base::env::{Env, TaskClass};
use cell::region::{RegionInfo, ServerName};
use cell::schema::{FamilyDescriptor, TableDescriptor, TableName};
use engine::Region;
use fs::FileSystem;
use layout::RootDir;
use proto::exception::{Answer, JavaException, class};
use tokio::sync::watch;
use tracing::{error, info, warn};
use wire::meta::TableState;
use zk::Coordinator;
use zk::names::Names;
use zk::tracker::ZnodeTracker;

use crate::assignment::{Assignment, AssignmentParts, RegionState};
use crate::chores::balance::Balancer;
use crate::chores::cleaner::Cleaner;
use crate::chores::janitor::Janitor;
use crate::chores::snapshots::SnapshotCleaner;
use crate::chores::{self, ChoreOptions};
use crate::connections::Connections;
use crate::contact;
use crate::context::Context;
use crate::crash::{self, KnownServers};
use crate::instruments::MasterInstruments;
use crate::integrity::Integrity;
use crate::location::MetaLocation;
use crate::meta::{MetaContent, MetaTable};
use crate::namespace_quotas::NamespaceQuotas;
use crate::namespaces::{self, Namespaces};
use crate::procedure::executor::{Executor, Progress};
use crate::procedure::journal::{Journal, StoredProcedure};
use crate::procedure::{RegionTransition, TablePlan, Work};
use crate::quotas::Quotas;
use crate::recoveries::Recoveries;
use crate::repair;
use crate::servers::Servers;
use crate::switches::Switches;
use crate::tables::Tables;
use crate::{decommission, inspection};

/// The pause before `hbase:meta` is opened again after a temporary failure, such as a full disk. It
/// doubles with each failure.
const META_PAUSE_MIN: Duration = Duration::from_secs(1);
/// The maximum of this pause.
const META_PAUSE_MAX: Duration = Duration::from_secs(30);
/// At start, regions are assigned when no further server has registered for this long.
const SERVERS_STEADY: Duration = Duration::from_millis(1500);
/// How long a start waits for procedures of an earlier run that change a system table.
const SYSTEM_TABLE_PATIENCE: Duration = Duration::from_secs(20);
/// The longest time that a shutdown waits for the region servers.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(120);
/// The pause between two checks of the servers that live.
const SERVERS_POLL_PERIOD: Duration = Duration::from_millis(20);

/// The dependencies of a master.
pub struct MasterParts {
    /// Clock, randomness, tasks, network.
    pub env: Env,
    /// The file system that holds the data.
    pub fs: Arc<dyn FileSystem>,
    /// The layout of the root directory.
    pub root: RootDir,
    /// The region of `master:store`.
    pub store: Arc<Region>,
    /// The cluster, if region servers are other processes.
    pub cluster: Option<Cluster>,
    /// Connections to region servers.
    pub connections: Arc<dyn Connections>,
    /// The coordination service in which clients look up the master and `hbase:meta`.
    pub coordinator: Arc<dyn Coordinator>,
    /// The names of its znodes.
    pub names: Names,
    /// The name of this master.
    pub server_name: ServerName,
    /// The port of its status pages.
    pub info_port: u16,
    /// The id of the cluster.
    pub cluster_id: String,
    /// Whether quotas are enabled (`hbase.quota.enabled`).
    pub quotas_enabled: bool,
    /// Called with the client's reason when a client requests that the cluster stop.
    pub on_stop: Arc<dyn Fn(&str) + Send + Sync>,
    /// The settings of the chores (periodic work).
    pub chores: ChoreOptions,
}

/// What a master needs in addition if the region servers are other processes.
pub struct Cluster {
    /// The region servers that had sessions when this master became active.
    pub live: Vec<ServerName>,
    /// When this master became active, in milliseconds since the Unix epoch; later than for all
    /// earlier masters ([`MasterStore::become_active`](crate::store::MasterStore::become_active)).
    pub active_since_ms: u64,
}

/// The master of a cluster.
pub struct Master {
    context: Arc<Context>,
    executor: Arc<Executor>,
    // The region servers that had sessions at the start; `None` if the only region server is in
    // this process.
    live_at_start: Option<Vec<ServerName>>,
    known_servers: Option<KnownServers>,
    coordinator: Arc<dyn Coordinator>,
    names: Names,
    server_name: ServerName,
    info_port: u16,
    cluster_id: String,
    quotas: Quotas,
    on_stop: Arc<dyn Fn(&str) + Send + Sync>,
    // Milliseconds since the Unix epoch; 0 before initialization.
    initialized_ms: AtomicU64,
    has_resumed_procedures: AtomicBool,
    chores: ChoreOptions,
    balancer: Balancer,
    janitor: Janitor,
    cleaner: Cleaner,
    snapshot_cleaner: SnapshotCleaner,
}

impl Master {
    /// Creates a master that knows no tables. Call [`Master::publish`] and [`Master::initialize`]
    /// next.
    pub fn new(parts: MasterParts) -> Arc<Master> {
        let writer = format!("master:{}", parts.server_name.port);
        let servers = Arc::new(Servers::default());
        let location = Arc::new(MetaLocation::new(
            parts.env.clone(),
            parts.coordinator.clone(),
            parts.names.clone(),
            writer,
            parts.cluster.is_some().then(|| parts.store.clone()),
        ));
        let integrity = Arc::new(Integrity::default());
        let now_ms = parts.env.clock.now_ms();
        let active_since_ms = parts.cluster.as_ref().map_or(now_ms, |cluster| cluster.active_since_ms);
        let connections = parts.connections.clone();
        let meta = Arc::new(MetaTable::new(location, connections, integrity.clone(), active_since_ms));
        let now = parts.env.clock.monotonic();
        let instruments = MasterInstruments::begin(now);
        let journal = Arc::new(Journal::new(parts.store.clone()));
        let recoveries = Arc::new(Recoveries::new(journal.clone()));
        let assignment = Assignment::new(AssignmentParts {
            env: parts.env.clone(),
            servers: servers.clone(),
            connections: parts.connections.clone(),
            meta: meta.clone(),
            recoveries: recoveries.clone(),
            active_since_ms,
            instruments: instruments.assignment.clone(),
        });
        let context = Arc::new(Context {
            env: parts.env.clone(),
            servers,
            connections: parts.connections,
            meta,
            integrity,
            assignment,
            recoveries,
            tables: Tables::new(parts.fs, parts.root),
            namespaces: Namespaces::default(),
            namespace_quotas: NamespaceQuotas::new(parts.quotas_enabled),
            switches: Switches::new(parts.store.clone()),
            instruments,
            store: parts.store.clone(),
            snapshot_changes: Default::default(),
            loaded: watch::Sender::new(false),
        });
        let executor = Executor::new(parts.env, journal, Arc::downgrade(&context));
        let known_servers = parts.cluster.is_some().then(|| KnownServers::new(parts.store));
        Arc::new(Master {
            context,
            executor,
            live_at_start: parts.cluster.map(|cluster| cluster.live),
            known_servers,
            coordinator: parts.coordinator,
            names: parts.names,
            server_name: parts.server_name,
            info_port: parts.info_port,
            cluster_id: parts.cluster_id,
            quotas: Quotas::new(parts.quotas_enabled),
            on_stop: parts.on_stop,
            initialized_ms: AtomicU64::new(0),
            has_resumed_procedures: AtomicBool::new(false),
            chores: parts.chores,
            balancer: Balancer::default(),
            janitor: Janitor::default(),
            cleaner: Cleaner::default(),
            snapshot_cleaner: SnapshotCleaner::default(),
        })
    }

    /// For the only master of a cluster: publishes its location and the id of the cluster to
    /// clients. In a cluster of several masters, the election publishes the location.
    ///
    /// # Errors
    /// The error of the coordination service.
    pub async fn publish(&self) -> Result<(), zk::Error> {
        let random = &*self.context.env.random;
        let master = zk::payload::master(&self.writer(), random, &self.server_name, self.info_port);
        self.publish_at(&self.names.master(), master).await?;
        self.publish_cluster_id().await
    }

    /// Publishes the id of the cluster to clients and region servers.
    ///
    /// # Errors
    /// The error of the coordination service.
    pub async fn publish_cluster_id(&self) -> Result<(), zk::Error> {
        let random = &*self.context.env.random;
        let cluster_id = zk::payload::cluster_id(&self.writer(), random, &self.cluster_id);
        self.publish_at(&self.names.hbaseid(), cluster_id).await
    }

    /// The masters that wait for their election; none if they are unknown now.
    pub async fn backup_masters(&self) -> Vec<ServerName> {
        let names = self.coordinator.children(&self.names.backup_masters()).await;
        let names = names.map(|(names, _)| names).unwrap_or_default();
        names.iter().filter_map(|name| ServerName::parse(name)).collect()
    }

    /// Excludes the live ones of these servers from the assignment of regions; see
    /// [`decommission`].
    pub(crate) async fn decommission(&self, servers: &[ServerName]) -> Result<(), zk::Error> {
        for server in servers.iter().filter(|server| self.context.servers.is_live(server)) {
            decommission::mark(&*self.coordinator, &self.names.draining_server(&server.to_string())).await?;
            // The task that follows the znodes may be late.
            self.context.servers.decommission(server);
        }
        Ok(())
    }

    /// Includes a server in the assignment of regions again.
    pub(crate) async fn recommission(&self, server: &ServerName) -> Result<(), zk::Error> {
        decommission::unmark(&*self.coordinator, &self.names.draining_server(&server.to_string())).await?;
        self.context.servers.recommission(server);
        Ok(())
    }

    /// Removes the mark of a server that has died. No other process gets its name.
    pub(crate) fn remove_mark_of_dead(&self, server: &ServerName) {
        let (coordinator, server) = (self.coordinator.clone(), server.to_string());
        let znode = self.names.draining_server(&server);
        self.context.env.spawn(TaskClass::Service, async move {
            if let Err(error) = decommission::unmark(&*coordinator, &znode).await {
                warn!(%server, %error, "cannot remove the mark of a decommissioned server that has died");
            }
        });
    }

    /// The name that signs the znodes of this master.
    fn writer(&self) -> String {
        format!("master:{}", self.server_name.port)
    }

    async fn publish_at(&self, path: &str, data: bytes::Bytes) -> Result<(), zk::Error> {
        let mode = zk::coordinator::Mode::Persistent;
        zk::coordinator::publish(&*self.coordinator, path, data, mode).await.map(|_| ())
    }

    /// Waits for a region server, opens `hbase:meta` there and reads it, opens the regions of all
    /// enabled tables that are not closing, and resumes procedures. Tables can be created as soon
    /// as `hbase:meta` has been read.
    ///
    /// # Errors
    /// If `hbase:meta` or the journal cannot be used. The master cannot serve then.
    pub async fn initialize(self: &Arc<Self>) -> Answer<()> {
        let io_exception = |error: engine::Error| JavaException::io(error.to_string());
        self.context.switches.load().await.map_err(io_exception)?;
        let stored = self.executor.load().await.map_err(io_exception)?;
        let (crashes, stored): (Vec<_>, Vec<_>) =
            stored.into_iter().partition(|stored| matches!(stored.record.work, Work::ServerCrash { .. }));
        match &self.live_at_start {
            Some(live) => {
                self.executor.resume(crashes);
                // The servers that are being recovered count as dead, also if their sessions last.
                for (server, _) in self.context.recoveries.list() {
                    self.context.servers.remove(&server);
                }
                self.find_dead_servers(live).await?;
            }
            // The region server of this process has taken over the logs of all others.
            None => self.executor.forget(crashes).await.map_err(io_exception)?,
        }
        let marks = ZnodeTracker::new(self.coordinator.clone(), self.names.draining());
        let followed = decommission::follow(self, marks).await;
        followed
            .map_err(|error| JavaException::io(format!("cannot read decommissioned servers: {error}")))?;
        self.open_meta().await?;
        // If its server dies from now on, the steps below wait until `hbase:meta` is open again.
        chores::start_meta_retries(self);
        self.load_tables().await?;
        self.context.loaded.send_replace(true);
        self.context.assignment.repeat_orders().await?;
        // The regions must be in transition before procedures resume: a procedure that disables a
        // table then waits until its regions are open, and closes them. In the reverse order, the
        // regions would be opened after the table was disabled.
        let is_closing = |region: &RegionInfo| self.context.assignment.is_closing(region);
        let (mut closing, opening): (Vec<_>, Vec<_>) =
            self.regions_to_open().into_iter().partition(is_closing);
        closing.retain(|region| !is_being_unassigned(&stored, region));
        self.context.assignment.begin_open_or_retry_later(&opening).await;
        self.executor.resume(stored);
        self.has_resumed_procedures.store(true, Ordering::Release);
        self.open_when_closed(closing);
        inspection::inspect_regions(self).await;
        repair::merge_overlaps_at_start(self).await;
        self.ensure_system_table(namespaces::descriptor()).await?;
        if self.quotas.enabled() {
            self.ensure_system_table(wire::quota::descriptor()).await?;
        }
        namespaces::load(&self.context).await;
        let before = self.initialized_ms.swap(self.context.env.clock.now_ms(), Ordering::AcqRel);
        debug_assert_eq!(before, 0, "a master is initialized once");
        chores::start(self);
        // A region that fails to open does not delay this wait. It is retried later.
        self.context.assignment.wait_while_opening(&opening).await;
        let failed = self.context.assignment.failures().len();
        info!(regions = opening.len(), failed, "master initialized");
        Ok(())
    }

    /// Waits for region servers if none lives, and starts the recovery of those that died while no
    /// master was active. `live` are the servers that have sessions.
    async fn find_dead_servers(&self, live: &[ServerName]) -> Answer<()> {
        let Some(known) = &self.known_servers else { return Ok(()) };
        let io_exception = |error: engine::Error| JavaException::io(error.to_string());
        let mut earlier = known.list().await.map_err(io_exception)?;
        earlier.extend(crash::servers_with_logs(&self.context).await?.into_iter().map(|(server, _)| server));
        // The location is loaded before any server counts as live: if a server dies from now on,
        // its recovery must know whether it had `hbase:meta`.
        let location = self.context.meta.location().load().await?;
        let has_logs = |server: &ServerName| earlier.contains(server) || live.contains(server);
        self.context.assignment.add_meta_region(location, has_logs);
        for server in live {
            match self.add_server(server).await {
                Err(error) if error.is(class::YOU_ARE_DEAD) => {}
                added => added?,
            }
        }
        if live.is_empty() {
            self.wait_for_servers(&earlier).await;
        }
        let servers = &self.context.servers;
        // Nothing is opened on dead servers, and their reports are refused.
        for server in earlier.iter().filter(|server| !servers.is_live(server)) {
            servers.remove(server);
        }
        self.recover_dead(&earlier, "it died while no master was active").await
    }

    /// Waits until a server lives at each address that `earlier` servers had, or until no new
    /// server has registered for a while. Without this wait, the first server to register would get
    /// all regions.
    async fn wait_for_servers(&self, earlier: &BTreeSet<ServerName>) {
        let clock = &self.context.env.clock;
        let expected: BTreeSet<_> = earlier.iter().map(|server| (&server.host, server.port)).collect();
        let (mut seen, mut since) = (0, clock.monotonic());
        loop {
            let live = self.context.servers.live_names();
            let addresses: BTreeSet<_> = live.iter().map(|server| (&server.host, server.port)).collect();
            let is_complete = !expected.is_empty() && expected.is_subset(&addresses);
            let now = clock.monotonic();
            if live.len() != seen {
                (seen, since) = (live.len(), now);
            }
            if !live.is_empty() && (is_complete || now.saturating_sub(since) >= SERVERS_STEADY) {
                break;
            }
            clock.sleep(SERVERS_POLL_PERIOD).await;
        }
        // They have registered, but may still be starting.
        self.context.env.timeout(contact::START_MAX, self.context.servers.wait_for_contacts()).await;
    }

    async fn open_meta(&self) -> Answer<()> {
        let region = RegionInfo::meta();
        let table = wire::meta::descriptor();
        let lost_meta = |what: &dyn std::fmt::Display| {
            JavaException::do_not_retry(format!(
                "{what}; restore the directory of hbase:meta, or rebuild it with `grampus repair meta`"
            ))
        };
        let tables = &self.context.tables;
        if !tables.has_directory(&table.name).await? && tables.has_user_tables().await? {
            return Err(lost_meta(&"hbase:meta has no directory, but tables have theirs"));
        }
        tables
            .create_files(&table, std::slice::from_ref(&region))
            .await
            .map_err(|error| lost_meta(&error.message))?;
        self.context.tables.put(table, TableState::Enabled);
        // The order to open it is repeated to the server that should have it. That server answers
        // with a report, so the location is never assumed.
        self.context.assignment.repeat_open(&region).await?;
        let mut pause = META_PAUSE_MIN;
        loop {
            let opened = self.context.assignment.open(std::slice::from_ref(&region)).await;
            let Err(error) = opened else { return Ok(()) };
            let is_damaged =
                self.context.assignment.failure(&region).is_some_and(|failure| failure.is_damage);
            if is_damaged {
                return Err(JavaException::do_not_retry(format!(
                    "{error}; stop all servers of this directory and rebuild hbase:meta with `grampus repair meta`"
                )));
            }
            warn!(%error, ?pause, "hbase:meta cannot be opened; retrying");
            self.context.env.clock.sleep(pause).await;
            pause = (pause * 2).min(META_PAUSE_MAX);
        }
    }

    async fn load_tables(&self) -> Answer<()> {
        let content = self.read_meta().await.map_err(|error| {
            let remedy =
                "if its files are damaged, stop the server and rebuild it with `grampus repair meta`";
            JavaException::do_not_retry(format!("hbase:meta cannot be read: {error}; {remedy}"))
        })?;
        if content.tables.is_empty() && self.context.tables.has_user_tables().await? {
            return Err(JavaException::do_not_retry(
                "hbase:meta is empty, but tables have directories; restore its files, or rebuild it with `grampus repair \
                 meta`",
            ));
        }
        for (table, state) in content.tables {
            match self.load_table(&table, state).await {
                Ok(true) => {}
                Ok(false) => {
                    warn!(%table, "table is in hbase:meta but has no descriptor: deletion in progress, or \
                          directory missing");
                }
                Err(error) => error!(%table, %error, "cannot read table descriptor"),
            }
        }
        for row in content.regions {
            self.context.assignment.add_row(row);
        }
        Ok(())
    }

    /// Reads `hbase:meta`. In a cluster, its server may die meanwhile; then it is opened elsewhere,
    /// and read again.
    async fn read_meta(&self) -> Answer<MetaContent> {
        loop {
            match self.context.meta.read_all().await {
                Err(error) if self.known_servers.is_some() && !error.do_not_retry => {
                    warn!(%error, "cannot read hbase:meta; retrying");
                    self.context.env.clock.sleep(META_PAUSE_MIN).await;
                }
                read => return read,
            }
        }
    }

    /// The regions of the tables that are enabled. If the only server is in this process, also
    /// those of tables that are being disabled: they may have edits that are only in its old logs,
    /// and the procedure that disables the table then closes them. In a cluster, the recovery of
    /// their server opens them.
    fn regions_to_open(&self) -> Vec<RegionInfo> {
        let is_opened = |table: &TableName| match self.context.tables.state(table) {
            Some(TableState::Enabled) => true,
            Some(TableState::Disabling) => self.known_servers.is_none(),
            _ => false,
        };
        let regions = self.context.assignment.all().into_iter();
        let regions = regions.filter(|(_, state)| *state != RegionState::Split).map(|(region, _)| region);
        let mut opened: Vec<_> = regions.filter(|region| is_opened(&region.table)).collect();
        opened.sort_by(|left, right| (&left.table, &left.start_key).cmp(&(&right.table, &right.start_key)));
        opened
    }

    /// Opens regions that the previous master has ordered to close, each when it is closed. That
    /// can take without limit, for example while its last flush fails, so the start does not wait
    /// for it. Procedures of the previous master come first: the one that closes a region usually
    /// also opens it.
    fn open_when_closed(&self, regions: Vec<RegionInfo>) {
        for region in regions {
            let (context, executor) = (self.context.clone(), self.executor.clone());
            self.context.env.spawn(TaskClass::Service, async move {
                context.assignment.wait_while_closing(&region).await;
                executor.wait_for_table(&region.table).await;
                if context.tables.state(&region.table) == Some(TableState::Enabled)
                    && context.assignment.state(&region) == Some(RegionState::Closed)
                {
                    context.assignment.begin_open_or_retry_later(std::slice::from_ref(&region)).await;
                }
            });
        }
    }

    /// Loads a table's descriptor, and returns whether the table has one. The descriptors of system
    /// tables are fixed, so a lost or damaged one is written again.
    async fn load_table(&self, table: &TableName, state: TableState) -> Answer<bool> {
        let tables = &self.context.tables;
        let loaded = tables.load(table, state).await;
        let known = [namespaces::descriptor(), wire::quota::descriptor()];
        match known.into_iter().find(|descriptor| descriptor.name == *table) {
            Some(descriptor) if !matches!(loaded, Ok(true)) => {
                warn!(%table, "the descriptor of a system table is lost or damaged; it is written again");
                tables.restore_descriptor(&descriptor).await?;
                tables.load(table, state).await
            }
            _ => loaded,
        }
    }

    /// Creates a system table unless it exists. First waits for a procedure of an earlier run that
    /// may still be creating the table.
    async fn ensure_system_table(&self, table: TableDescriptor) -> Answer<()> {
        let creates = |work: &Work| matches!(work, Work::CreateTable(plan) if plan.table.name == table.name);
        self.executor.wait_for(creates).await;
        // Others may still change its region. They may also wait for it without limit.
        let others = self.executor.wait_for_table(&table.name);
        self.context.env.timeout(SYSTEM_TABLE_PATIENCE, others).await;
        if self.context.tables.state(&table.name).is_some() {
            return Ok(());
        }
        let region =
            RegionInfo::new(table.name.clone(), "".into(), "".into(), self.context.env.clock.now_ms());
        let work = Work::CreateTable(TablePlan { table: Box::new(table), regions: vec![region] });
        let id = self.submit(work, (0, 0)).await?;
        match self.executor.wait(id).await.map(|status| status.progress) {
            Some(Progress::Finished(Some(exception))) => Err(exception),
            _ => Ok(()),
        }
    }

    /// Starts a procedure.
    ///
    /// # Errors
    /// The journal's error; the client may retry.
    pub(crate) async fn submit(&self, work: Work, nonce: (u64, u64)) -> Answer<u64> {
        self.executor.submit(work, nonce).await.map_err(|error| JavaException::io(error.to_string()))
    }

    /// Checks whether a procedure may run, and then starts it. A client receives an error of this
    /// check in the response to its call. With [`Master::submit`], it receives the error later, as
    /// the result of the procedure. For each call, the choice is that of HBase.
    ///
    /// # Errors
    /// Why the procedure may not run, or the journal's error.
    pub(crate) async fn submit_checked(&self, work: Work, nonce: (u64, u64)) -> Answer<u64> {
        // A retry of a call must not be refused because of the effects of its own procedure.
        if let Some(earlier) = self.executor.find_by_nonce(nonce).await {
            return Ok(earlier);
        }
        work.check(&self.context).await?;
        self.submit(work, nonce).await
    }

    /// The state that the master's parts share.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// The servers that may have logs; `None` if the only region server is in this process.
    pub(crate) fn known_servers(&self) -> Option<&KnownServers> {
        self.known_servers.as_ref()
    }

    /// The executor of procedures.
    pub fn procedures(&self) -> &Executor {
        &self.executor
    }

    /// The consumers that still need archived logs, such as replication. Their logs are not
    /// deleted.
    pub fn log_holders(&self) -> &wal::LogHolders {
        &self.chores().log_holders
    }

    /// The settings of the chores.
    pub(crate) fn chores(&self) -> &ChoreOptions {
        &self.chores
    }

    pub(crate) fn balancer(&self) -> &Balancer {
        &self.balancer
    }

    pub(crate) fn janitor(&self) -> &Janitor {
        &self.janitor
    }

    pub(crate) fn cleaner(&self) -> &Cleaner {
        &self.cleaner
    }

    pub(crate) fn snapshot_cleaner(&self) -> &SnapshotCleaner {
        &self.snapshot_cleaner
    }

    /// The name of this master.
    pub fn server_name(&self) -> &ServerName {
        &self.server_name
    }

    pub(crate) fn quotas(&self) -> &Quotas {
        &self.quotas
    }

    /// The id of the cluster.
    pub fn cluster_id(&self) -> &str {
        &self.cluster_id
    }

    pub(crate) fn info_port(&self) -> i32 {
        i32::from(self.info_port)
    }

    /// Whether region servers run in other processes.
    pub fn is_of_cluster(&self) -> bool {
        self.known_servers.is_some()
    }

    /// When the master became the active one, in milliseconds since the Unix epoch.
    pub fn active_since_ms(&self) -> u64 {
        self.context.assignment.active_since_ms()
    }

    /// When the master became ready for clients, in milliseconds since the Unix epoch; 0 before
    /// that.
    pub fn initialized_ms(&self) -> u64 {
        self.initialized_ms.load(Ordering::Acquire)
    }

    /// Whether the procedures of the previous master have been resumed. Before that, a new
    /// procedure could get the lock of a table in which an earlier procedure is half done.
    pub(crate) fn has_resumed_procedures(&self) -> bool {
        self.has_resumed_procedures.load(Ordering::Acquire)
    }

    /// Whether `hbase:meta` has been read and calls for tables are served.
    pub fn is_initialized(&self) -> bool {
        self.initialized_ms() > 0
    }

    /// Stops the whole cluster: the region servers, which flush and close their regions, and then
    /// this master.
    ///
    /// # Errors
    /// The error of the coordination service. Nothing is stopped then.
    pub(crate) async fn shut_down(&self, why: &str) -> Answer<()> {
        let Some(known) = &self.known_servers else {
            self.request_stop(why);
            return Ok(());
        };
        // The servers that end now are not recovered.
        self.context.servers.begin_shutdown();
        match self.coordinator.delete(&self.names.running(), None).await {
            Ok(()) | Err(zk::Error::NoNode { .. }) => {}
            Err(error) => {
                self.context.servers.cancel_shutdown();
                let known = known.list().await.map_err(|error| JavaException::io(error.to_string()))?;
                self.recover_dead(&known, "it died during a shutdown that has failed").await?;
                return Err(JavaException::io(error.to_string()));
            }
        }
        let (servers, clock) = (self.context.servers.clone(), self.context.env.clock.clone());
        let (on_stop, why) = (self.on_stop.clone(), why.to_string());
        self.context.env.spawn(TaskClass::Service, async move {
            let deadline = clock.monotonic() + SHUTDOWN_PATIENCE;
            while servers.count() > 0 && clock.monotonic() < deadline {
                clock.sleep(SERVERS_POLL_PERIOD).await;
            }
            on_stop(&why);
        });
        Ok(())
    }

    pub(crate) fn request_stop(&self, why: &str) {
        (self.on_stop)(why);
    }
}

/// Whether a stored procedure closes `region` for good.
fn is_being_unassigned(stored: &[StoredProcedure], region: &RegionInfo) -> bool {
    let unassign = Work::RegionTransition(region.clone(), RegionTransition::Unassign);
    stored.iter().any(|stored| stored.record.prepared && stored.record.work == unassign)
}

/// A family with the settings of system tables.
pub(crate) fn system_family(name: &'static str) -> FamilyDescriptor {
    FamilyDescriptor::new(name.as_bytes())
        .with("BLOOMFILTER", "ROW")
        .with("IN_MEMORY", "true")
        .with("VERSIONS", "10")
        .with("BLOCKSIZE", "8192")
}

/// A table with one family.
pub(crate) fn table_with(name: TableName, family: FamilyDescriptor) -> TableDescriptor {
    TableDescriptor::new(name).with_family(family)
}
