//! A simulated world: everything that happens in it follows from its seed.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base::BoxFuture;

use crate::disk::Disk;
use crate::entropy;
use crate::network::{Crash, SimNetwork};
use crate::process::{Life, Process};
use crate::random::RandomSource;
use crate::scheduler::Scheduler;
use crate::timeline::{Detail, Timeline};

/// How a world is run.
#[derive(Clone, Copy, Debug)]
pub struct WorldOptions {
    /// Determines everything that happens.
    pub seed: u64,
    /// Determines the iteration order of hash maps. A run that depends on it has a bug: product
    /// code must not depend on this order.
    pub hash_seed: u64,
    /// Which events are printed.
    pub printed: Detail,
}

impl WorldOptions {
    /// The world of `seed`, without output.
    pub fn new(seed: u64) -> WorldOptions {
        WorldOptions { seed, hash_seed: seed, printed: Detail::Nothing }
    }
}

/// The result of a run.
#[derive(Debug)]
pub struct Run<T> {
    /// The result of the main task, or the message of a panic.
    pub result: Result<T, String>,
    /// Hash of all events.
    pub digest: u64,
    /// Number of events.
    pub events: u64,
    /// Virtual time at the end.
    pub took: Duration,
    /// The newest events.
    pub last: Vec<String>,
}

/// One simulated world. See the crate's documentation.
pub struct World {
    seed: u64,
    scheduler: Arc<Scheduler>,
    timeline: Arc<Timeline>,
    network: Arc<SimNetwork>,
    disk: Arc<Disk>,
    processes: Mutex<Vec<Arc<Process>>>,
}

impl World {
    /// Creates a world on a thread of its own, and runs it until `main` has ended.
    ///
    /// The thread makes hash keys and thread-local caches those of the run.
    ///
    /// # Panics
    /// If no thread can be started. A panic within the world is a [result](Run::result).
    #[allow(clippy::disallowed_methods, reason = "a world has its own thread")]
    pub fn run<F, T>(options: WorldOptions, main: impl FnOnce(Arc<World>) -> F + Send) -> Run<T>
    where
        F: Future<Output = T> + Send + 'static,
        T: Send + 'static,
    {
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name(format!("seed {}", options.seed));
            let thread = thread.spawn_scoped(scope, move || {
                entropy::seed_thread(options.hash_seed);
                World::run_here(options, main)
            });
            let joined = thread.expect("a thread can be started").join();
            joined.expect("panics of the world are caught")
        })
    }

    fn run_here<F, T>(options: WorldOptions, main: impl FnOnce(Arc<World>) -> F) -> Run<T>
    where
        F: Future<Output = T> + Send + 'static,
        T: Send + 'static,
    {
        let world = Arc::new(World::new(options));
        let scheduler = world.scheduler.clone();
        let result = catch_unwind(AssertUnwindSafe(|| scheduler.run(main(world.clone()))));
        let run = Run {
            result: result.map_err(message),
            digest: world.timeline.digest(),
            events: world.timeline.count(),
            took: scheduler.now(),
            last: world.timeline.last(),
        };
        // Breaks the cycles between the world, its processes and their tasks.
        for process in std::mem::take(&mut *world.lock_processes()) {
            process.forget_life();
        }
        let _ = catch_unwind(AssertUnwindSafe(|| scheduler.shut_down()));
        run
    }

    fn new(options: WorldOptions) -> World {
        let scheduler = Scheduler::new(options.seed);
        let timeline = Arc::new(Timeline::new(options.printed));
        World {
            seed: options.seed,
            network: SimNetwork::new(options.seed, scheduler.clone(), timeline.clone()),
            disk: Disk::new(options.seed, scheduler.clone(), timeline.clone()),
            scheduler,
            timeline,
            processes: Mutex::default(),
        }
    }

    /// The seed of everything that happens.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// A sequence of random decisions for a part of the simulation.
    pub fn random(&self, part: &str) -> RandomSource {
        RandomSource::new(self.seed, part)
    }

    /// The scheduler of all tasks.
    pub fn scheduler(&self) -> &Arc<Scheduler> {
        &self.scheduler
    }

    /// The network between the hosts.
    pub fn network(&self) -> &Arc<SimNetwork> {
        &self.network
    }

    /// The file system that all processes share.
    pub fn disk(&self) -> &Arc<Disk> {
        &self.disk
    }

    /// The events so far.
    pub fn timeline(&self) -> &Arc<Timeline> {
        &self.timeline
    }

    /// Virtual time since the start.
    pub fn now(&self) -> Duration {
        self.scheduler.now()
    }

    /// Waits in virtual time.
    pub async fn sleep(&self, duration: Duration) {
        self.scheduler.sleep(duration).await;
    }

    /// Waits for `future` for at most `limit`; `None` on a timeout.
    pub async fn timeout<T>(&self, limit: Duration, future: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            value = future => Some(value),
            () = self.scheduler.sleep(limit) => None,
        }
    }

    /// Records an event of `subject`.
    pub fn record(&self, subject: &str, event: &str) {
        self.timeline.record(self.now(), subject, event);
    }

    /// Adds a process with a host of its own. It is not started yet.
    ///
    /// # Panics
    /// If a process has this name.
    pub fn add_process<F>(
        self: &Arc<Self>,
        name: &str,
        program: impl Fn(Life) -> F + Send + Sync + 'static,
    ) -> Arc<Process>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let program = move |life| -> BoxFuture<'static, ()> { Box::pin(program(life)) };
        let process = Process::new(self.clone(), name, Arc::new(program));
        self.lock_processes().push(process.clone());
        process
    }

    /// Adds a process without a program of its own, for tasks of the test.
    pub fn add_idle_process(self: &Arc<Self>, name: &str) -> Arc<Process> {
        self.add_process(name, |_| std::future::pending())
    }

    /// All processes.
    pub fn processes(&self) -> Vec<Arc<Process>> {
        self.lock_processes().clone()
    }

    /// All hosts and the disk lose power: every process ends, and unsynced changes of files are
    /// complete, partial or missing.
    pub fn lose_power(&self) {
        for process in self.processes() {
            process.crash(Crash::Host);
        }
        self.disk.lose_power();
    }

    fn lock_processes(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Process>>> {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The message of a panic.
fn message(payload: Box<dyn Any + Send>) -> String {
    match payload.downcast::<String>() {
        Ok(text) => *text,
        Err(payload) => payload.downcast_ref::<&str>().map_or("a panic".to_string(), |text| text.to_string()),
    }
}
