//! Kills of processes at the durable steps of an administrative operation.
//!
//! A run executes one operation twice, on different tables or regions. The first time counts the
//! durable steps of all masters and region servers: syncs, and changes of names. The second time,
//! one or two processes are killed immediately before or after one of these steps. They are started
//! again a little later. At the end everything is checked as after other faults, and in addition
//! that an operation that succeeded has had its effect, and that none was executed in part.
//!
//! * [`operations`]: the operations, and what they leave.

mod operations;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cell::region::{RegionInfo, ServerName};
use master::assignment::RegionState;

use self::operations::{OPERATIONS, Operation, Operations, Prepared};
use super::scenario::{Clients, ClusterOptions, Scenario};
use crate::disk::steps::{Moment, Spring, Trap};
use crate::network::Crash;
use crate::process::Process;
use crate::scenario::Summary;
use crate::world::{Run, World, WorldOptions};

/// The clients work little: their writes are durable steps, too.
const CLIENTS: Clients = Clients { count: 1, pause_max: Duration::from_millis(600) };
/// Time in which the clients write before each execution.
const CALM: Duration = Duration::from_secs(2);
/// Bounds of the time in which they write after a kill, before everything heals.
const AFTER: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(4));
/// Bounds of the time until a killed process is started again.
const RESTART: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(6));
/// Time in which the cluster must be as before after an operation without faults.
const SETTLING: Duration = Duration::from_secs(60);
/// Time in which an operation must end, with success or not.
const OPERATION: Duration = Duration::from_secs(300);

/// The processes that are killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    /// The active master.
    Master,
    /// The server that has the region.
    RegionServer,
    /// The server of `hbase:meta`.
    MetaServer,
    /// The active master and the server that has the region.
    MasterAndRegionServer,
}

const VICTIMS: [Victim; 4] =
    [Victim::Master, Victim::RegionServer, Victim::MetaServer, Victim::MasterAndRegionServer];

/// Runs one seed. The error is the first violated invariant.
pub fn run(options: WorldOptions, cluster: ClusterOptions) -> Run<Result<Summary, String>> {
    World::run(options, move |world| async move {
        let scenario = Scenario::new(world.clone(), cluster, CLIENTS);
        let operation = OPERATIONS[scenario.random.index(OPERATIONS.len())];
        let operations = Operations::new(&scenario);
        StepKill { world, scenario, operation, operations }.run().await
    })
}

struct StepKill {
    world: Arc<World>,
    scenario: Scenario,
    operation: Operation,
    operations: Operations,
}

impl StepKill {
    async fn run(mut self) -> Result<Summary, String> {
        self.scenario.start().await?;
        let steps = self.count_steps().await?;
        let (victim, moment) = {
            let random = &self.scenario.random;
            let moment = if random.one_in(2) { Moment::Before } else { Moment::After };
            (VICTIMS[random.index(VICTIMS.len())], moment)
        };
        let step = 1 + self.scenario.random.below(steps);
        let kill = format!("{:?}, {victim:?} killed {moment:?} step {step} of {steps}", self.operation);
        self.record(&kill);
        let is_killed =
            self.run_killed(victim, step, moment).await.map_err(|error| format!("{error} ({kill})"))?;
        let kind = match is_killed {
            true => format!("{:?}, {victim:?}", self.operation),
            false => "took less steps than before".to_string(),
        };
        Ok(Summary::of(&self.world, &self.scenario.workload, kind))
    }

    fn record(&self, event: &str) {
        self.world.record("scenario", event);
    }

    fn process_names(&self) -> impl Iterator<Item = String> {
        self.scenario.cluster.processes().map(|process| process.name().to_string())
    }

    /// Runs the operation without faults; returns the number of its durable steps.
    async fn count_steps(&self) -> Result<u64, String> {
        let failed = |error: String| format!("violated: an operation succeeds without faults: {error}");
        let prepared = self.operations.prepare(self.operation, 1).await.map_err(failed)?;
        self.world.sleep(CALM).await;
        self.world.disk().count_steps(self.process_names(), None);
        self.record(&format!("{:?} begins", self.operation));
        let executed = self.world.timeout(SETTLING, self.execute(&prepared)).await;
        executed.unwrap_or_else(|| Err("it has not ended".to_string())).map_err(failed)?;
        let steps = self.world.disk().end_count();
        self.record(&format!("{:?} ends after {steps} durable steps", self.operation));
        self.scenario.restart();
        self.settle().await?;
        self.operations.verify(&prepared, true).await?;
        Ok(steps.max(1))
    }

    /// Waits until the cluster is as before an operation.
    async fn settle(&self) -> Result<(), String> {
        let deadline = self.world.now() + SETTLING;
        loop {
            match super::checks::check_settled(&self.scenario.cluster) {
                Ok(()) => return Ok(()),
                Err(error) if self.world.now() > deadline => {
                    return Err(format!("violated: the cluster settles without faults: {error}"));
                }
                Err(_) => self.world.sleep(Duration::from_millis(200)).await,
            }
        }
    }

    /// Runs the operation, and kills the victims at a step. Then checks everything. Returns whether
    /// the step was reached.
    async fn run_killed(&mut self, victim: Victim, step: u64, moment: Moment) -> Result<bool, String> {
        let failed = |error: String| format!("violated: an operation succeeds without faults: {error}");
        let prepared = self.operations.prepare(self.operation, 2).await.map_err(failed)?;
        self.world.sleep(CALM).await;
        let victims = self.processes_of(victim, &prepared)?;
        let is_killed: Arc<AtomicBool> = Arc::default();
        let spring = self.kill(victims, is_killed.clone());
        self.world.disk().count_steps(self.process_names(), Some(Trap { step, moment, spring }));
        self.record(&format!("{:?} begins again", self.operation));
        let executed = self.world.timeout(OPERATION, self.execute(&prepared)).await;
        let steps = self.world.disk().end_count();
        let executed = executed.ok_or("violated: an operation ends after a kill")?;
        let result = executed.as_ref().err().map_or("succeeds", |error| error);
        self.record(&format!("{:?} ends after {steps} durable steps: {result}", self.operation));
        self.world.sleep(self.scenario.random.between(AFTER.0, AFTER.1)).await;
        self.scenario.finish().await?;
        self.operations.verify(&prepared, executed.is_ok()).await?;
        Ok(is_killed.load(Ordering::Relaxed))
    }

    /// Kills processes, and starts them again some time later.
    fn kill(&self, victims: Vec<Arc<Process>>, is_killed: Arc<AtomicBool>) -> Spring {
        let (world, random) = (Arc::downgrade(&self.world), &self.scenario.random);
        let delay = || random.between(RESTART.0, RESTART.1);
        let victims: Vec<(Arc<Process>, Duration)> =
            victims.into_iter().map(|process| (process, delay())).collect();
        Box::new(move |step| {
            let Some(world) = world.upgrade() else { return };
            is_killed.store(true, Ordering::Relaxed);
            world.record("scenario", &format!("kills {step}"));
            for (process, delay) in victims {
                process.crash(Crash::Process);
                world.scheduler().after(delay, move || {
                    if !process.is_running() {
                        process.start();
                    }
                });
            }
        })
    }

    fn processes_of(&self, victim: Victim, prepared: &Prepared) -> Result<Vec<Arc<Process>>, String> {
        let cluster = &self.scenario.cluster;
        let (active, _) = cluster.active_master().ok_or("violated: a master is active without faults")?;
        let of_meta = || self.process_of(&RegionInfo::meta());
        let of_region = || match prepared.regions().first() {
            Some(region) => self.process_of(region),
            None => {
                let servers = &cluster.region_servers;
                let candidates: Vec<_> =
                    servers.iter().filter(|server| prepared.crashed() != Some(server.name())).collect();
                Ok(candidates[self.scenario.random.index(candidates.len())].clone())
            }
        };
        Ok(match victim {
            Victim::Master => vec![active],
            Victim::RegionServer => vec![of_region()?],
            Victim::MetaServer => vec![of_meta()?],
            Victim::MasterAndRegionServer => vec![active, of_region()?],
        })
    }

    /// The process that has a region.
    fn process_of(&self, region: &RegionInfo) -> Result<Arc<Process>, String> {
        let cluster = &self.scenario.cluster;
        let (_, master) = cluster.active_master().ok_or("violated: a master is active without faults")?;
        match master.context().assignment.state(region) {
            Some(RegionState::Open(ServerName { host, .. })) => {
                let process = cluster.region_servers.iter().find(|process| process.name() == host);
                Ok(process.expect("servers run in processes of the cluster").clone())
            }
            state => Err(format!("violated: regions are open without faults: {state:?}")),
        }
    }

    async fn execute(&self, prepared: &Prepared) -> Result<(), String> {
        match prepared.crashed() {
            Some(name) => {
                self.crash(name).await;
                Ok(())
            }
            None => self.operations.execute(prepared).await,
        }
    }

    /// Kills a region server, and waits until its regions are open elsewhere and its logs are in
    /// the archive.
    async fn crash(&self, name: &str) {
        let cluster = &self.scenario.cluster;
        let process = cluster.region_servers.iter().find(|process| process.name() == name);
        let process = process.expect("it is a process of the cluster");
        let running = cluster.running.region_server(name).map(|server| server.name().clone());
        process.crash(Crash::Process);
        let Some(dead) = running else { return };
        loop {
            self.world.sleep(Duration::from_millis(20)).await;
            let Some((_, master)) = cluster.active_master() else { continue };
            let context = master.context();
            let has_regions = context.assignment.all().into_iter().any(|(_, state)| match state {
                RegionState::Crashed(server) => server == dead,
                state => state.server() == Some(&dead),
            });
            if !context.servers.is_live(&dead) && !context.recoveries.is_recovering(&dead) && !has_regions {
                return;
            }
        }
    }
}
