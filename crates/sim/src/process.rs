//! A process of the simulated cluster: its lives, and the faults that end or stop them.
//!
//! A process runs a [`Program`] on its own host. Each start is a new [`Life`] with an own [`Env`]:
//! clocks, random numbers, tasks and sockets end with the life. The skew of the wall clock belongs
//! to the host and survives.
//!
//! A process stops in two ways. While it is *paused*, its clocks continue, as those of a process
//! that gets no CPU: so it notices the time that has passed. While it is *frozen*, its clocks stand
//! still too (`clock`), as those of a virtual machine whose hypervisor stops it.

mod clock;

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::BoxFuture;
use base::env::{Env, MakeTask, Spawner, TaskClass};
use fs::FileSystem;
use tokio::task::JoinHandle;

use self::clock::ProcessClock;
use crate::disk::{DiskFaults, DiskHandle};
use crate::network::{Crash, HostId};
use crate::random::RandomSource;
use crate::scheduler::{Owner, Scheduler};
use crate::world::World;

/// Maximum initial difference between a wall clock and that of the world.
const SKEW_MAX_MS: u64 = 200;

/// What a process runs. The process ends when the future completes.
pub type Program = Arc<dyn Fn(Life) -> BoxFuture<'static, ()> + Send + Sync>;

/// One run of a process.
#[derive(Clone)]
pub struct Life {
    /// Clocks, random numbers, tasks and network of this run.
    pub env: Env,
    /// The shared file system as this run sees it.
    pub fs: Arc<dyn FileSystem>,
    /// The process that runs.
    pub process: Arc<Process>,
    pub(crate) owner: Owner,
    clock: Arc<ProcessClock>,
}

impl Life {
    /// Ends the process from within, like `std::process::exit`. The calling task ends at its next
    /// await; until then it has no effect on files or other processes.
    pub fn exit(&self, reason: &str) {
        if self.process.is_current(self.owner) {
            self.process.end(Crash::Process, &format!("exits: {reason}"));
        }
    }
}

/// A process and its host. See the module's documentation.
pub struct Process {
    world: Arc<World>,
    name: String,
    host: HostId,
    program: Program,
    wall_offset_ms: Arc<AtomicI64>,
    disk_faults: Arc<Mutex<DiskFaults>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    starts: u64,
    life: Option<Life>,
}

impl Process {
    pub(crate) fn new(world: Arc<World>, name: &str, program: Program) -> Arc<Process> {
        let host = world.network().add_host(name);
        let skew_ms = world.random(&format!("clock of {name}")).below(2 * SKEW_MAX_MS) as i64;
        let skew_ms = skew_ms - SKEW_MAX_MS as i64;
        Arc::new(Process {
            world,
            name: name.to_string(),
            host,
            program,
            wall_offset_ms: Arc::new(AtomicI64::new(skew_ms)),
            disk_faults: Arc::default(),
            state: Mutex::default(),
        })
    }

    /// Its name, which is also the name of its host.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its host.
    pub fn host(&self) -> HostId {
        self.host
    }

    /// Starts the process.
    ///
    /// # Panics
    /// If it is running.
    pub fn start(self: &Arc<Self>) -> Life {
        let mut state = self.lock();
        assert!(state.life.is_none(), "{} is running", self.name);
        state.starts += 1;
        let life = self.new_life(state.starts);
        state.life = Some(life.clone());
        drop(state);
        self.world.network().start_host(self.host);
        self.world.record(&self.name, "starts");
        let (running, program) = (life.clone(), self.program.clone());
        self.world.scheduler().spawn(life.owner, async move {
            program(running.clone()).await;
            running.exit("it has ended");
        });
        life
    }

    fn new_life(self: &Arc<Self>, number: u64) -> Life {
        let (scheduler, network) = (self.world.scheduler(), self.world.network());
        let owner = scheduler.add_owner(&self.name);
        let clock = Arc::new(ProcessClock::start(scheduler.clone(), self.wall_offset_ms.clone()));
        let random = RandomSource::new(self.world.seed(), &format!("{} {number}", self.name));
        let env = Env {
            clock: clock.clone(),
            random: Arc::new(random),
            spawner: Arc::new(ProcessSpawner { scheduler: scheduler.clone(), owner }),
            net: network.of_host(self.host, owner),
        };
        let fs = DiskHandle::new(self.world.disk(), owner, &self.name, self.disk_faults.clone());
        Life { env, fs: Arc::new(fs), process: self.clone(), owner, clock }
    }

    /// Records an event of this process.
    pub fn record(&self, event: &str) {
        self.world.record(&self.name, event);
    }

    /// Whether the process runs, or is paused.
    pub fn is_running(&self) -> bool {
        self.lock().life.is_some()
    }

    /// Whether the process is paused or frozen.
    pub fn is_paused(&self) -> bool {
        self.lock().life.as_ref().is_some_and(|life| self.world.scheduler().is_paused(life.owner))
    }

    /// Whether the process is frozen.
    pub fn is_frozen(&self) -> bool {
        self.lock().life.as_ref().is_some_and(|life| life.clock.is_frozen())
    }

    /// The current life, if the process is running.
    pub fn life(&self) -> Option<Life> {
        self.lock().life.clone()
    }

    fn is_current(&self, owner: Owner) -> bool {
        self.lock().life.as_ref().is_some_and(|life| life.owner == owner)
    }

    /// Kills the process, if it is running: its tasks are dropped at the awaits at which they are,
    /// and its connections break.
    pub fn crash(&self, crash: Crash) {
        match crash {
            Crash::Process => self.end(crash, "is killed"),
            Crash::Host => self.end(crash, "loses power"),
        }
    }

    fn end(&self, crash: Crash, event: &str) {
        let Some(life) = self.lock().life.take() else { return };
        self.world.record(&self.name, event);
        // The sockets first: a destructor of a task cannot send anything.
        self.world.network().end_process(self.host, life.owner, crash);
        self.world.scheduler().kill(life.owner);
    }

    /// Drops the current life at the end of the world.
    pub(crate) fn forget_life(&self) {
        let life = self.lock().life.take();
        drop(life);
    }

    /// Stops the process without ending it. Its sockets remain open, and time passes.
    pub fn pause(&self) {
        if let Some(life) = self.life() {
            self.world.record(&self.name, "is paused");
            self.world.scheduler().pause(life.owner);
        }
    }

    /// Stops the process and its clocks without ending it. Its sockets remain open. Afterwards it
    /// cannot know by its clocks that time has passed.
    pub fn freeze(&self) {
        if let Some(life) = self.life() {
            self.world.record(&self.name, "is frozen with its clocks");
            self.world.scheduler().pause(life.owner);
            life.clock.freeze();
        }
    }

    /// Continues a process that is paused or frozen.
    pub fn resume(&self) {
        if let Some(life) = self.life()
            && self.is_paused()
        {
            let event = match life.clock.thaw() {
                Some(stood) => format!("is resumed; its clocks stood still for {stood:?}"),
                None => "is resumed".to_string(),
            };
            self.world.record(&self.name, &event);
            self.world.scheduler().resume(life.owner);
        }
    }

    /// Moves the wall clock of the host, forward or back.
    pub fn jump_wall_clock(&self, by_ms: i64) {
        self.world.record(&self.name, &format!("wall clock jumps by {by_ms} ms"));
        self.wall_offset_ms.fetch_add(by_ms, Ordering::Relaxed);
    }

    /// How much the wall clock is ahead of that of the world, in milliseconds.
    pub fn wall_offset_ms(&self) -> i64 {
        self.wall_offset_ms.load(Ordering::Relaxed)
    }

    /// The faults of the file system for this process.
    pub fn disk_faults(&self) -> DiskFaults {
        *self.disk_faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the faults of the file system for this process.
    pub fn set_disk_faults(&self, faults: DiskFaults) {
        self.world.record(&self.name, &format!("{faults}"));
        *self.disk_faults.lock().unwrap_or_else(PoisonError::into_inner) = faults;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts the tasks of one life.
struct ProcessSpawner {
    scheduler: Arc<Scheduler>,
    owner: Owner,
}

impl Spawner for ProcessSpawner {
    fn spawn_with(&self, _: TaskClass, make: MakeTask) -> JoinHandle<()> {
        self.scheduler.spawn(self.owner, async move { make().await })
    }
}
