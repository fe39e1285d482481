//! The file system that all processes share: one tree, with latency and faults for each process.
//!
//! A call takes effect at a random time after it was made, and its result reaches the process some
//! time later. The effect is an event of the disk: it also happens while the process is paused. If
//! the process ends in between, the effect happens or not, depending on the seed; an append may
//! also happen in part.
//!
//! Times of files are those of the world. In half of the worlds, a directory shows whether the
//! process that [occupies](fs::FileSystem::occupy) it lives; in the others, that is unknown.
//!
//! The durable steps of processes can be counted, for faults at one of them ([`steps`]).
//!
//! Unsynced changes survive the end of a process. They survive a loss of power only by luck
//! ([`Disk::lose_power`]).

mod handle;
pub mod steps;
mod writer;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::BoxFuture;
use base::env::Clock;
use base::testing::START_MS;
use fs::FilePath;
use fs::memory::MemoryFs;

pub use self::handle::DiskHandle;
use self::steps::Steps;
use crate::random::RandomSource;
use crate::scheduler::{Owner, Scheduler};
use crate::timeline::Timeline;

/// Faults of the file system as one process sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskFaults {
    /// Factor of all latencies.
    pub slowness: u32,
    /// One in this many calls fails; 0 for none.
    pub failing_one_in: u64,
    /// Calls take effect, but no result reaches the process until this is set to false.
    pub hangs: bool,
    /// Syncs succeed without an effect, as on a disk with a volatile cache.
    pub ignores_syncs: bool,
}

impl Default for DiskFaults {
    fn default() -> DiskFaults {
        DiskFaults { slowness: 1, failing_one_in: 0, hangs: false, ignores_syncs: false }
    }
}

impl fmt::Display for DiskFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.slowness {
            1 => write!(f, "disk has normal speed")?,
            slowness => write!(f, "disk is {slowness} times slower")?,
        }
        if self.failing_one_in > 0 {
            write!(f, ", one in {} calls fails", self.failing_one_in)?;
        }
        if self.hangs {
            write!(f, ", calls hang")?;
        }
        if self.ignores_syncs {
            write!(f, ", syncs are ignored")?;
        }
        Ok(())
    }
}

/// The kind of a call, which determines its latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallKind {
    /// Reads, and appends to memory.
    Quick,
    /// Changes of names.
    Name,
    /// Waits for the storage.
    Sync,
}

/// The effect of a call. A call whose process has ended may be partial or lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Complete,
    Partial,
    Lost,
    /// A sync that succeeds without an effect.
    Ignored,
}

/// The storage. See the module's documentation.
pub struct Disk {
    scheduler: Arc<Scheduler>,
    timeline: Arc<Timeline>,
    random: RandomSource,
    shows_processes: bool,
    state: Mutex<State>,
}

struct State {
    // The processes that occupy directories.
    occupied: BTreeMap<FilePath, Owner>,
    files: MemoryFs,
    // Counts losses of power. Calls of an earlier epoch have no effect.
    epoch: u64,
    steps: Steps,
}

impl Disk {
    /// An empty file system.
    pub fn new(seed: u64, scheduler: Arc<Scheduler>, timeline: Arc<Timeline>) -> Arc<Disk> {
        let random = RandomSource::new(seed, "disk");
        let files = MemoryFs::with_clock(Arc::new(WorldClock(scheduler.clone())));
        Arc::new(Disk {
            scheduler,
            timeline,
            shows_processes: random.one_in(2),
            random,
            state: Mutex::new(State { occupied: BTreeMap::new(), files, epoch: 0, steps: Steps::default() }),
        })
    }

    /// The files as they are now, without latency.
    pub fn files(&self) -> MemoryFs {
        self.lock().files.clone()
    }

    /// Replaces the files by what is on disk after a loss of power now. Pending calls have no
    /// effect. All processes must have ended.
    pub fn lose_power(&self) {
        self.timeline.record(self.scheduler.now(), "disk", "loses power");
        let mut state = self.lock();
        let files = state.files.crash(&mut || self.random.next());
        state.occupied.clear();
        state.files = files;
        state.epoch += 1;
    }

    /// The time until a call takes effect, or from then until its result arrives.
    fn latency(&self, kind: CallKind) -> Duration {
        let micros = |from, to| self.random.between(Duration::from_micros(from), Duration::from_micros(to));
        match (kind, self.random.below(512)) {
            (CallKind::Quick, 0) => micros(500, 10_000),
            (CallKind::Quick, _) => micros(3, 40),
            (CallKind::Name, _) => micros(20, 200),
            (CallKind::Sync, 0) => micros(20_000, 400_000),
            (CallKind::Sync, _) => micros(100, 1_500),
        }
    }

    fn fate(&self, owner: Owner) -> Fate {
        match self.scheduler.is_alive(owner) {
            true => Fate::Complete,
            false => [Fate::Complete, Fate::Partial, Fate::Lost][self.random.index(3)],
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The wall clock of the storage.
struct WorldClock(Arc<Scheduler>);

impl Clock for WorldClock {
    fn now_ms(&self) -> u64 {
        START_MS + u64::try_from(self.0.now().as_millis()).unwrap_or(u64::MAX)
    }

    fn monotonic(&self) -> Duration {
        self.0.now()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.0.sleep(duration)
    }
}

#[cfg(test)]
mod tests;
