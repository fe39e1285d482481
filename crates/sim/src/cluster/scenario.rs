//! A run of a cluster: clients and an operator work while faults come and go, then everything is
//! checked.

use std::sync::Arc;
use std::time::Duration;

use base::env::Env;
use fs::{FilePath, FileSystem};
use layout::RootDir;
use tokio::task::JoinHandle;

use super::checks::{check_meta, check_settled, observe};
use super::operator::{OPERATIONS, Operator};
use super::{Cluster, ClusterSize, Planted};
use crate::disk::DiskFaults;
use crate::network::{Crash, HostId};
use crate::node;
use crate::process::{Life, Process};
use crate::random::RandomSource;
use crate::scenario::Summary;
use crate::scheduler::Owner;
use crate::workload::Workload;
use crate::world::{Run, World, WorldOptions};

/// Number of client processes.
const CLIENTS: usize = 2;
/// Maximum pause between two operations of a client's task. Most of a run is spent on clients, and
/// the faults of a cluster are rarer than those of one server.
const PAUSE_MAX: Duration = Duration::from_millis(400);
/// Each run has one of these percentages of writes. A server that has lost its regions notices it
/// when it writes: so its reads are tested best with few writes.
const WRITE_PERCENTS: [u64; 3] = [10, 60, 60];
/// Bounds of a fault's duration.
const FAULT: (Duration, Duration) = (Duration::from_millis(5), Duration::from_secs(8));
/// Bounds of the time between two faults.
const CALM: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(3));
/// Time in which the cluster must be as before after all faults have ended.
const RECOVERY: Duration = Duration::from_secs(300);
/// Maximum time of the last compaction, and the pause between two checks whether it has ended.
const COMPACTION: Duration = Duration::from_secs(60);
const COMPACTION_POLL_PERIOD: Duration = Duration::from_millis(200);
/// Maximum difference between the wall clock of a process and that of the simulation. A master
/// refuses a region server whose clock differs by more than 30 s from its own; the clocks of two
/// processes differ by less.
const SKEW_MAX_MS: u64 = 14_000;
/// The standalone server that has used the directory before, and its client.
const STANDALONE: &str = "standalone";
const STANDALONE_CLIENT: &str = "client0";
/// How often it is restarted at most, and bounds of the time between two restarts.
const STANDALONE_RESTARTS_MAX: u64 = 2;
const STANDALONE_LIFE: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(6));
/// Operations that run at the same time.
const OPERATIONS_MAX: usize = 2;

/// How a cluster is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterOptions {
    /// Numbers of processes.
    pub size: ClusterSize,
    /// Number of faults.
    pub steps: usize,
    /// A bug of the product that the checks should find.
    pub planted: Option<Planted>,
    /// Whether the cluster uses HDFS instead of a shared directory.
    pub on_hdfs: bool,
    /// Whether a standalone server has used the shared directory before.
    pub from_standalone: bool,
}

impl ClusterOptions {
    /// Two masters and three region servers with this many faults.
    pub fn new(steps: usize) -> ClusterOptions {
        let size = ClusterSize { masters: 2, region_servers: 3 };
        ClusterOptions { size, steps, planted: None, on_hdfs: false, from_standalone: false }
    }
}

/// Runs one seed. The error is the first violated invariant.
pub fn run(options: WorldOptions, cluster: ClusterOptions) -> Run<Result<Summary, String>> {
    World::run(options, move |world| {
        let scenario = Scenario::new(world, cluster, Clients { count: CLIENTS, pause_max: PAUSE_MAX });
        scenario.run(cluster.steps)
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Kill,
    KillTwo,
    KillMasters,
    Stop,
    PowerLoss,
    Pause,
    PauseActiveMaster,
    /// A pause in which the clocks of the process stand still.
    Freeze,
    FreezeActiveMaster,
    PartitionFromZooKeeper,
    PartitionFromAll,
    BlockInput,
    BlockOutput,
    BlockTwo,
    BreakConnections,
    SlowNetwork,
    SlowDisk,
    HangingDisk,
    FailingDisk,
    ClockJump,
    StopZooKeeper,
    KillClient,
    /// A fault of HDFS.
    Hdfs,
}

/// Each with its weight. Half of the pauses become freezes ([`Scenario::choose_fault`]).
const FAULTS: [(Fault, u64); 20] = [
    (Fault::Kill, 6),
    (Fault::KillTwo, 2),
    (Fault::KillMasters, 1),
    (Fault::Stop, 2),
    (Fault::PowerLoss, 1),
    (Fault::Pause, 4),
    (Fault::PauseActiveMaster, 2),
    (Fault::PartitionFromZooKeeper, 3),
    (Fault::PartitionFromAll, 2),
    (Fault::BlockInput, 2),
    (Fault::BlockOutput, 2),
    (Fault::BlockTwo, 2),
    (Fault::BreakConnections, 2),
    (Fault::SlowNetwork, 1),
    (Fault::SlowDisk, 1),
    (Fault::HangingDisk, 1),
    (Fault::FailingDisk, 2),
    (Fault::ClockJump, 1),
    (Fault::StopZooKeeper, 1),
    (Fault::KillClient, 1),
];

/// The faults of a cluster on HDFS, each with its weight. Its processes have no disks.
const FAULTS_ON_HDFS: [(Fault, u64); 18] = [
    (Fault::Hdfs, 32),
    (Fault::Kill, 6),
    (Fault::KillTwo, 2),
    (Fault::KillMasters, 1),
    (Fault::Stop, 2),
    (Fault::PowerLoss, 1),
    (Fault::Pause, 5),
    (Fault::PauseActiveMaster, 2),
    (Fault::PartitionFromZooKeeper, 3),
    (Fault::PartitionFromAll, 2),
    (Fault::BlockInput, 2),
    (Fault::BlockOutput, 2),
    (Fault::BlockTwo, 2),
    (Fault::BreakConnections, 2),
    (Fault::SlowNetwork, 1),
    (Fault::ClockJump, 1),
    (Fault::StopZooKeeper, 1),
    (Fault::KillClient, 1),
];

/// The clients of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clients {
    /// Number of client processes.
    pub(super) count: usize,
    /// Maximum pause between two operations of a client's task.
    pub(super) pause_max: Duration,
}

/// A cluster with clients.
pub(super) struct Scenario {
    pub(super) world: Arc<World>,
    pub(super) random: RandomSource,
    // Decides which pauses are freezes.
    freezes: RandomSource,
    pub(super) cluster: Cluster,
    pub(super) workload: Workload,
    from_standalone: bool,
    client_count: usize,
    clients: Vec<Arc<Process>>,
    // For administration and the final check.
    pub(super) operator_env: Env,
    operator_life: Life,
    operator: Operator,
    operations: Vec<JoinHandle<()>>,
}

impl Scenario {
    pub(super) fn new(world: Arc<World>, options: ClusterOptions, clients: Clients) -> Scenario {
        let cluster = Cluster::new(&world, options.size, options.planted, options.on_hdfs);
        let operator_life = world.add_idle_process("operator").start();
        let operator_env = operator_life.env.clone();
        let random = world.random("scenario");
        let write_percent = WRITE_PERCENTS[random.index(WRITE_PERCENTS.len())];
        let workload = Workload::new(Cluster::registry()).with_pause(clients.pause_max);
        let workload = workload.with_visitors(write_percent);
        let operator = Operator::new(world.clone(), workload.client(&operator_env), &workload);
        Scenario {
            random,
            freezes: world.random("freezes"),
            cluster,
            workload,
            from_standalone: options.from_standalone,
            client_count: clients.count,
            clients: Vec::new(),
            operator_env,
            operator_life,
            operator,
            operations: Vec::new(),
            world,
        }
    }

    /// Starts the cluster and the clients.
    pub(super) async fn start(&mut self) -> Result<(), String> {
        observe(&self.world, &self.cluster, self.workload.history());
        let root = RootDir::new(FilePath::root());
        // The root directory is created here, because the simulation lacks the lock with which only
        // one process does this in the product.
        let fs: Arc<dyn FileSystem> = match &self.cluster.hdfs {
            Some(hdfs) => hdfs.connect(&self.operator_life).await,
            None => self.operator_life.fs.clone(),
        };
        let identity = root.open_or_create(&*fs, &*self.operator_env.random).await;
        identity.map_err(|error| error.to_string())?;
        if self.from_standalone {
            self.run_standalone().await?;
        }
        self.cluster.processes().for_each(|process| drop(process.start()));
        let created = self.world.timeout(RECOVERY, self.workload.create_table(&self.operator_env)).await;
        created.ok_or("violated: the table is created in time")?;
        self.world.record("scenario", "the table exists");
        for n in 1..=self.client_count {
            self.clients.push(self.workload.add_client(&self.world, &format!("client{n}")));
        }
        Ok(())
    }

    /// Runs a standalone server and a client, and kills them. The logs of several lives of the
    /// server then have edits that no file has.
    async fn run_standalone(&self) -> Result<(), String> {
        let server = node::standalone(&self.world, STANDALONE);
        let workload = self.workload.clone().on(node::registry_of(STANDALONE));
        server.start();
        let created = self.world.timeout(RECOVERY, workload.create_table(&self.operator_env)).await;
        created.ok_or("violated: the standalone server creates the table in time")?;
        let client = workload.add_client(&self.world, STANDALONE_CLIENT);
        for _ in 0..self.random.below(STANDALONE_RESTARTS_MAX + 1) {
            self.world.sleep(self.random.between(STANDALONE_LIFE.0, STANDALONE_LIFE.1)).await;
            server.crash(Crash::Process);
            server.start();
            self.workload.history().count_restart();
        }
        self.world.sleep(self.random.between(STANDALONE_LIFE.0, STANDALONE_LIFE.1)).await;
        client.crash(Crash::Process);
        server.crash(Crash::Process);
        self.workload.history().count_restart();
        Ok(())
    }

    async fn run(mut self, steps: usize) -> Result<Summary, String> {
        self.start().await?;
        for step in 0..steps {
            self.world.sleep(self.random.between(CALM.0, CALM.1)).await;
            if self.random.below(3) < 2 {
                self.begin_operation();
            }
            if self.random.below(4) < 3 {
                self.inject();
                self.world.sleep(self.random.between(FAULT.0, FAULT.1)).await;
            }
            // Sometimes the next fault is added to this one.
            if self.random.below(4) < 3 {
                self.heal();
                self.restart();
            }
            self.check(&format!("after step {step}"))?;
        }
        self.finish().await?;
        if self.world.random("ending").one_in(2) {
            self.compact_and_restart().await?;
        }
        Ok(Summary::of(&self.world, &self.workload, String::new()))
    }

    fn begin_operation(&mut self) {
        self.operations.retain(|operation| !operation.is_finished());
        if self.operations.len() < OPERATIONS_MAX {
            let operation = OPERATIONS[self.random.index(OPERATIONS.len())];
            let operator = self.operator.clone();
            let running = async move { operator.operate(operation).await };
            self.operations.push(self.world.scheduler().spawn(Owner::WORLD, running));
        }
    }

    /// A fault. Which pauses are freezes depends on random numbers of its own, so that the other
    /// faults of a seed do not depend on it.
    fn choose_fault(&self) -> Fault {
        match self.choose_by_weight() {
            Fault::Pause if self.freezes.one_in(2) => Fault::Freeze,
            Fault::PauseActiveMaster if self.freezes.one_in(2) => Fault::FreezeActiveMaster,
            fault => fault,
        }
    }

    fn choose_by_weight(&self) -> Fault {
        let faults = if self.cluster.hdfs.is_some() { &FAULTS_ON_HDFS[..] } else { &FAULTS };
        let mut number = self.random.below(faults.iter().map(|(_, weight)| weight).sum());
        for (fault, weight) in faults {
            match number.checked_sub(*weight) {
                Some(rest) => number = rest,
                None => return *fault,
            }
        }
        unreachable!("the number is less than the sum of all weights")
    }

    /// A process of the cluster; more often a region server than a master.
    fn choose_process(&self) -> Arc<Process> {
        let of = |processes: &[Arc<Process>]| processes[self.random.index(processes.len())].clone();
        match self.random.one_in(4) {
            true => of(&self.cluster.masters),
            false => of(&self.cluster.region_servers),
        }
    }

    fn inject(&self) {
        let (fault, process) = (self.choose_fault(), self.choose_process());
        let network = self.world.network();
        self.world.record("scenario", &format!("{fault:?} ({})", process.name()));
        match fault {
            Fault::Kill => process.crash(Crash::Process),
            Fault::KillTwo => {
                process.crash(Crash::Host);
                self.choose_process().crash(Crash::Process);
            }
            Fault::KillMasters => self.cluster.masters.iter().for_each(|master| master.crash(Crash::Process)),
            Fault::Stop => self.cluster.running.stop_region_server(process.name()),
            Fault::PowerLoss => self.lose_power(),
            Fault::Pause => process.pause(),
            Fault::PauseActiveMaster => {
                if let Some((master, _)) = self.cluster.active_master() {
                    master.pause();
                }
            }
            Fault::Freeze => process.freeze(),
            Fault::FreezeActiveMaster => {
                if let Some((master, _)) = self.cluster.active_master() {
                    master.freeze();
                }
            }
            Fault::PartitionFromZooKeeper => {
                network.partition(&[process.host()], &[self.cluster.ensemble.host()]);
            }
            Fault::PartitionFromAll => network.partition(&[process.host()], &self.others(&process)),
            Fault::BlockInput => {
                self.others(&process).iter().for_each(|other| network.block(*other, process.host()));
            }
            Fault::BlockOutput => {
                self.others(&process).iter().for_each(|other| network.block(process.host(), *other));
            }
            Fault::BlockTwo => {
                let other = self.choose_process();
                if other.host() != process.host() {
                    network.partition(&[process.host()], &[other.host()]);
                }
            }
            Fault::BreakConnections => {
                let others = self.others(&process);
                others.iter().for_each(|other| network.break_connections(*other, process.host()));
            }
            Fault::SlowNetwork => {
                let factor = 1 + self.random.below(200) as u32;
                let others = self.others(&process);
                others.iter().for_each(|other| network.slow_down(*other, process.host(), factor));
            }
            Fault::SlowDisk => process.set_disk_faults(DiskFaults { slowness: 50, ..DiskFaults::default() }),
            Fault::HangingDisk => {
                process.set_disk_faults(DiskFaults { hangs: true, ..DiskFaults::default() })
            }
            Fault::FailingDisk => {
                let failing_one_in = 1 + self.random.below(50);
                process.set_disk_faults(DiskFaults { failing_one_in, ..DiskFaults::default() });
            }
            Fault::ClockJump => {
                let offset_ms = self.random.below(2 * SKEW_MAX_MS) as i64 - SKEW_MAX_MS as i64;
                process.jump_wall_clock(offset_ms - process.wall_offset_ms());
            }
            Fault::StopZooKeeper => self.cluster.ensemble.stop(),
            Fault::KillClient => self.clients[self.random.index(self.clients.len())].crash(Crash::Process),
            Fault::Hdfs => {
                if let Some(hdfs) = &self.cluster.hdfs {
                    hdfs.inject(&self.random, &process, &self.outside_hdfs());
                }
            }
        }
    }

    /// All hosts of the cluster and their disk lose power.
    fn lose_power(&self) {
        self.cluster.processes().for_each(|process| process.crash(Crash::Host));
        match &self.cluster.hdfs {
            Some(hdfs) => hdfs.lose_power(),
            None => self.world.disk().lose_power(),
        }
    }

    /// The hosts other than that of a process.
    fn others(&self, process: &Process) -> Vec<HostId> {
        let hosts =
            self.outside_hdfs().into_iter().chain(self.cluster.hdfs.iter().flat_map(|hdfs| hdfs.hosts()));
        hosts.filter(|host| *host != process.host()).collect()
    }

    /// The hosts of the cluster, without those of HDFS.
    fn outside_hdfs(&self) -> Vec<HostId> {
        let servers = self.cluster.processes().chain(&self.clients).map(|other| other.host());
        servers.chain([self.cluster.ensemble.host()]).collect()
    }

    /// Ends all faults.
    fn heal(&self) {
        self.world.network().heal();
        self.cluster.ensemble.resume();
        self.cluster.hdfs.iter().for_each(|hdfs| hdfs.heal());
        for process in self.cluster.processes() {
            self.resume(process);
            let faults = process.disk_faults();
            let healthy = DiskFaults { ignores_syncs: faults.ignores_syncs, ..DiskFaults::default() };
            if faults != healthy {
                process.set_disk_faults(healthy);
            }
        }
    }

    /// Continues a process that is paused or frozen.
    fn resume(&self, process: &Process) {
        let was_frozen = process.is_frozen();
        process.resume();
        if !was_frozen {
            return;
        }
        // A time service corrects a wall clock that is too slow.
        let missing_ms = -(SKEW_MAX_MS as i64) - process.wall_offset_ms();
        if missing_ms > 0 {
            process.jump_wall_clock(missing_ms);
        }
        if self.cluster.region_servers.iter().any(|server| server.host() == process.host()) {
            // Its lease lasts for one session timeout at most, by its own clock.
            let history = self.workload.history().clone();
            history.begin_old_reads();
            self.world.scheduler().after(self.cluster.ensemble.timeout(), move || history.end_old_reads());
        }
    }

    /// Starts processes that have ended, as a supervisor does.
    pub(super) fn restart(&self) {
        let hdfs = self.cluster.hdfs.iter().flat_map(|hdfs| hdfs.processes());
        for process in hdfs.chain(self.cluster.processes()).chain(&self.clients) {
            if !process.is_running() {
                process.start();
            }
        }
    }

    fn check(&self, when: &str) -> Result<(), String> {
        if let Some(hdfs) = &self.cluster.hdfs {
            hdfs.check().map_err(|violation| format!("{violation} ({when})"))?;
        }
        match self.workload.history().violations().first() {
            Some(violation) => {
                self.world.record("scenario", &violation.to_string());
                Err(format!("{violation} ({when})"))
            }
            None => Ok(()),
        }
    }

    /// Waits until the cluster has recovered, reads all rows, and checks everything.
    pub(super) async fn finish(&mut self) -> Result<(), String> {
        self.heal();
        self.workload.stop();
        self.world.record("scenario", "all faults have ended");
        self.recover().await
    }

    /// Compacts the table, kills all region servers, and checks again. No delete marker is left
    /// then, so a file that comes back shows the cells that were deleted from it.
    async fn compact_and_restart(&mut self) -> Result<(), String> {
        self.world.record("scenario", "the table is compacted");
        let event = match self.world.timeout(COMPACTION, self.compact()).await {
            Some(Ok(())) => "all region servers are killed".to_string(),
            Some(Err(error)) => format!("all region servers are killed; compaction failed: {error}"),
            None => "all region servers are killed; compaction has not ended in time".to_string(),
        };
        self.world.record("scenario", &event);
        self.cluster.region_servers.iter().for_each(|server| server.crash(Crash::Process));
        self.recover().await
    }

    async fn compact(&self) -> client::Result<()> {
        let (admin, table) = (self.workload.client(&self.operator_env).admin(), self.workload.table());
        admin.flush(table).await?;
        admin.compact(table, true).await?;
        while admin.is_compacting(table).await? {
            self.world.sleep(COMPACTION_POLL_PERIOD).await;
        }
        Ok(())
    }

    /// Waits until everything is correct.
    async fn recover(&mut self) -> Result<(), String> {
        let deadline = self.world.now() + RECOVERY;
        let mut last = String::new();
        while self.world.now() < deadline {
            self.restart();
            self.operations.retain(|operation| !operation.is_finished());
            match self.check_all().await {
                Ok(()) => return self.check("after all faults"),
                Err(failure) => last = failure,
            }
            self.world.sleep(Duration::from_secs(1)).await;
        }
        Err(format!("violated: the cluster recovers within {RECOVERY:?}: {last}"))
    }

    async fn check_all(&self) -> Result<(), String> {
        if !self.operations.is_empty() {
            return Err("an operation has not ended".to_string());
        }
        let history = self.workload.history();
        if history.may_be_old(history.old_reads()) {
            return Err("a server that was frozen may still return old values".to_string());
        }
        if let Some(hdfs) = &self.cluster.hdfs {
            hdfs.check_settled()?;
        }
        check_settled(&self.cluster)?;
        let reading = self.workload.read_all(&self.operator_env);
        let read = self.world.timeout(Duration::from_secs(30), reading).await;
        read.ok_or("reading takes too long")?.map_err(|error| error.to_string())?;
        let reading = self.operator.check_dropped_family();
        let read = self.world.timeout(Duration::from_secs(30), reading).await;
        read.ok_or("reading takes too long")?.map_err(|error| error.to_string())?;
        check_meta(&self.cluster, &self.workload.client(&self.operator_env)).await
    }
}
