//! Generates load: a number of clients, each with its calls in sequence, or calls at a given rate.
//!
//! At a given rate, a call's latency counts from the moment it was due, whether or not a client was
//! free to make it. A stall of one second therefore shows in all calls of that second, and not
//! only in one.

use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::available_parallelism;
use std::time::Duration;

use base::env::{Env, TaskClass};
use base::pool::Pool;
use tokio::sync::Semaphore;

use super::process::{Process, Usage};
use super::progress::Progress;
use super::tally::Tally;
use super::workload::{Failure, Plan, Target, Worker};

/// Thread class of the clients and their connections. They share threads, because a call that
/// crosses threads puts each of them to sleep once.
pub(super) const THREADS: TaskClass = TaskClass::Connection;

/// Interval of progress updates.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);
/// Interval at which due calls are released, at a given rate. A call is timed from when it was due,
/// not from when it was released.
const RELEASE_INTERVAL: Duration = Duration::from_micros(50);

/// The amount and the duration of the load.
#[derive(Debug, Clone)]
pub(super) struct Load {
    /// Concurrent clients.
    pub(super) clients: u64,
    /// Calls that each client keeps in flight.
    pub(super) in_flight: u64,
    /// Calls per second of all clients together. `None`: each client calls again when it is
    /// answered.
    pub(super) rate: Option<f64>,
    /// Time before counting starts.
    pub(super) warm_up: Duration,
    /// Time that is counted. `None`: until each row was visited once.
    pub(super) length: Option<Duration>,
}

/// The result of a run.
#[derive(Debug, Clone)]
pub(super) struct Outcome {
    pub(super) tally: Tally,
    /// The time that was counted.
    pub(super) length: Duration,
    /// What the server's process used in that time, and its memory at the end.
    pub(super) server: Option<Usage>,
}

/// State that the clients of a run share.
struct RunState {
    env: Env,
    begin: Duration,
    // Calls that end between this time and `end` are counted.
    count_from: Duration,
    end: Option<Duration>,
    rate: Option<f64>,
    // Permits for calls that are due and not taken yet, and the number of calls taken.
    due: Semaphore,
    taken: AtomicU64,
    rows: AtomicU64,
    unreadable: AtomicU64,
    stopped: AtomicBool,
    failure: Mutex<Option<Failure>>,
}

/// Unreadable responses tolerated per thousand rows, in addition to the first 10. HBase sometimes
/// sends unreadable responses to increments while it flushes. The report states their number.
const UNREADABLE_PER_THOUSAND: u64 = 5;

/// Runs the load against `targets`, one per connection, and counts.
///
/// # Errors
/// The first failed call, unless it is a tolerated unreadable response; or that the server's
/// process does not exist. A run with failures has no result.
pub(super) async fn run(
    env: &Env,
    targets: &[Arc<Target>],
    plan: &Arc<Plan>,
    load: &Load,
    server: Option<Process>,
    progress: &Progress,
) -> Result<Outcome, String> {
    let begin = env.clock.monotonic();
    let run = Arc::new(RunState {
        env: env.clone(),
        begin,
        count_from: begin + load.warm_up,
        end: load.length.map(|length| begin + load.warm_up + length),
        rate: load.rate,
        due: Semaphore::new(0),
        taken: AtomicU64::new(0),
        rows: AtomicU64::new(0),
        unreadable: AtomicU64::new(0),
        stopped: AtomicBool::new(false),
        failure: Mutex::default(),
    });
    let (tallies, tasks) = start(&run, targets, plan, load);
    let pacer = Pool::new("pace", 1);
    let pacing = load.rate.map(|rate| {
        let pacing = Arc::clone(&run);
        pacer.run(move || pacing.pace(rate))
    });
    run.watch_until(run.count_from, progress).await;
    let before = server.map(Process::usage).transpose()?;
    let counted_from = env.clock.monotonic();
    match run.end {
        Some(end) => run.watch_until(end, progress).await,
        None => run.watch_while(|| tasks.iter().any(|task| !task.is_finished()), progress).await,
    }
    let length = env.clock.monotonic().saturating_sub(counted_from);
    let after = server.map(Process::usage).transpose()?;
    run.stop();
    if let Some(pacing) = pacing {
        pacing.await;
    }
    for task in tasks {
        // A panic has printed its message already.
        task.await.map_err(|error| format!("a benchmark client failed: {error}"))?;
    }
    if let Some(failure) = run.failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
        return Err(failure.to_string());
    }
    let mut tally = Tally::new();
    tallies.iter().for_each(|counted| tally.add(&counted.lock().unwrap_or_else(PoisonError::into_inner)));
    let server = before.zip(after).map(|(before, after)| Usage {
        cpu_seconds: after.cpu_seconds - before.cpu_seconds,
        resident_mib: after.resident_mib,
    });
    Ok(Outcome { tally, length, server })
}

type Tasks = Vec<tokio::task::JoinHandle<()>>;

/// Starts the clients. Returns their tallies and tasks.
fn start(
    run: &Arc<RunState>,
    targets: &[Arc<Target>],
    plan: &Arc<Plan>,
    load: &Load,
) -> (Vec<Arc<Mutex<Tally>>>, Tasks) {
    let workers = load.clients * load.in_flight;
    // One per core, not per client: a histogram for each of many clients would not fit the CPU
    // cache.
    let cores = available_parallelism().map_or(1, NonZero::get);
    let tallies: Vec<_> = (0..cores).map(|_| Arc::new(Mutex::new(Tally::new()))).collect();
    let tasks = (0..workers).map(|at| {
        let client = (at % load.clients) as usize;
        let (run, tally) = (Arc::clone(run), Arc::clone(&tallies[client % cores]));
        let worker = Worker::new(Arc::clone(plan), Arc::clone(&targets[client % targets.len()]), at, workers);
        run.env.clone().spawn(THREADS, async move { run.work(worker, &tally).await })
    });
    let tasks = tasks.collect();
    (tallies, tasks)
}

impl RunState {
    /// Makes the calls of one client in sequence.
    async fn work(&self, mut worker: Worker, tally: &Mutex<Tally>) {
        while let Some(due) = self.next_due().await {
            match worker.call().await {
                Ok(Some(rows)) => self.count(rows, due, tally),
                Ok(None) => return,
                Err(failure) if failure.is_unreadable() && self.tolerate_unreadable() => {
                    tally.lock().unwrap_or_else(PoisonError::into_inner).record_unreadable();
                }
                Err(failure) => {
                    self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
                    return self.stop();
                }
            }
        }
    }

    /// Counts an unreadable response. Returns whether it is tolerated.
    fn tolerate_unreadable(&self) -> bool {
        let unreadable = self.unreadable.fetch_add(1, Ordering::Relaxed) + 1;
        unreadable <= 10 + self.rows.load(Ordering::Relaxed) * UNREADABLE_PER_THOUSAND / 1000
    }

    /// Waits until the next call is due and returns that time. `None` if the run has ended.
    async fn next_due(&self) -> Option<Duration> {
        if let Some(rate) = self.rate {
            self.due.acquire().await.ok()?.forget();
            let taken = self.taken.fetch_add(1, Ordering::Relaxed);
            return (!self.is_stopped()).then(|| self.begin + Duration::from_secs_f64(taken as f64 / rate));
        }
        (!self.is_stopped()).then(|| self.env.clock.monotonic())
    }

    fn count(&self, rows: u64, due: Duration, tally: &Mutex<Tally>) {
        let now = self.env.clock.monotonic();
        self.rows.fetch_add(rows, Ordering::Relaxed);
        if now < self.count_from {
            return;
        }
        let latency = now.saturating_sub(due);
        let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
        match self.end {
            Some(end) if now > end => tally.record_late(latency),
            _ => tally.record(rows, latency, now - self.count_from),
        }
    }

    /// Releases calls when they are due. Runs on its own thread, because a runtime's timers are a
    /// hundred times coarser than calls. It sleeps instead of spinning: a spinning thread would
    /// take a core from the clients and from the kernel's network threads.
    fn pace(&self, rate: f64) {
        let mut released = 0;
        while !self.is_stopped() {
            let passed = self.env.clock.monotonic().saturating_sub(self.begin);
            let due = (passed.as_secs_f64() * rate) as u64;
            self.due.add_permits((due - released) as usize);
            released = due;
            std::thread::sleep(RELEASE_INTERVAL);
        }
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.due.close();
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    async fn watch_until(&self, end: Duration, progress: &Progress) {
        self.watch_while(|| self.env.clock.monotonic() < end, progress).await;
    }

    async fn watch_while(&self, should_continue: impl Fn() -> bool, progress: &Progress) {
        while should_continue() && !self.is_stopped() {
            let left = self.end.map(|end| end.saturating_sub(self.env.clock.monotonic()));
            self.env.clock.sleep(left.map_or(PROGRESS_INTERVAL, |left| left.min(PROGRESS_INTERVAL))).await;
            let passed = self.env.clock.monotonic().saturating_sub(self.begin);
            progress.show(passed, self.rows.load(Ordering::Relaxed));
        }
    }
}
