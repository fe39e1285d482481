//! A run of the standalone server: clients work while faults come and go, then everything is
//! checked.

use std::sync::Arc;
use std::time::Duration;

use base::env::Env;

use crate::disk::DiskFaults;
use crate::network::{Crash, HostId};
use crate::node;
use crate::process::Process;
use crate::random::RandomSource;
use crate::workload::Workload;
use crate::world::{Run, World, WorldOptions};

/// Name of the server's process.
const SERVER: &str = "server";
/// Number of client processes.
const CLIENTS: usize = 3;
/// Bounds of a fault's duration.
const FAULT: (Duration, Duration) = (Duration::from_millis(5), Duration::from_secs(12));
/// Bounds of the time between two faults.
const CALM: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(4));
/// Time in which the server must serve again after all faults have ended.
const RECOVERY: Duration = Duration::from_secs(180);

/// What a run did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Acknowledged writes.
    pub writes: u64,
    /// Rows that were read and checked.
    pub reads: u64,
    /// Polls of tasks.
    pub polls: u64,
    /// What kind of run it was, for statistics; may be empty.
    pub kind: String,
}

impl Summary {
    /// What the clients of a world did.
    pub(crate) fn of(world: &World, workload: &Workload, kind: String) -> Summary {
        let counts = workload.history().counts();
        Summary { writes: counts.writes, reads: counts.reads, polls: world.scheduler().polls(), kind }
    }
}

/// Runs one seed with this many faults. The error is the first violated invariant.
pub fn run(options: WorldOptions, steps: usize) -> Run<Result<Summary, String>> {
    World::run(options, move |world| Scenario::new(world).run(steps))
}

/// The faults of a standalone server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Kill,
    PowerLoss,
    Pause,
    Partition,
    BlockToServer,
    BlockFromServer,
    BreakConnections,
    SlowNetwork,
    SlowDisk,
    HangingDisk,
    FailingDisk,
    ClockJump,
    Flush,
    Compact,
    Split,
    KillClient,
}

const FAULTS: [Fault; 16] = [
    Fault::Kill,
    Fault::PowerLoss,
    Fault::Pause,
    Fault::Partition,
    Fault::BlockToServer,
    Fault::BlockFromServer,
    Fault::BreakConnections,
    Fault::SlowNetwork,
    Fault::SlowDisk,
    Fault::HangingDisk,
    Fault::FailingDisk,
    Fault::ClockJump,
    Fault::Flush,
    Fault::Compact,
    Fault::Split,
    Fault::KillClient,
];

struct Scenario {
    world: Arc<World>,
    random: RandomSource,
    server: Arc<Process>,
    workload: Workload,
    clients: Vec<Arc<Process>>,
    // For administration and the final check.
    operator: Env,
}

impl Scenario {
    fn new(world: Arc<World>) -> Scenario {
        let server = node::standalone(&world, SERVER);
        let operator = world.add_idle_process("operator").start().env;
        Scenario {
            random: world.random("scenario"),
            workload: Workload::new(node::registry_of(SERVER)),
            server,
            clients: Vec::new(),
            operator,
            world,
        }
    }

    /// Starts the server and the clients.
    async fn start(&mut self) -> Result<(), String> {
        self.server.start();
        let created = self.world.timeout(RECOVERY, self.workload.create_table(&self.operator)).await;
        created.ok_or("the table was not created in time")?;
        self.world.record("scenario", "the table exists");
        for n in 0..CLIENTS {
            self.clients.push(self.workload.add_client(&self.world, &format!("client{n}")));
        }
        Ok(())
    }

    async fn run(mut self, steps: usize) -> Result<Summary, String> {
        self.start().await?;
        for step in 0..steps {
            self.world.sleep(self.random.between(CALM.0, CALM.1)).await;
            self.inject(FAULTS[self.random.index(FAULTS.len())]).await;
            self.restart();
            self.check(&format!("after step {step}"))?;
        }
        self.finish().await?;
        Ok(Summary::of(&self.world, &self.workload, String::new()))
    }

    async fn inject(&self, fault: Fault) {
        self.world.record("scenario", &format!("{fault:?}"));
        match fault {
            Fault::Kill => self.server.crash(Crash::Process),
            Fault::PowerLoss => {
                self.server.crash(Crash::Host);
                self.world.disk().lose_power();
            }
            Fault::Pause => self.server.pause(),
            Fault::Partition => self.world.network().partition(&self.client_hosts(), &[self.server.host()]),
            Fault::BlockToServer => {
                self.client_hosts()
                    .iter()
                    .for_each(|host| self.world.network().block(*host, self.server.host()));
            }
            Fault::BlockFromServer => {
                self.client_hosts()
                    .iter()
                    .for_each(|host| self.world.network().block(self.server.host(), *host));
            }
            Fault::BreakConnections => {
                for host in self.client_hosts() {
                    self.world.network().break_connections(host, self.server.host());
                }
            }
            Fault::SlowNetwork => {
                let factor = 1 + self.random.below(200) as u32;
                for host in self.client_hosts() {
                    self.world.network().slow_down(self.server.host(), host, factor);
                }
            }
            Fault::SlowDisk => self.set_disk(DiskFaults { slowness: 50, ..DiskFaults::default() }),
            Fault::HangingDisk => self.set_disk(DiskFaults { hangs: true, ..DiskFaults::default() }),
            Fault::FailingDisk => {
                self.set_disk(DiskFaults {
                    failing_one_in: 1 + self.random.below(50),
                    ..DiskFaults::default()
                });
            }
            Fault::ClockJump => self.server.jump_wall_clock(self.random.below(40_000) as i64 - 20_000),
            Fault::KillClient => self.clients[self.random.index(CLIENTS)].crash(Crash::Process),
            Fault::Flush | Fault::Compact | Fault::Split => return self.administer(fault).await,
        }
        self.world.sleep(self.random.between(FAULT.0, FAULT.1)).await;
        self.heal();
    }

    /// Requests an administrative operation. It may fail, for example while a region is split.
    async fn administer(&self, fault: Fault) {
        let (admin, table) = (self.workload.client(&self.operator).admin(), self.workload.table());
        let operation = async {
            match fault {
                Fault::Split => {
                    let regions = admin.regions(table).await?;
                    let region = regions.get(self.random.index(regions.len().max(1)));
                    match region {
                        Some(region) => admin.split_region(region, None).await,
                        None => Ok(()),
                    }
                }
                Fault::Compact => admin.compact(table, self.random.one_in(2)).await,
                _ => admin.flush(table).await,
            }
        };
        match self.world.timeout(Duration::from_secs(30), operation).await {
            Some(Ok(())) => {}
            Some(Err(error)) => self.world.record("scenario", &format!("{fault:?} failed: {error}")),
            None => self.world.record("scenario", &format!("{fault:?} has not ended in time")),
        }
    }

    fn set_disk(&self, faults: DiskFaults) {
        self.server.set_disk_faults(faults);
    }

    fn client_hosts(&self) -> Vec<HostId> {
        self.clients.iter().map(|client| client.host()).collect()
    }

    /// Ends all faults.
    fn heal(&self) {
        self.server.resume();
        self.world.network().heal();
        if self.server.disk_faults() != DiskFaults::default() {
            self.set_disk(DiskFaults::default());
        }
    }

    /// Starts processes that have ended, as a supervisor does.
    fn restart(&self) {
        for process in self.clients.iter().chain([&self.server]) {
            if !process.is_running() {
                process.start();
                self.workload.history().count_restart();
            }
        }
    }

    fn check(&self, when: &str) -> Result<(), String> {
        match self.workload.history().violations().first() {
            Some(violation) => {
                self.world.record("scenario", &violation.to_string());
                Err(format!("{violation} ({when})"))
            }
            None => Ok(()),
        }
    }

    /// Reads all rows when the server serves again.
    async fn finish(&self) -> Result<(), String> {
        self.heal();
        self.workload.stop();
        self.world.record("scenario", "all faults have ended");
        let mut last = "no attempt has ended".to_string();
        let reading = async {
            loop {
                self.restart();
                match self.workload.read_all(&self.operator).await {
                    Ok(()) => return,
                    Err(error) => last = error.to_string(),
                }
                self.world.sleep(Duration::from_secs(1)).await;
            }
        };
        let read = self.world.timeout(RECOVERY, reading).await;
        read.ok_or_else(|| format!("violated: the server serves {RECOVERY:?} after all faults: {last}"))?;
        self.check("after all faults")
    }
}

#[cfg(test)]
mod tests;
