//! A region server: its logs, its regions, and its registration with the master.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use base::BoxFuture;
use base::budget::Budget;
use base::env::{Env, TaskClass};
use base::spent;
use cell::KeyValue;
use cell::region::{RegionInfo, ServerName};
use coprocessor::Endpoints;
use engine::Region;
use engine::budget::MemstoreBudget;
use engine::instruments::Instruments;
use engine::mob::MobFiles;
use engine::nonces::{self, Nonces};
use engine::recovery::{OnDamage, RecoveredLogs};
use engine::region::{Opening, RegionOptions, RegionServices};
use engine::scanner::{BlockLoader, DamagedFile};
use fs::{FilePath, FileSystem, SyncLevel};
use layout::RootDir;
use layout::region::RegionDir;
use proto::exception::{Answer, JavaException, class};
use ssdcache::SsdCache;
use tiers::{TierStatus, TieredFs};
use tracing::{error, info, warn};
use wire::service::RegionServerStatusService;

use crate::clock_jumps::{self, ClockInstruments};
use crate::dead_servers::{self, DeadServers};
use crate::disk::Disk;
use crate::errors::java_exception;
use crate::fatal::{FatalErrors, OnFatal};
use crate::file_moves::FileMoves;
use crate::foreign_files::ForeignFiles;
use crate::hotspots::HotSpots;
use crate::instruments::{AdminInstruments, RequestInstruments};
use crate::lease::Lease;
use crate::load::{megabytes, region_load};
use crate::locality::{self, Localities};
use crate::memory::{MOVE_PERIOD, MemoryMover, SharedMemory};
use crate::open_scanner::OpenScanner;
use crate::opening::FailedReports;
use crate::orders::Orders;
use crate::pauses::{self, PauseInstruments};
use crate::quotas::{Operation, PlannedWork, QuotaOptions, RpcQuotas};
use crate::regions::OnlineRegions;
use crate::replication_sink::{ClusterWriter, ReplicationSink};
use crate::scanners::Scanners;
use crate::schedule::Schedule;
use crate::schedule::compactions::CompactionOptions;
use crate::slow_log::{SlowLog, SlowLogOptions};
use crate::users::{ClientIdentity, Users};
use crate::volumes;

/// The pause between reports to the master (`hbase.regionserver.msginterval`).
const REPORT_PERIOD: Duration = Duration::from_secs(3);
/// If the registration with the master takes longer, the time in it may be out of date.
const PROMPT_REGISTRATION_MAX: Duration = Duration::from_secs(5);
/// The pause between checks of leases and logs.
const CHORE_PERIOD: Duration = Duration::from_secs(1);
/// [`record_age`](wal::LogOptions::record_age) of the logs on a file system that other machines
/// provide. There, a record costs several calls and a block.
const REMOTE_RECORD_AGE: Duration = Duration::from_secs(60);
/// The shortest pause between checks of the quota table for changes.
const QUOTA_CHECK_MIN: Duration = Duration::from_millis(100);
/// The pause between checks whether stores need a compaction
/// (`hbase.regionserver.compaction.check.period`).
const COMPACTION_CHECK_PERIOD: Duration = Duration::from_secs(10);

/// Reads the cells of `hbase:quota`; none if there is no such table. An error is one line.
pub type QuotaReader = Arc<dyn Fn() -> BoxFuture<'static, Result<Vec<KeyValue>, String>> + Send + Sync>;

/// The dependencies of a region server.
pub struct RegionServerParts {
    /// Clock, randomness, tasks, network.
    pub env: Env,
    /// The file system that holds the data.
    pub fs: Arc<dyn FileSystem>,
    /// The disk that the file system is on.
    pub disk: Disk,
    /// The layout of the root directory.
    pub root: RootDir,
    /// The name of this server.
    pub name: ServerName,
    /// Log directories of dead servers. This server takes over their logs: it fences, replays and
    /// archives them. A directory that is not listed is not touched.
    pub dead_log_dirs: Vec<FilePath>,
    /// The files in which the servers of `dead_log_dirs` recorded their logs.
    pub dead_log_records: Vec<FilePath>,
    /// The files in which this server records its logs and those of `hbase:meta`.
    pub log_records: [FilePath; 2],
    /// The port of its status pages.
    pub info_port: u16,
    /// Until when the server may answer clients.
    pub lease: Lease,
    /// Reads the cells of `hbase:quota`, whose regions may be on other servers. `None`: all of them
    /// are on this server.
    pub quota_reader: Option<QuotaReader>,
    /// The second level of the block cache, if there is one.
    pub second_level_cache: Option<Arc<SsdCache>>,
    /// The id of the cluster (`hbase.id`).
    pub cluster_id: String,
    /// Finds the files of bulk loads.
    pub foreign_files: Arc<dyn ForeignFiles>,
    /// Writes replicated mutations of regions that are on other servers, or are moving. `None`: all
    /// regions are on this server.
    pub cluster_writer: Option<ClusterWriter>,
    /// How files move between storage tiers, if `fs` has tiers.
    pub file_moves: Option<FileMoves>,
    /// Settings.
    pub options: RegionServerOptions,
    /// The budget of response bytes that are being built or sent, shared with the RPC servers.
    pub response_budget: Arc<Budget>,
    /// Called when the server must not continue: its log failed, or the master counts it as dead.
    /// The process should exit.
    pub on_fatal: OnFatal,
    /// Called with the client's reason when a client requests that the server stop.
    pub on_stop: Arc<dyn Fn(&str) + Send + Sync>,
}

/// Settings of a region server, with HBase's configuration keys.
#[derive(Clone, Debug)]
pub struct RegionServerOptions {
    /// Settings of its regions.
    pub region: RegionOptions,
    /// When and how fast its regions are compacted.
    pub compaction: CompactionOptions,
    /// Memory of the process; memstores, cache, requests and responses are parts of it
    /// (`grampus.memory`).
    pub memory_bytes: u64,
    /// Measures the resident memory of the process. `None` if it cannot be measured; the process
    /// then counts as within `memory_bytes`.
    pub resident_bytes: fn() -> Option<u64>,
    /// Total memstore bytes at which writes are refused.
    pub memstore_bytes: u64,
    /// Fraction of `memstore_bytes` at which regions are flushed
    /// (`hbase.regionserver.global.memstore.size.lower.limit`).
    pub memstore_low_mark: f64,
    /// Minimum size of the block cache in bytes. The cache also gets the part of `memstore_bytes`
    /// that memstores do not use.
    pub cache_bytes: u64,
    /// Whether regions that may have lost edits in a damaged log are opened
    /// (`hbase.hlog.split.skip.errors`).
    pub on_damage: OnDamage,
    /// Length at which a log is rolled.
    pub log_roll_bytes: u64,
    /// Guarantee that a write has when it is acknowledged.
    pub log_durability: SyncLevel,
    /// Age at which a log is rolled (`hbase.regionserver.logroll.period`).
    pub log_roll_period: Duration,
    /// Log count above which regions are flushed so that the oldest log can be removed
    /// (`hbase.regionserver.maxlogs`).
    pub logs_max: usize,
    /// Time since its last flush after which a memstore with edits is flushed
    /// (`hbase.regionserver.optionalcacheflushinterval`).
    pub flush_period: Duration,
    /// Idle time after which an open scanner expires (`hbase.client.scanner.timeout.period`).
    pub scanner_lease: Duration,
    /// Maximum number of open scanners.
    pub scanners_max: usize,
    /// Maximum number of bytes that idle open scanners hold.
    pub scanner_bytes_max: usize,
    /// Maximum number of bytes in the response to a scan or multi
    /// (`hbase.server.scanner.max.result.size`).
    pub result_bytes_max: u64,
    /// Number of rows in a multi (a batch request) above which a warning is logged
    /// (`hbase.rpc.rows.warning.threshold`).
    pub batch_rows_warning: u32,
    /// Maximum number of mutations of a multi that are applied as one batch
    /// (`hbase.regionserver.minibatch.size`).
    pub minibatch_changes: usize,
    /// Whether a multi with more rows than `batch_rows_warning` is refused
    /// (`hbase.rpc.rows.size.threshold.reject`).
    pub rejects_large_batches: bool,
    /// How long the nonces of executed increments and appends are retained
    /// (`hbase.server.hashNonce.gracePeriod`).
    pub nonce_grace: Duration,
    /// Throttling settings; `None` disables throttling (`hbase.quota.enabled`).
    pub quotas: Option<QuotaOptions>,
    /// Length of the intervals in which requests are counted to find hot rows and hot regions.
    pub hotspots_period: Duration,
    /// Bytes per read capacity unit and per write capacity unit (`hbase.quota.read.capacity.unit`,
    /// `hbase.quota.write.capacity.unit`).
    pub unit_bytes: (u64, u64),
    /// Whether the latencies of each user's operations are measured
    /// (`hbase.regionserver.user.metrics.enabled`).
    pub measures_user_latencies: bool,
    /// Which calls the slow log records, and how many it retains.
    pub slow_log: SlowLogOptions,
    /// Region count at which the server requests no more splits
    /// (`hbase.regionserver.regionSplitLimit`).
    pub regions_max: usize,
}

impl RegionServerOptions {
    fn shared_memory(&self) -> SharedMemory {
        SharedMemory {
            memstore_bytes: self.memstore_bytes,
            cache_bytes: self.cache_bytes,
            process_bytes: self.memory_bytes,
            resident_bytes: self.resident_bytes,
        }
    }
}

/// A region server.
pub struct RegionServer {
    name: ServerName,
    info_port: u16,
    options: RegionServerOptions,
    root: RootDir,
    disk: Disk,
    services: RegionServices,
    // hbase:meta has a separate log, so that it can be replayed first.
    meta_log: Arc<wal::Log>,
    regions: Arc<OnlineRegions>,
    schedule: Arc<Schedule>,
    scanners: Scanners<OpenScanner>,
    response_budget: Arc<Budget>,
    scanner_memory: Arc<Budget>,
    requests: Arc<RequestInstruments>,
    admin_requests: Arc<AdminInstruments>,
    pauses: Arc<PauseInstruments>,
    clock_jumps: Arc<ClockInstruments>,
    localities: Arc<Localities>,
    quotas: Option<RpcQuotas>,
    slow_log: SlowLog,
    users: Users,
    hotspots: HotSpots,
    endpoints: Endpoints,
    recovered: RecoveredLogs,
    dead_servers: DeadServers,
    orders: Orders,
    lease: Lease,
    quota_reader: Option<QuotaReader>,
    second_level_cache: Option<Arc<SsdCache>>,
    cluster_id: String,
    foreign_files: Arc<dyn ForeignFiles>,
    replication_sink: ReplicationSink,
    file_moves: Option<FileMoves>,
    master: OnceLock<Arc<dyn RegionServerStatusService>>,
    on_stop: Arc<dyn Fn(&str) + Send + Sync>,
    fatal_errors: FatalErrors,
    failed_reports: FailedReports,
}

impl RegionServer {
    /// Reads the logs of earlier runs and starts new ones. Serves no region yet.
    ///
    /// # Errors
    /// File system errors, and logs of an unsupported format.
    pub async fn start(parts: RegionServerParts) -> Result<Arc<RegionServer>, wal::Error> {
        let RegionServerParts {
            env,
            fs,
            disk,
            root,
            name,
            info_port,
            options,
            dead_log_dirs,
            dead_log_records,
            log_records,
            lease,
            quota_reader,
            second_level_cache,
            cluster_id,
            foreign_files,
            cluster_writer,
            file_moves,
            response_budget,
            on_fatal,
            on_stop,
        } = parts;
        assert!(!dead_log_dirs.contains(&root.wal_dir(&name)), "a server does not recover its own log");
        let old_logs = (&dead_log_dirs[..], &dead_log_records[..]);
        let recovered =
            RecoveredLogs::scan(fs.clone(), &root, old_logs, name.start_code, options.on_damage).await?;
        let fatal_errors = FatalErrors::new(env.clone(), name.clone(), on_fatal);
        let on_failure = fatal_errors.clone();
        let on_log_failure: Arc<dyn Fn(&wal::Error) + Send + Sync> =
            Arc::new(move |error| on_failure.log_failed(error));
        let log_instruments = Arc::new(wal::Instruments::begin(env.clock.monotonic()));
        let begin_log = async |suffix: &str, record: &FilePath| {
            let log_options = wal::LogOptions {
                suffix: suffix.to_string(),
                roll_bytes: options.log_roll_bytes,
                roll_period: Some(options.log_roll_period),
                instruments: Some(log_instruments.clone()),
                record: Some(record.clone()),
                record_age: if disk.is_remote { REMOTE_RECORD_AGE } else { Duration::ZERO },
                durability: options.log_durability,
                storage_policy: options.region.storage.log.clone(),
                ..wal::LogOptions::new(root.wal_dir(&name), &name.url_encoded(), root.old_wals_dir())
            };
            wal::Log::start(env.clone(), fs.clone(), log_options, on_log_failure.clone()).await
        };
        let log = begin_log("", &log_records[0]).await?;
        let meta_log = begin_log(".meta", &log_records[1]).await?;
        recovered.pass_old_logs_to(&log, &meta_log);
        recovered.forget_deleted_regions(&*fs, &root, &log).await?;

        let regions = Arc::new(OnlineRegions::default());
        let budget = MemstoreBudget::new(options.memstore_bytes, options.memstore_low_mark);
        let budget = Arc::new(budget.on_disk(disk.space.clone()));
        let schedule =
            Schedule::new(env.clone(), regions.clone(), budget.clone(), options.compaction.clone());
        let loader = BlockLoader::new(options.shared_memory().bytes());
        let services = RegionServices {
            env: env.clone(),
            fs,
            root: root.clone(),
            tracker: Arc::new(layout::RenameTracker),
            log,
            loader: Arc::new(match &second_level_cache {
                Some(second_level) => loader.with_second_level(second_level.clone()),
                None => loader,
            }),
            budget,
            nonces: Arc::new(Nonces::new(options.nonce_grace, nonces::DONE_MAX)),
            maintenance: schedule.clone(),
            mob: Arc::new(MobFiles::new(options.region.mob.open_files_max)),
            options: Arc::new(options.region.clone()),
            instruments: Arc::new(Instruments::begin(env.clock.monotonic())),
            server: Some(name.clone()),
        };
        let dead_servers =
            DeadServers::new(env.clone(), services.fs.clone(), root.clone(), options.on_damage);
        // The start code is a timestamp, so scanner ids are larger than those of any earlier run.
        let first_scanner_id = name.start_code << 20;
        let scanners = Scanners::new(options.scanner_lease, options.scanners_max, first_scanner_id);
        let quotas = options.quotas.map(RpcQuotas::new);
        let slow_log = SlowLog::new(options.slow_log);
        let scanner_memory = Budget::new(options.scanner_bytes_max);
        let now = services.env.clock.monotonic();
        let requests = Arc::new(RequestInstruments::begin(now));
        let users = Users::new(options.measures_user_latencies, now);
        let admin_requests = Arc::new(AdminInstruments::begin(now));
        let replication_sink = ReplicationSink::new(&env, cluster_writer);
        let pauses = Arc::new(PauseInstruments::begin(now));
        let clock_jumps = Arc::new(ClockInstruments::begin(now));
        Ok(Arc::new(RegionServer {
            quotas,
            slow_log,
            users,
            hotspots: HotSpots::new(now),
            endpoints: Endpoints::new(env, response_budget.clone()),
            localities: Arc::new(Localities::new(&name.host)),
            name,
            info_port,
            options,
            root,
            disk,
            services,
            meta_log,
            regions,
            schedule,
            scanners,
            response_budget,
            scanner_memory,
            requests,
            admin_requests,
            pauses,
            clock_jumps,
            recovered,
            dead_servers,
            orders: Orders::default(),
            lease,
            quota_reader,
            second_level_cache,
            cluster_id,
            foreign_files,
            replication_sink,
            file_moves,
            master: OnceLock::new(),
            on_stop,
            fatal_errors,
            failed_reports: FailedReports::default(),
        }))
    }

    /// Registers with the master, then starts the periodic reports and chores.
    ///
    /// # Errors
    /// The master's error.
    pub async fn register(self: &Arc<Self>, master: Arc<dyn RegionServerStatusService>) -> Answer<()> {
        register(self.env(), &*master, &self.name).await?;
        self.join(master);
        Ok(())
    }

    /// From now on, a failure of a log is reported to `master` before this process ends. Needed
    /// only if the master is another process.
    pub fn report_fatal_errors_to(&self, master: Arc<dyn RegionServerStatusService>) {
        self.fatal_errors.report_to(master);
    }

    /// Starts the periodic reports and chores of a server that is registered with the master.
    ///
    /// # Panics
    /// If it was called before.
    pub fn join(self: &Arc<Self>, master: Arc<dyn RegionServerStatusService>) {
        assert!(self.master.set(master).is_ok(), "a server joins once");
        let weak = Arc::downgrade(self);
        self.schedule.compactions().on_new_files(move |region| {
            if let Some(server) = weak.upgrade() {
                server.consider_split(region);
            }
        });
        let (weak, weak_for_chores) = (Arc::downgrade(self), Arc::downgrade(self));
        let clock = self.env().clock.clone();
        self.env().spawn(TaskClass::Service, async move {
            while let Some(server) = weak.upgrade() {
                server.report().await;
                drop(server);
                clock.sleep(REPORT_PERIOD).await;
            }
        });
        let (weak, clock) = (Arc::downgrade(self), self.env().clock.clone());
        self.env().spawn(TaskClass::Service, async move {
            loop {
                clock.sleep(COMPACTION_CHECK_PERIOD).await;
                let Some(server) = weak.upgrade() else { return };
                server.schedule.check_stores();
            }
        });
        self.watch_disk();
        if let Some(moves) = self.file_moves.clone() {
            self.move_files(moves);
        }
        pauses::watch(self.env(), &self.pauses);
        clock_jumps::watch(self.env(), &self.clock_jumps);
        crate::mob_cleaner::watch(self.env(), &self.regions, self.options.region.mob);
        locality::watch(self.env(), &self.localities, &self.services.fs, &self.regions);
        let (weak, clock) = (Arc::downgrade(self), self.env().clock.clone());
        self.env().spawn(TaskClass::Background, async move {
            loop {
                let Some(period) = weak.upgrade().map(|server| server.options.hotspots_period) else {
                    return;
                };
                clock.sleep(period).await;
                let Some(server) = weak.upgrade() else { return };
                server.hotspots.end_interval(&server.regions, clock.monotonic(), clock.now_ms());
            }
        });
        if let Some(quotas) = &self.quotas {
            self.watch_quota_table(Duration::from_millis(quotas.options().refresh_ms));
        }
        let (weak, clock) = (Arc::downgrade(self), self.env().clock.clone());
        self.env().spawn(TaskClass::Service, async move {
            let Some(mut memory) =
                weak.upgrade().map(|server| MemoryMover::new(server.options.shared_memory()))
            else {
                return;
            };
            while let Some(server) = weak.upgrade() {
                memory.move_memory(&server.services, &server.regions);
                drop(server);
                clock.sleep(MOVE_PERIOD).await;
            }
        });
        let clock = self.env().clock.clone();
        self.env().spawn(TaskClass::Service, async move {
            while let Some(server) = weak_for_chores.upgrade() {
                server.do_chores();
                server.schedule.archive_compacted_files().await;
                server.dead_servers.forget_archived().await;
                drop(server);
                clock.sleep(CHORE_PERIOD).await;
            }
        });
    }

    /// Starts a task that reads the quotas when their table has changed, and at least every
    /// `refresh`.
    fn watch_quota_table(self: &Arc<Self>, refresh: Duration) {
        let (server, clock) = (Arc::downgrade(self), self.env().clock.clone());
        let pause = refresh.clamp(QUOTA_CHECK_MIN, CHORE_PERIOD);
        self.env().spawn(TaskClass::Service, async move {
            let (mut read_at, mut seen) = (None, (0, 0));
            loop {
                clock.sleep(pause).await;
                let Some(server) = server.upgrade() else { return };
                let now = clock.monotonic();
                // The write counter of a region that was moved here does not include its earlier
                // writes, so the number of regions is compared, too.
                let (regions, writes) = server.quota_regions();
                let found = (regions.len(), writes);
                if read_at.is_some_and(|at| now < at + refresh) && seen == found {
                    continue;
                }
                match server.read_quotas().await {
                    Ok(()) => (read_at, seen) = (Some(now), found),
                    Err(error) => warn!(%error, "cannot read quotas; the previous ones stay in effect"),
                }
            }
        });
    }

    /// The regions of `hbase:quota` that are online here, and their total number of writes.
    fn quota_regions(&self) -> (Vec<Arc<Region>>, u64) {
        let table = wire::quota::table_name();
        let regions: Vec<_> =
            self.regions.all().into_iter().filter(|region| region.info().table == table).collect();
        let writes = regions.iter().map(|region| region.metrics().write_requests).sum();
        (regions, writes)
    }

    pub(crate) async fn read_quotas(&self) -> Result<(), engine::Error> {
        let Some(quotas) = &self.quotas else { return Ok(()) };
        if let Some(read) = &self.quota_reader {
            let cells = read().await.map_err(engine::Error::bad_request)?;
            quotas.update(cells.iter().map(|cell| cell.view(0)));
            return Ok(());
        }
        let mut found = Vec::new();
        for region in self.quota_regions().0 {
            found.push(region.scan_all(&cell::query::Scan::default()).await?);
        }
        quotas.update(found.iter().flat_map(|list| &list.cells).map(|(cell, seq_id)| cell.view(*seq_id)));
        Ok(())
    }

    /// The coprocessor endpoints of the regions.
    pub fn endpoints(&self) -> &Endpoints {
        &self.endpoints
    }

    /// The id of the cluster.
    pub(crate) fn cluster_id(&self) -> &str {
        &self.cluster_id
    }

    /// Finds the files of bulk loads.
    pub(crate) fn foreign_files(&self) -> &dyn ForeignFiles {
        &*self.foreign_files
    }

    /// What the regions share.
    pub(crate) fn services(&self) -> &RegionServices {
        &self.services
    }

    /// The receiving side of replication.
    pub fn replication_sink(&self) -> &ReplicationSink {
        &self.replication_sink
    }

    /// The most requested rows and regions.
    pub fn hotspots(&self) -> &HotSpots {
        &self.hotspots
    }

    /// Requests and usage per user.
    pub fn users(&self) -> &Users {
        &self.users
    }

    /// The most recent slow calls and large responses.
    pub fn slow_log(&self) -> &SlowLog {
        &self.slow_log
    }

    /// Charges the estimated cost of a call on `region` to the quotas that apply to the call.
    ///
    /// # Errors
    /// `RpcThrottlingException` if a quota is exhausted.
    #[inline]
    pub(crate) fn admit(
        &self,
        client: Option<&ClientIdentity>,
        region: &Region,
        planned: impl FnOnce() -> PlannedWork,
    ) -> Answer<Operation> {
        spent::set_subject(region.number());
        match &self.quotas {
            None => Ok(Operation::unlimited()),
            Some(quotas) => {
                let now_ms = self.env().clock.monotonic().as_millis() as i64;
                quotas.admit(client.and_then(ClientIdentity::user), &region.info().table, planned, now_ms)
            }
        }
    }

    /// Opens a region: opens its files, and replays the edits that only logs have, also those of
    /// the dead servers on which it was open.
    ///
    /// # Errors
    /// Why the region cannot be served.
    pub(crate) async fn open_region(
        &self,
        info: &RegionInfo,
        dead_servers: &[ServerName],
    ) -> Result<Arc<Region>, engine::Error> {
        self.check_directory(info).await?;
        let table = self.root.read_table_descriptor(&*self.services.fs, &info.table).await;
        let table = Arc::new(table.map_err(log_descriptor_error)?);
        let log = if info.table.is_meta() { &self.meta_log } else { &self.services.log };
        let services = RegionServices { log: log.clone(), ..self.services.clone() };
        let own = self.recovered.entries_of(self.services.fs.clone(), info);
        let entries = dead_servers::joined(own, self.dead_servers.entries_of(info, dead_servers).await?);
        let region = Region::open(services, Opening { info: info.clone(), table, entries }).await?;
        if !dead_servers.is_empty() {
            self.dead_servers.record_opened(&region);
        }
        Ok(region)
    }

    /// Checks that a region's directory can have the region's files. Without this check, a region
    /// whose files are gone would be served as an empty region.
    async fn check_directory(&self, info: &RegionInfo) -> Result<(), engine::Error> {
        match self.root.region_dir_state(&*self.services.fs, info).await? {
            RegionDir::Described | RegionDir::Undescribed => Ok(()),
            RegionDir::Archiving => Err(engine::Error::bad_request(
                "the region is being deleted; repeat the deletion of its table",
            )),
            RegionDir::Missing => {
                let dir = self.root.region_dir(info);
                Err(engine::Error::bad_request(format!("its directory {dir} is missing")))
            }
        }
    }

    /// Discards the edits of regions that are only in the logs of an earlier run, because the
    /// contents of these regions were replaced while they were not open. Returns when this is
    /// durable.
    ///
    /// # Errors
    /// The error of the log.
    pub async fn discard_old_edits(&self, regions: &[RegionInfo]) -> Answer<()> {
        for info in regions {
            let discarded = self.recovered.discard(&self.services.log, info, &*self.env().clock).await;
            discarded.map_err(|error| java_exception(&error))?;
        }
        Ok(())
    }

    /// The logs of dead servers.
    pub(crate) fn dead_servers(&self) -> &DeadServers {
        &self.dead_servers
    }

    /// The orders of the master to open and close regions.
    pub(crate) fn orders(&self) -> &Orders {
        &self.orders
    }

    /// The reports about opened and closed regions that failed.
    pub(crate) fn failed_reports(&self) -> &FailedReports {
        &self.failed_reports
    }

    /// Until when the server may answer clients.
    pub(crate) fn lease(&self) -> &Lease {
        &self.lease
    }

    /// Ends the process, because this server must not continue.
    pub(crate) fn abort(&self, why: &str) {
        self.fatal_errors.end(why);
    }

    /// The logs of earlier runs, from which regions replay edits.
    pub fn recovered(&self) -> &RecoveredLogs {
        &self.recovered
    }

    /// Reports the current load to the master.
    pub async fn report(&self) {
        let request =
            proto::RegionServerReportRequest { server: (&self.name).into(), load: Some(self.server_load()) };
        match self.master().region_server_report(request).await {
            Ok(_) => {}
            // It closes its session before all clients have read their responses.
            Err(error) if error.is(class::YOU_ARE_DEAD) && self.regions.has_stopped() => {}
            Err(error) if error.is(class::YOU_ARE_DEAD) => {
                self.abort(&format!("the master counts this server as dead: {}", error.message));
            }
            Err(error) => warn!(%error, "cannot report load to master; will report again"),
        }
    }

    /// The current load of this server and its regions.
    pub fn server_load(&self) -> proto::ServerLoad {
        let regions = self.regions.all();
        let loads: Vec<_> = regions.iter().map(|region| self.load_of(region)).collect();
        let instruments = &self.services.instruments;
        instruments.update_meters();
        let (now, server) = (self.env().clock.monotonic(), instruments.server());
        let (mut warnings, failures) = self.disk_findings();
        // The server serves all other files, so that no restart is needed.
        let tiers = self.tiers();
        warnings.extend(tiers.iter().flat_map(volumes::findings).map(|finding| finding.text));
        warnings.extend_from_slice(self.recovered.warnings());
        warnings.extend(self.dead_servers.warnings());
        warnings
            .extend(self.damaged_files().iter().map(|file| format!("Corrupt store file: {}.", file.path)));
        // Also of regions that are not open any more: the total only grows, as in HBase.
        let requests = server.read_rows.count() + server.written_rows.count();
        let rates = [&server.read_rows, &server.written_rows].map(|meter| meter.rates(now).one_minute);
        proto::ServerLoad {
            number_of_requests: Some(rates.iter().sum::<f64>() as u64),
            total_number_of_requests: Some(requests),
            used_heap_mb: Some(megabytes(self.used_bytes())),
            max_heap_mb: Some(megabytes(self.options.memory_bytes)),
            region_loads: loads,
            report_end_time: Some(self.env().clock.now_ms()),
            info_server_port: Some(u32::from(self.info_port)),
            repl_load_sink: Some(self.replication_sink.load(self.env().clock.now_ms())),
            user_loads: self.users.loads(),
            grampus_warnings: warnings,
            grampus_failures: failures,
            grampus_volumes: tiers.iter().flat_map(volumes::to_proto).collect(),
            grampus_version: Some(env!("CARGO_PKG_VERSION").into()),
            ..proto::ServerLoad::default()
        }
    }

    fn load_of(&self, region: &Region) -> proto::RegionLoad {
        proto::RegionLoad {
            grampus_open_seq_num: Some(region.open_seq_id()),
            grampus_needs_dead_logs: Some(self.dead_servers.are_needed_by(region)),
            ..region_load(region, &self.schedule, &self.localities)
        }
    }

    /// Bytes of memstores and cached blocks.
    pub fn used_bytes(&self) -> u64 {
        self.memstore_bytes() + self.services.loader.cached_bytes()
    }

    /// Bytes of all memstores.
    pub fn memstore_bytes(&self) -> u64 {
        self.services.budget.used_bytes()
    }

    /// How long flushing all memstores takes at the speed of recent flushes; `None` before the
    /// first flush.
    pub fn memstore_backlog(&self) -> Option<Duration> {
        self.services.budget.flush_seconds().map(Duration::from_secs_f64)
    }

    /// How long compactions take, at the speed of recent ones, until no store has more files than
    /// the minimum for a compaction; `None` before the first compaction.
    pub fn compaction_backlog(&self) -> Option<Duration> {
        let files: usize = self.regions.all().iter().map(|region| region.files_to_merge()).sum();
        let files_per_s =
            self.services.instruments.compaction_forecast().files_per_s().filter(|speed| *speed > 0.0)?;
        Duration::try_from_secs_f64(files as f64 / files_per_s).ok()
    }

    /// Whether writers may have to wait now.
    pub(crate) fn paces_writers(&self) -> bool {
        self.services.budget.pace().has_active_flushes()
    }

    /// Number of writes that waited because memstores filled faster than they were flushed.
    pub fn paused_writes(&self) -> u64 {
        self.services.budget.pace().paused_writes()
    }

    /// The memory budget of idle open scanners.
    pub(crate) fn scanner_memory(&self) -> &Arc<Budget> {
        &self.scanner_memory
    }

    /// The memory budget of responses that are being built or sent.
    pub fn response_budget(&self) -> &Arc<Budget> {
        &self.response_budget
    }

    /// Counters of client calls.
    pub fn requests(&self) -> &Arc<RequestInstruments> {
        &self.requests
    }

    /// Counters of calls from the master and from administrators.
    pub fn admin_requests(&self) -> &Arc<AdminInstruments> {
        &self.admin_requests
    }

    /// Counters of pauses of the whole process.
    pub fn pauses(&self) -> &Arc<PauseInstruments> {
        &self.pauses
    }

    /// Counters of wall clock jumps.
    pub fn clock_jumps(&self) -> &Arc<ClockInstruments> {
        &self.clock_jumps
    }

    /// Which share of the bytes of regions is on this host.
    pub fn localities(&self) -> &Localities {
        &self.localities
    }

    /// The open MOB files.
    pub fn mob_files(&self) -> &Arc<MobFiles> {
        &self.services.mob
    }

    /// The metrics of the regions.
    pub fn instruments(&self) -> &Arc<Instruments> {
        &self.services.instruments
    }

    fn do_chores(&self) {
        let expired = self.scanners.expire(self.env().clock.monotonic());
        self.requests.leases_expired.add(expired as u64);
        if expired > 0 {
            info!(expired, "closed scanners with expired leases");
        }
        // Idle scanners release memstores and files that their region has replaced. `drop` frees
        // these after `with_idle` has unlocked the scanners.
        drop(self.scanners.with_idle(OpenScanner::release_if_outdated));
        for log in [&self.services.log, &self.meta_log] {
            self.schedule.flush_all(&log.regions_beyond(self.options.logs_max));
        }
        self.schedule.flush_old(self.env().clock.now_ms(), self.options.flush_period);
    }

    /// Rolls both logs.
    ///
    /// # Errors
    /// If a new log file cannot be created. The old log file stays in use.
    pub async fn roll_logs(&self) -> Result<(), wal::Error> {
        self.services.log.roll().await?;
        self.meta_log.roll().await
    }

    /// Stops the server at a client's request.
    pub(crate) fn request_stop(&self, why: &str) {
        (self.on_stop)(why);
    }

    /// The name of this server.
    pub fn name(&self) -> &ServerName {
        &self.name
    }

    /// The port of its status pages.
    pub fn info_port(&self) -> u16 {
        self.info_port
    }

    /// The online regions.
    pub fn regions(&self) -> &Arc<OnlineRegions> {
        &self.regions
    }

    /// The scheduler of flushes and compactions.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// The open scanners.
    pub fn scanners(&self) -> &Scanners<OpenScanner> {
        &self.scanners
    }

    /// The settings of this server.
    pub fn options(&self) -> &RegionServerOptions {
        &self.options
    }

    /// Statistics of the log of user tables. Its `edits`, `bytes`, `groups` and `rolls` include the
    /// log of `hbase:meta`.
    pub fn user_log_statistics(&self) -> wal::LogStatistics {
        self.services.log.statistics()
    }

    /// Metrics of both logs together: of user tables and of `hbase:meta`.
    pub fn shared_log_instruments(&self) -> &Arc<wal::Instruments> {
        self.services.log.instruments()
    }

    /// Hits, misses and bytes of the block cache.
    pub fn cache_stats(&self) -> cache::Stats {
        self.services.loader.stats()
    }

    /// Statistics of the second level of the block cache; `None` if there is none.
    pub fn second_level_cache_stats(&self) -> Option<ssdcache::Stats> {
        self.second_level_cache.as_ref().map(|cache| cache.stats())
    }

    /// Writes the blocks that wait to be written to the second level of the block cache.
    pub(crate) async fn close_second_level_cache(&self) {
        if let Some(cache) = &self.second_level_cache {
            cache.close().await;
        }
    }

    /// Number of reads that found a damaged block. Repeated reads of a block count again.
    pub fn damaged_reads(&self) -> u64 {
        self.services.loader.damaged_reads()
    }

    /// Store files in which reads found damage.
    pub fn damaged_files(&self) -> Vec<DamagedFile> {
        self.services.loader.damaged_files()
    }

    /// Hits, misses and bytes of one kind of block.
    pub fn block_kind_stats(&self, kind: hfile::BlockKind) -> cache::KindStats {
        self.services.loader.kind_stats(kind)
    }

    pub(crate) fn env(&self) -> &Env {
        &self.services.env
    }

    /// The disk that the server writes to.
    pub fn disk(&self) -> &Disk {
        &self.disk
    }

    /// The state of the storage tiers; empty if there are none.
    pub fn tiers(&self) -> Vec<TierStatus> {
        self.disk.tiers.as_ref().map(TieredFs::status).unwrap_or_default()
    }

    /// The log of user regions, and the log of `hbase:meta`.
    pub(crate) fn logs(&self) -> [&Arc<wal::Log>; 2] {
        [&self.services.log, &self.meta_log]
    }

    /// The layout of the root directory.
    pub(crate) fn root(&self) -> &RootDir {
        &self.services.root
    }

    /// What was done with the storage policies of directories; `None` if the storage has none.
    pub fn policy_counts(&self) -> Option<fs::PolicyCounts> {
        self.fs().policy_counts()
    }

    pub(crate) fn fs(&self) -> &Arc<dyn FileSystem> {
        &self.services.fs
    }

    /// The log files that are open for writing.
    pub(crate) fn open_logs(&self) -> Vec<FilePath> {
        self.logs().into_iter().filter_map(|log| log.open_file()).collect()
    }

    /// Whether accepted writes wait for disk space.
    pub fn waits_for_space(&self) -> bool {
        self.logs().into_iter().any(|log| log.waits_for_space())
    }

    /// The master.
    ///
    /// # Panics
    /// If the server has not registered. No region is online then, because only the master opens
    /// regions.
    pub(crate) fn master(&self) -> &Arc<dyn RegionServerStatusService> {
        self.master.get().expect("the server has registered")
    }
}

/// Registers a server with the master, which then may order it to open regions.
///
/// # Errors
/// The master's error.
pub async fn register(env: &Env, master: &dyn RegionServerStatusService, name: &ServerName) -> Answer<()> {
    loop {
        let begun = env.clock.monotonic();
        let request = proto::RegionServerStartupRequest {
            port: u32::from(name.port),
            server_start_code: name.start_code,
            server_current_time: env.clock.now_ms(),
            use_this_hostname_instead: Some(name.host.clone()),
        };
        let Err(error) = master.region_server_startup(request).await else { return Ok(()) };
        if !is_maybe_late(&error, env.clock.monotonic().saturating_sub(begun)) {
            return Err(error);
        }
        warn!(%error, "the registration took long; repeating it with the current time");
    }
}

/// Whether the master may have compared its clock with an old time, because the request waited for
/// a master or a connection.
fn is_maybe_late(error: &JavaException, took: Duration) -> bool {
    error.is(class::CLOCK_OUT_OF_SYNC) && took > PROMPT_REGISTRATION_MAX
}

/// Logs the failure to read a table descriptor, and converts the error.
fn log_descriptor_error(error: layout::Error) -> engine::Error {
    error!(%error, "cannot read table descriptor");
    engine::Error::bad_request(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_prompt_registration_shows_that_the_clock_is_wrong() {
        let skew = JavaException::new(class::CLOCK_OUT_OF_SYNC, "31000 ms");
        assert!(!is_maybe_late(&skew, Duration::from_secs(5)));
        assert!(is_maybe_late(&skew, Duration::from_secs(6)));
        let dead = JavaException::new(class::YOU_ARE_DEAD, "dead");
        assert!(!is_maybe_late(&dead, Duration::from_secs(6)));
    }
}
