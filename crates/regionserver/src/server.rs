//! A region server: its logs, its regions, and its word with the master.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use base::budget::Budget;
use base::env::{Env, TaskClass};
use base::spent;
use cell::region::{RegionInfo, ServerName};
use coprocessor::Endpoints;
use engine::Region;
use engine::budget::MemstoreBudget;
use engine::instruments::Instruments;
use engine::nonces::{self, Nonces};
use engine::recovery::{OnDamage, Recovered, log_dirs_of_others};
use engine::region::{Opening, RegionOptions, RegionServices};
use engine::scanner::{BlockLoader, DamagedFile};
use fs::FileSystem;
use layout::RootDir;
use tracing::{error, info, warn};
use wire::exception::Answer;
use wire::service::RegionServerStatusService;

use crate::client::{CallContext, OpenScanner};
use crate::clock_jumps::{self, ClockInstruments};
use crate::disk::Disk;
use crate::hotspots::HotSpots;
use crate::instruments::{AdminInstruments, RequestInstruments};
use crate::load::{megabytes, region_load};
use crate::memory::{Common, MOVE_PERIOD, MemoryMover};
use crate::pauses::{self, PauseInstruments};
use crate::quotas::{Operation, Planned, QuotaOptions, RpcQuotas};
use crate::regions::OnlineRegions;
use crate::scanners::Scanners;
use crate::schedule::Schedule;
use crate::schedule::compactions::CompactionOptions;
use crate::slow_log::{SlowLog, SlowLogOptions};
use crate::users::Users;

/// The pause between reports to the master (`hbase.regionserver.msginterval`).
const REPORT_PERIOD: Duration = Duration::from_secs(3);
/// The pause between looks at leases and logs.
const CHORE_PERIOD: Duration = Duration::from_secs(1);
/// The shortest pause between looks at the table of quotas.
const QUOTA_LOOK_MIN: Duration = Duration::from_millis(100);
/// The pause between looks at stores that nobody asked to compact (`hbase.regionserver.compaction.check.period`).
const COMPACTION_CHECK_PERIOD: Duration = Duration::from_secs(10);

/// What a region server needs to begin.
pub struct RegionServerParts {
    /// Time, chance, tasks, network.
    pub env: Env,
    /// The files.
    pub fs: Arc<dyn FileSystem>,
    /// The disk that they are on.
    pub disk: Disk,
    /// Where what lies.
    pub root: RootDir,
    /// This server.
    pub name: ServerName,
    /// The port of its pages.
    pub info_port: u16,
    /// Settings.
    pub options: RegionServerOptions,
    /// Bytes of answers that are made or on their way, shared with the RPC servers.
    pub answers: Arc<Budget>,
    /// Called when the log can take no more: nothing is acknowledged from then on, and the process should end.
    pub on_fatal: Arc<dyn Fn(&str) + Send + Sync>,
    /// Called when a client asks the server to stop, with its words.
    pub on_stop: Arc<dyn Fn(&str) + Send + Sync>,
}

/// Settings of a region server, in HBase's keys.
#[derive(Clone, Debug)]
pub struct RegionServerOptions {
    /// Of its regions.
    pub region: RegionOptions,
    /// When and how fast its regions are compacted.
    pub compaction: CompactionOptions,
    /// The memory of the process: memstores, cache, requests and answers are parts of it (`grampus.memory`).
    pub memory_bytes: u64,
    /// Bytes of all memstores at which writes are refused.
    pub memstore_bytes: u64,
    /// The part of these bytes from which regions are flushed
    /// (`hbase.regionserver.global.memstore.size.lower.limit`).
    pub memstore_low_mark: f64,
    /// Bytes that the block cache has when memstores have all of theirs; it has what they leave, too.
    pub cache_bytes: u64,
    /// What becomes of regions that may have lost edits by a damaged log (`hbase.hlog.split.skip.errors`).
    pub on_damage: OnDamage,
    /// A log of this length is replaced by a new one.
    pub log_roll_bytes: u64,
    /// A log of this age is replaced by a new one (`hbase.regionserver.logroll.period`).
    pub log_roll_period: Duration,
    /// Logs at which regions are flushed so that the oldest can go (`hbase.regionserver.maxlogs`).
    pub logs_max: usize,
    /// A memstore with edits is flushed after this long (`hbase.regionserver.optionalcacheflushinterval`).
    pub flush_period: Duration,
    /// How long a scanner's client may be silent (`hbase.client.scanner.timeout.period`).
    pub scanner_lease: Duration,
    /// Open scanners at most.
    pub scanners_max: usize,
    /// Bytes that open scanners hold at most while their clients are silent.
    pub scanner_bytes_max: usize,
    /// Bytes of a scan's or a multi's answer at most (`hbase.server.scanner.max.result.size`).
    pub result_bytes_max: u64,
    /// Rows of a multi from which the log warns (`hbase.rpc.rows.warning.threshold`).
    pub batch_rows_warning: u32,
    /// Changes of a multi that are made together at most (`hbase.regionserver.minibatch.size`).
    pub minibatch_changes: usize,
    /// Whether a multi of more rows is refused (`hbase.rpc.rows.size.threshold.reject`).
    pub rejects_large_batches: bool,
    /// How long increments and appends that were carried out are known by their nonces
    /// (`hbase.server.hashNonce.gracePeriod`).
    pub nonce_grace: Duration,
    /// How calls are throttled; `None` if they are not (`hbase.quota.enabled`).
    pub quotas: Option<QuotaOptions>,
    /// How long an interval is in which hot rows and regions are told apart.
    pub hotspots_period: Duration,
    /// Bytes of a capacity unit that is read, and of one that is written (`hbase.quota.read.capacity.unit`, `.write.`).
    pub unit_bytes: (u64, u64),
    /// Whether the times of users' operations are counted (`hbase.regionserver.user.metrics.enabled`).
    pub times_users: bool,
    /// Which calls are told of, and how many of them are kept.
    pub slow_log: SlowLogOptions,
    /// Regions from which none is split any more (`hbase.regionserver.regionSplitLimit`).
    pub regions_max: usize,
}

impl RegionServerOptions {
    fn common_memory(&self) -> Common {
        Common {
            memstore_bytes: self.memstore_bytes,
            cache_bytes: self.cache_bytes,
            process_bytes: self.memory_bytes,
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
    // hbase:meta has a log of its own, so that it can be replayed first.
    meta_log: Arc<wal::Log>,
    regions: Arc<OnlineRegions>,
    schedule: Arc<Schedule>,
    scanners: Scanners<OpenScanner>,
    answers: Arc<Budget>,
    scanner_memory: Arc<Budget>,
    requests: Arc<RequestInstruments>,
    admin_requests: Arc<AdminInstruments>,
    pauses: Arc<PauseInstruments>,
    clock_jumps: Arc<ClockInstruments>,
    quotas: Option<RpcQuotas>,
    slow_log: SlowLog,
    users: Users,
    hotspots: HotSpots,
    endpoints: Endpoints,
    recovered: Recovered,
    master: OnceLock<Arc<dyn RegionServerStatusService>>,
    on_stop: Arc<dyn Fn(&str) + Send + Sync>,
}

impl RegionServer {
    /// Reads what logs of earlier runs hold, and begins logs of its own. Serves no region yet.
    ///
    /// # Errors
    /// A log that is damaged below what was durable, or what the file system said: nothing was changed then.
    pub async fn start(parts: RegionServerParts) -> Result<Arc<RegionServer>, wal::Error> {
        let RegionServerParts { env, fs, disk, root, name, info_port, options, answers, on_fatal, on_stop } =
            parts;
        // One process holds the root directory, so the writers of other logs are dead.
        let dead = log_dirs_of_others(&*fs, &root, &name).await?;
        let recovered = Recovered::scan(fs.clone(), &root, &dead, &name, options.on_damage).await?;
        let on_log_failure: Arc<dyn Fn(&wal::Error) + Send + Sync> =
            Arc::new(move |error| on_fatal(&error.to_string()));
        let log_instruments = Arc::new(wal::Instruments::begin(env.clock.monotonic()));
        let begin_log = async |suffix: &str| {
            let log_options = wal::LogOptions {
                suffix: suffix.to_string(),
                roll_bytes: options.log_roll_bytes,
                roll_period: Some(options.log_roll_period),
                instruments: Some(log_instruments.clone()),
                record: Some(if suffix.is_empty() { root.log_record() } else { root.meta_log_record() }),
                ..wal::LogOptions::new(root.wal_dir(&name), &name.url_encoded(), root.old_wals_dir())
            };
            wal::Log::start(env.clone(), fs.clone(), log_options, on_log_failure.clone()).await
        };
        let log = begin_log("").await?;
        let meta_log = begin_log(".meta").await?;
        recovered.hand_over(&log, &meta_log);
        recovered.forget_gone_regions(&*fs, &root, &log).await?;

        let regions = Arc::new(OnlineRegions::default());
        let budget = MemstoreBudget::new(options.memstore_bytes, options.memstore_low_mark);
        let budget = Arc::new(budget.on_disk(disk.space.clone()));
        let schedule =
            Schedule::new(env.clone(), regions.clone(), budget.clone(), options.compaction.clone());
        let services = RegionServices {
            env: env.clone(),
            fs,
            root: root.clone(),
            log,
            loader: Arc::new(BlockLoader::new(options.common_memory().bytes())),
            budget,
            nonces: Arc::new(Nonces::new(options.nonce_grace, nonces::DONE_MAX)),
            maintenance: schedule.clone(),
            options: Arc::new(options.region.clone()),
            instruments: Arc::new(Instruments::begin(env.clock.monotonic())),
            server: Some(name.clone()),
        };
        // A server that starts anew goes on with ids that no earlier run gave out: time has passed.
        let first_scanner_id = name.start_code << 20;
        let scanners = Scanners::new(options.scanner_lease, options.scanners_max, first_scanner_id);
        let quotas = options.quotas.map(RpcQuotas::new);
        let slow_log = SlowLog::new(options.slow_log);
        let scanner_memory = Budget::new(options.scanner_bytes_max);
        let now = services.env.clock.monotonic();
        let requests = Arc::new(RequestInstruments::begin(now));
        let users = Users::new(options.times_users, now);
        let admin_requests = Arc::new(AdminInstruments::begin(now));
        let pauses = Arc::new(PauseInstruments::begin(now));
        let clock_jumps = Arc::new(ClockInstruments::begin(now));
        Ok(Arc::new(RegionServer {
            quotas,
            slow_log,
            users,
            hotspots: HotSpots::new(now),
            endpoints: Endpoints::new(env, answers.clone()),
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
            answers,
            scanner_memory,
            requests,
            admin_requests,
            pauses,
            clock_jumps,
            recovered,
            master: OnceLock::new(),
            on_stop,
        }))
    }

    /// Checks in with the master, then reports to it regularly and does the chores.
    ///
    /// # Errors
    /// What the master answered.
    pub async fn join(self: &Arc<Self>, master: Arc<dyn RegionServerStatusService>) -> Answer<()> {
        let request = proto::RegionServerStartupRequest {
            port: u32::from(self.name.port),
            server_start_code: self.name.start_code,
            server_current_time: self.env().clock.now_ms(),
            use_this_hostname_instead: Some(self.name.host.clone()),
        };
        master.region_server_startup(request).await?;
        assert!(self.master.set(master).is_ok(), "a server joins once");
        let splitter = Arc::downgrade(self);
        self.schedule.compactions().on_new_files(move |region| {
            if let Some(server) = splitter.upgrade() {
                server.consider_split(region);
            }
        });
        let (reporter, chores) = (Arc::downgrade(self), Arc::downgrade(self));
        let clock = self.env().clock.clone();
        self.env().spawn(TaskClass::Service, async move {
            while let Some(server) = reporter.upgrade() {
                server.report().await;
                drop(server);
                clock.sleep(REPORT_PERIOD).await;
            }
        });
        let (checker, clock) = (Arc::downgrade(self), self.env().clock.clone());
        self.env().spawn(TaskClass::Service, async move {
            loop {
                clock.sleep(COMPACTION_CHECK_PERIOD).await;
                let Some(server) = checker.upgrade() else { return };
                server.schedule.look_at_stores();
            }
        });
        self.watch_disk();
        pauses::watch(self.env(), &self.pauses);
        clock_jumps::watch(self.env(), &self.clock_jumps);
        let (watcher, clock) = (Arc::downgrade(self), self.env().clock.clone());
        self.env().spawn(TaskClass::Background, async move {
            loop {
                let Some(period) = watcher.upgrade().map(|server| server.options.hotspots_period) else {
                    return;
                };
                clock.sleep(period).await;
                let Some(server) = watcher.upgrade() else { return };
                server.hotspots.end_interval(&server.regions, clock.monotonic(), clock.now_ms());
            }
        });
        if let Some(quotas) = &self.quotas {
            self.look_after_quotas(Duration::from_millis(quotas.options().refresh_ms));
        }
        let (mover, clock) = (Arc::downgrade(self), self.env().clock.clone());
        self.env().spawn(TaskClass::Service, async move {
            let Some(mut memory) =
                mover.upgrade().map(|server| MemoryMover::new(server.options.common_memory()))
            else {
                return;
            };
            while let Some(server) = mover.upgrade() {
                memory.move_memory(&server.services, &server.regions);
                drop(server);
                clock.sleep(MOVE_PERIOD).await;
            }
        });
        let clock = self.env().clock.clone();
        self.env().spawn(TaskClass::Service, async move {
            while let Some(server) = chores.upgrade() {
                server.do_chores();
                server.schedule.archive_compacted_files().await;
                drop(server);
                clock.sleep(CHORE_PERIOD).await;
            }
        });
        Ok(())
    }

    /// Reads quotas when their table was written, and every `refresh`.
    fn look_after_quotas(self: &Arc<Self>, refresh: Duration) {
        let (server, clock) = (Arc::downgrade(self), self.env().clock.clone());
        let pause = refresh.clamp(QUOTA_LOOK_MIN, CHORE_PERIOD);
        self.env().spawn(TaskClass::Service, async move {
            let (mut read_at, mut seen) = (None, (0, 0));
            loop {
                clock.sleep(pause).await;
                let Some(server) = server.upgrade() else { return };
                let now = clock.monotonic();
                // A region that comes has rows that were not written here.
                let (regions, writes) = server.quota_regions();
                let found = (regions.len(), writes);
                if read_at.is_some_and(|at| now < at + refresh) && seen == found {
                    continue;
                }
                match server.read_quotas().await {
                    Ok(()) => (read_at, seen) = (Some(now), found),
                    Err(error) => warn!(%error, "quotas cannot be read; those known stay in force"),
                }
            }
        });
    }

    /// The regions of `hbase:quota` that are served here, and how often they were written.
    fn quota_regions(&self) -> (Vec<Arc<Region>>, u64) {
        let table = wire::quota::table_name();
        let regions: Vec<_> =
            self.regions.all().into_iter().filter(|region| region.info().table == table).collect();
        let writes = regions.iter().map(|region| region.figures().write_requests).sum();
        (regions, writes)
    }

    pub(crate) async fn read_quotas(&self) -> Result<(), engine::Error> {
        let Some(quotas) = &self.quotas else { return Ok(()) };
        let mut found = Vec::new();
        for region in self.quota_regions().0 {
            found.push(region.scan_all(&cell::query::Scan::default()).await?);
        }
        quotas.update(found.iter().flat_map(|list| &list.cells).map(|(cell, seq_id)| cell.view(*seq_id)));
        Ok(())
    }

    /// The services of its regions beside reads and writes.
    pub fn endpoints(&self) -> &Endpoints {
        &self.endpoints
    }

    /// What is asked for most.
    pub fn hotspots(&self) -> &HotSpots {
        &self.hotspots
    }

    /// What each user asks.
    pub fn users(&self) -> &Users {
        &self.users
    }

    /// The last calls that took long or gave much.
    pub fn slow_log(&self) -> &SlowLog {
        &self.slow_log
    }

    /// Takes what a call of `region` is thought to use from the quotas that bound it.
    ///
    /// # Errors
    /// `RpcThrottlingException` if one of them is used up.
    #[inline]
    pub(crate) fn admit(
        &self,
        context: &CallContext,
        region: &Region,
        planned: impl FnOnce() -> Planned,
    ) -> Answer<Operation> {
        spent::about(region.number());
        match &self.quotas {
            None => Ok(Operation::unbounded()),
            Some(quotas) => {
                let now_ms = self.env().clock.monotonic().as_millis() as i64;
                quotas.admit(context.user(), &region.info().table, planned, now_ms)
            }
        }
    }

    /// Opens a region: its files, then what the logs have beyond them.
    ///
    /// # Errors
    /// What keeps it from being served.
    pub(crate) async fn open_region(&self, info: &RegionInfo) -> Result<Arc<Region>, engine::Error> {
        // Opened without its directory, it would serve no rows as if it never had any.
        let dir = self.root.region_dir(info);
        if self.services.fs.stat(&dir).await?.is_none() {
            return Err(engine::Error::bad_request(format!("its directory {dir} is missing")));
        }
        let table = self.root.read_table_descriptor(&*self.services.fs, &info.table).await;
        let table = Arc::new(table.map_err(layout_error)?);
        let log = if info.table.is_meta() { &self.meta_log } else { &self.services.log };
        let services = RegionServices { log: log.clone(), ..self.services.clone() };
        let entries = self.recovered.entries_of(self.services.fs.clone(), info);
        Region::open(services, Opening { info: info.clone(), table, entries }).await
    }

    /// What the logs of earlier runs hold.
    pub fn recovered(&self) -> &Recovered {
        &self.recovered
    }

    /// Tells the master the figures of this moment.
    pub async fn report(&self) {
        let request =
            proto::RegionServerReportRequest { server: (&self.name).into(), load: Some(self.server_load()) };
        if let Err(error) = self.master().region_server_report(request).await {
            warn!(%error, "the master did not take a report");
        }
    }

    /// The figures of this server and its regions.
    pub fn server_load(&self) -> proto::ServerLoad {
        let regions = self.regions.all();
        let loads: Vec<_> = regions.iter().map(|region| region_load(region, &self.schedule)).collect();
        let requests =
            loads.iter().map(|load| load.read_requests_count() + load.write_requests_count()).sum();
        let instruments = &self.services.instruments;
        instruments.tell_meters();
        let (now, server) = (self.env().clock.monotonic(), instruments.server());
        let (mut warnings, failures) = self.disk_findings();
        warnings.extend_from_slice(self.recovered.warnings());
        warnings
            .extend(self.damaged_files().iter().map(|file| format!("Corrupt store file: {}.", file.path)));
        let rates = [&server.read_rows, &server.written_rows].map(|meter| meter.rates(now).one_minute);
        proto::ServerLoad {
            number_of_requests: Some(rates.iter().sum::<f64>() as u64),
            total_number_of_requests: Some(requests),
            used_heap_mb: Some(megabytes(self.used_bytes())),
            max_heap_mb: Some(megabytes(self.options.memory_bytes)),
            region_loads: loads,
            report_end_time: Some(self.env().clock.now_ms()),
            info_server_port: Some(u32::from(self.info_port)),
            user_loads: self.users.loads(),
            grampus_warnings: warnings,
            grampus_failures: failures,
            ..proto::ServerLoad::default()
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

    /// Bytes that open scanners hold while their clients are silent.
    pub(crate) fn scanner_memory(&self) -> &Arc<Budget> {
        &self.scanner_memory
    }

    /// Bytes of answers that are made or on their way.
    pub(crate) fn answers(&self) -> &Arc<Budget> {
        &self.answers
    }

    /// What is counted of calls.
    pub fn requests(&self) -> &Arc<RequestInstruments> {
        &self.requests
    }

    /// What the master and administrators ask.
    pub fn admin_requests(&self) -> &Arc<AdminInstruments> {
        &self.admin_requests
    }

    /// What is counted of times when nothing is served.
    pub fn pauses(&self) -> &Arc<PauseInstruments> {
        &self.pauses
    }

    /// Jumps of the wall clock.
    pub fn clock_jumps(&self) -> &Arc<ClockInstruments> {
        &self.clock_jumps
    }

    /// What its regions count.
    pub fn instruments(&self) -> &Arc<Instruments> {
        &self.services.instruments
    }

    fn do_chores(&self) {
        let expired = self.scanners.expire(self.env().clock.monotonic());
        self.requests.leases_expired.add(expired as u64);
        if expired > 0 {
            info!(expired, "scanners dropped: their leases ran out");
        }
        // What idle scanners hold of the past is let go of behind their lock.
        drop(self.scanners.with_idle(OpenScanner::rest_if_outdated));
        for log in [&self.services.log, &self.meta_log] {
            if log.log_count() > self.options.logs_max {
                self.schedule.flush_all(&log.regions_holding_oldest());
            }
        }
        self.schedule.flush_old(self.env().clock.now_ms(), self.options.flush_period);
    }

    /// Begins new log files.
    ///
    /// # Errors
    /// If no new file can be made; the old ones stay in use.
    pub async fn roll_logs(&self) -> Result<(), wal::Error> {
        self.services.log.roll().await?;
        self.meta_log.roll().await
    }

    /// Stops, because a client asks for it.
    pub(crate) fn request_stop(&self, why: &str) {
        (self.on_stop)(why);
    }

    /// This server.
    pub fn name(&self) -> &ServerName {
        &self.name
    }

    /// The port of its pages.
    pub fn info_port(&self) -> u16 {
        self.info_port
    }

    /// The regions served here.
    pub fn regions(&self) -> &Arc<OnlineRegions> {
        &self.regions
    }

    /// When regions are flushed and compacted.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// The open scanners.
    pub fn scanners(&self) -> &Scanners<OpenScanner> {
        &self.scanners
    }

    /// Settings.
    pub fn options(&self) -> &RegionServerOptions {
        &self.options
    }

    /// Figures of the log of users' tables.
    pub fn log_figures(&self) -> wal::Figures {
        self.services.log.figures()
    }

    /// What its logs count together.
    pub fn log_instruments(&self) -> &Arc<wal::Instruments> {
        self.services.log.instruments()
    }

    /// Hits, misses and bytes of the block cache.
    pub fn cache_stats(&self) -> cache::Stats {
        self.services.loader.stats()
    }

    /// How often a damaged block was read.
    pub fn damaged_blocks(&self) -> u64 {
        self.services.loader.damaged()
    }

    /// Store files in which reads met damage.
    pub fn damaged_files(&self) -> Vec<DamagedFile> {
        self.services.loader.damaged_files()
    }

    /// Hits, misses and bytes of one kind of blocks.
    pub fn cached_kind(&self, kind: hfile::BlockKind) -> cache::KindStats {
        self.services.loader.kind_stats(kind)
    }

    pub(crate) fn env(&self) -> &Env {
        &self.services.env
    }

    /// The disk that it writes to.
    pub fn disk(&self) -> &Disk {
        &self.disk
    }

    /// The log of users' regions, and that of `hbase:meta`.
    pub(crate) fn logs(&self) -> [&Arc<wal::Log>; 2] {
        [&self.services.log, &self.meta_log]
    }

    pub(crate) fn fs(&self) -> &Arc<dyn FileSystem> {
        &self.services.fs
    }

    /// The log files that are written.
    pub(crate) fn open_logs(&self) -> Vec<fs::FilePath> {
        self.logs().into_iter().filter_map(|log| log.open_file()).collect()
    }

    /// Whether accepted writes wait for room on the disk.
    pub fn waits_for_room(&self) -> bool {
        self.logs().into_iter().any(|log| log.waits_for_room())
    }

    /// The master.
    ///
    /// # Panics
    /// Before [`RegionServer::join`]: regions are opened for the master only.
    pub(crate) fn master(&self) -> &Arc<dyn RegionServerStatusService> {
        self.master.get().expect("the server has joined")
    }
}

/// A descriptor that cannot be read keeps the region closed.
fn layout_error(error: layout::Error) -> engine::Error {
    error!(%error, "table descriptor");
    engine::Error::bad_request(error.to_string())
}
