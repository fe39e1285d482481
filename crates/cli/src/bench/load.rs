//! How load is put on a server: so many clients, each with its calls one behind the other, or calls at a given rate.
//!
//! At a given rate a call's time runs from the moment it was due, whether or not a client was free to make it. So a
//! server that stands still for a second shows a second in all calls of that second, and not in one.

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
use super::workload::{Failure, Peer, Plan, Worker};

/// Where clients and their connections are: a call that goes from thread to thread costs each of them a sleep.
pub(super) const THREADS: TaskClass = TaskClass::Connection;

/// Between two looks at how far a run is.
const LOOK: Duration = Duration::from_millis(100);
/// Between two looks at what is due, at a rate; a call is timed from when it was due, not from when that was seen.
const PACE: Duration = Duration::from_micros(50);

/// How much load, and how long.
#[derive(Debug, Clone)]
pub(super) struct Load {
    /// Who call at the same time.
    pub(super) clients: u64,
    /// Calls that each of them has under way at once.
    pub(super) in_flight: u64,
    /// Calls a second of all together; `None` for as many as get answered.
    pub(super) rate: Option<f64>,
    /// What is not counted at first.
    pub(super) warm_up: Duration,
    /// How long is counted; `None` until each row had its turn.
    pub(super) length: Option<Duration>,
}

/// What a run gave.
#[derive(Debug, Clone)]
pub(super) struct Outcome {
    pub(super) tally: Tally,
    /// How long was counted.
    pub(super) length: Duration,
    /// What the server's process used meanwhile, and the memory it had behind it.
    pub(super) server: Option<Usage>,
}

/// What the clients of a run share.
struct Run {
    env: Env,
    begin: Duration,
    // Calls that end from here on are counted, up to `end`.
    count_from: Duration,
    end: Option<Duration>,
    rate: Option<f64>,
    // Calls that are due and that nobody has taken, and how many were taken.
    due: Semaphore,
    taken: AtomicU64,
    rows: AtomicU64,
    unreadable: AtomicU64,
    stopped: AtomicBool,
    failure: Mutex<Option<Failure>>,
}

/// Answers of a thousand that may be unreadable. HBase's answers to increments now and then are, while it flushes; the run
/// then says how many.
const UNREADABLE_PER_THOUSAND: u64 = 5;

/// Puts load on `peers`, one for each connection, and counts.
///
/// # Errors
/// The first failure of a call, but for some unreadable answers, or that the server's process is not there; a run with
/// failures measures nothing.
pub(super) async fn run(
    env: &Env,
    peers: &[Arc<Peer>],
    plan: &Arc<Plan>,
    load: &Load,
    server: Option<Process>,
    progress: &Progress,
) -> Result<Outcome, String> {
    let begin = env.clock.monotonic();
    let run = Arc::new(Run {
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
    let (tallies, tasks) = start(&run, peers, plan, load);
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
        // A panic has told its story itself.
        task.await.map_err(|error| format!("a client of the benchmark ended: {error}"))?;
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

/// Starts the clients; what is counted.
fn start(
    run: &Arc<Run>,
    peers: &[Arc<Peer>],
    plan: &Arc<Plan>,
    load: &Load,
) -> (Vec<Arc<Mutex<Tally>>>, Tasks) {
    let workers = load.clients * load.in_flight;
    // One for each core, not for each client: a histogram of many clients each would be more than a processor's cache holds.
    let cores = available_parallelism().map_or(1, NonZero::get);
    let tallies: Vec<_> = (0..cores).map(|_| Arc::new(Mutex::new(Tally::new()))).collect();
    let tasks = (0..workers).map(|at| {
        let client = (at % load.clients) as usize;
        let (run, tally) = (Arc::clone(run), Arc::clone(&tallies[client % cores]));
        let worker = Worker::new(Arc::clone(plan), Arc::clone(&peers[client % peers.len()]), at, workers);
        run.env.clone().spawn(THREADS, async move { run.work(worker, &tally).await })
    });
    let tasks = tasks.collect();
    (tallies, tasks)
}

impl Run {
    /// One client's calls, one behind the other.
    async fn work(&self, mut worker: Worker, tally: &Mutex<Tally>) {
        while let Some(due) = self.next_due().await {
            match worker.call().await {
                Ok(Some(rows)) => self.count(rows, due, tally),
                Ok(None) => return,
                Err(failure) if failure.is_unreadable() && self.bears_unreadable() => {
                    tally.lock().unwrap_or_else(PoisonError::into_inner).record_unreadable();
                }
                Err(failure) => {
                    self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
                    return self.stop();
                }
            }
        }
    }

    /// Whether another unreadable answer may be passed over.
    fn bears_unreadable(&self) -> bool {
        let unreadable = self.unreadable.fetch_add(1, Ordering::Relaxed) + 1;
        unreadable <= 10 + self.rows.load(Ordering::Relaxed) * UNREADABLE_PER_THOUSAND / 1000
    }

    /// When the next call is due; `None` if there is to be none.
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
        if now >= self.count_from && self.end.is_none_or(|end| now <= end) {
            let latency = now.saturating_sub(due);
            tally.lock().unwrap_or_else(PoisonError::into_inner).record(rows, latency);
        }
    }

    /// Lets calls go when they are due, on a thread of its own: a runtime's timers are a hundred times coarser than calls, and
    /// one that does not sleep takes the core from those who make the calls, the kernel's own threads for the network
    /// among them.
    fn pace(&self, rate: f64) {
        let mut let_go = 0;
        while !self.is_stopped() {
            let passed = self.env.clock.monotonic().saturating_sub(self.begin);
            let due = (passed.as_secs_f64() * rate) as u64;
            self.due.add_permits((due - let_go) as usize);
            let_go = due;
            std::thread::sleep(PACE);
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

    async fn watch_while(&self, goes_on: impl Fn() -> bool, progress: &Progress) {
        while goes_on() && !self.is_stopped() {
            let left = self.end.map(|end| end.saturating_sub(self.env.clock.monotonic()));
            self.env.clock.sleep(left.map_or(LOOK, |left| left.min(LOOK))).await;
            let passed = self.env.clock.monotonic().saturating_sub(self.begin);
            progress.show(passed, self.rows.load(Ordering::Relaxed));
        }
    }
}
