//! The log as the rest of the server sees it: a queue that takes edits and tells later what became of them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::env::{Env, TaskClass};
use fs::{FilePath, FileSystem, Sync};
use tokio::sync::{Notify, mpsc, oneshot};

use crate::books::Books;
use crate::committer::Committer;
use crate::housekeeper::{Housekeeper, Job};
use crate::instruments::Instruments;
use crate::{Edit, Error, Result};

/// The pause between two records of which files are kept.
const RECORD_PERIOD: Duration = Duration::from_secs(1);

/// Where a log is and when it begins a new file.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// The server's log directory, `WALs/<server>`.
    pub dir: FilePath,
    /// First part of the files' names: the server's name, URL-encoded.
    pub prefix: String,
    /// Last part of the files' names: empty, or `.meta` for the log of `hbase:meta`.
    pub suffix: String,
    /// Where logs go that nobody needs any more, `oldWALs`.
    pub archive_dir: FilePath,
    /// A file of this length is replaced by a new one; at most 1 GiB.
    pub roll_bytes: u64,
    /// A file of this age is replaced, if it has entries.
    pub roll_period: Option<Duration>,
    /// Zeros written ahead at a time, so that a sync changes no file length; 0 for none.
    pub reserve_bytes: u64,
    /// Edits are committed in groups of about this many bytes at most.
    pub group_bytes: u64,
    /// What an edit must survive before it is told to be committed.
    pub reach: Sync,
    /// Where the log records which files it keeps, if anywhere (see [`crate::record`]).
    pub record: Option<FilePath>,
    /// Where the log counts, perhaps together with others; its own, if none.
    pub instruments: Option<Arc<Instruments>>,
}

impl LogOptions {
    /// A log with HBase's defaults: files of 128 MiB, a new one each hour.
    pub fn new(dir: FilePath, prefix: &str, archive_dir: FilePath) -> LogOptions {
        LogOptions {
            dir,
            prefix: prefix.into(),
            suffix: String::new(),
            archive_dir,
            roll_bytes: 128 << 20,
            roll_period: Some(Duration::from_secs(3600)),
            reserve_bytes: 2 << 20,
            group_bytes: 1 << 20,
            reach: Sync::Disk,
            record: None,
            instruments: None,
        }
    }
}

/// What happens to a log of an earlier run once nothing in it is needed any more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Fate {
    /// It is archived.
    #[default]
    Archive,
    /// It is moved to this directory, because it is damaged and an operator may want to examine it.
    MoveTo(FilePath),
    /// It stays: parts that could not be read may be needed.
    Stay,
}

/// A log of an earlier run, replayed where it is and archived once all that is in it is flushed.
#[derive(Clone, Debug)]
pub struct OldLog {
    /// Where it is.
    pub path: FilePath,
    /// Bytes of its entries, and of what is before them.
    pub bytes: u64,
    /// The regions with edits in it, and the highest sequence id of each.
    pub highest: HashMap<Arc<str>, u64>,
    /// What becomes of it.
    pub fate: Fate,
}

/// Counts since the start, and what is there now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Log files that are kept, with the open one.
    pub logs: u64,
    /// Their bytes.
    pub file_bytes: u64,
    /// Bytes in the queue, those being written too.
    pub queued_bytes: u64,
    /// Edits committed that left bytes; like the next three, of all logs that count together.
    pub edits: u64,
    /// Bytes of entries written.
    pub bytes: u64,
    /// Groups committed: one sync each.
    pub groups: u64,
    /// Files replaced, for whatever reason.
    pub rolls: u64,
    /// Files given up because a write or sync failed.
    pub failures: u64,
}

/// A server's log (or that of `hbase:meta`): takes edits, commits them in groups, keeps account of the files.
///
/// Dropping it ends the log as a crash does, after what is queued was committed; [`Log::close`] ends it in order.
pub struct Log {
    shared: Arc<Shared>,
}

/// What the log's users and its tasks share.
pub(crate) struct Shared {
    // Held for an instant by whoever appends; never across an await, and no other lock is taken under it.
    queue: Mutex<Queue>,
    wake: Notify,
    pub(crate) books: Arc<Mutex<Books>>,
    pub(crate) jobs: mpsc::UnboundedSender<Job>,
    pub(crate) counts: Counts,
    pub(crate) instruments: Arc<Instruments>,
}

#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) queued_bytes: AtomicU64,
    pub(crate) failures: AtomicU64,
    // A group found the disk full and is written again and again.
    pub(crate) waits_for_room: AtomicBool,
}

struct Queue {
    edits: Vec<Edit>,
    // At how many edits the committer is woken.
    wake_at: usize,
    orders: Vec<Order>,
    dropped: bool,
}

impl Default for Queue {
    fn default() -> Queue {
        Queue { edits: Vec::new(), wake_at: 1, orders: Vec::new(), dropped: false }
    }
}

/// What is asked of the committer beside edits; done after the edits that were appended before.
pub(crate) enum Order {
    Roll(oneshot::Sender<Result<()>>),
    Close(oneshot::Sender<()>),
}

/// What was taken from the queue beside edits.
pub(crate) struct Taken {
    pub(crate) orders: Vec<Order>,
    pub(crate) dropped: bool,
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is guarded here is whole between any two statements, so a panic elsewhere leaves nothing broken.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// Moves all queued edits into `edits`, which is empty.
    pub(crate) fn take(&self, edits: &mut Vec<Edit>) -> Taken {
        let mut queue = locked(&self.queue);
        std::mem::swap(&mut queue.edits, edits);
        Taken { orders: std::mem::take(&mut queue.orders), dropped: queue.dropped }
    }

    /// Waits until something was queued.
    pub(crate) async fn queued(&self) {
        self.wake.notified().await;
    }

    /// Edits in the queue.
    pub(crate) fn queued_edits(&self) -> usize {
        locked(&self.queue).edits.len()
    }

    /// Waits until so many edits are in the queue, or there is something else to do. Until
    /// [`wake_at_first`](Self::wake_at_first) is called nobody is woken for fewer.
    pub(crate) async fn queued_at_least(&self, edits: usize) {
        while self.lacks(edits) {
            self.wake.notified().await;
        }
    }

    fn lacks(&self, edits: usize) -> bool {
        let mut queue = locked(&self.queue);
        queue.wake_at = edits;
        queue.edits.len() < edits && queue.orders.is_empty() && !queue.dropped
    }

    /// Whether the log is to be closed, or was dropped.
    pub(crate) fn is_ending(&self) -> bool {
        let queue = locked(&self.queue);
        queue.dropped || queue.orders.iter().any(|order| matches!(order, Order::Close(_)))
    }

    /// The first edit in an empty queue wakes the committer again.
    pub(crate) fn wake_at_first(&self) {
        locked(&self.queue).wake_at = 1;
    }

    fn order(&self, order: Order) {
        locked(&self.queue).orders.push(order);
        self.wake.notify_one();
    }
}

impl Log {
    /// Begins a new file and the tasks that serve the log. `on_fatal` is told once if the log can take no more.
    ///
    /// # Errors
    /// If the directories or the first file cannot be made.
    pub async fn start(
        env: Env,
        fs: Arc<dyn FileSystem>,
        options: LogOptions,
        on_fatal: Arc<dyn Fn(&Error) + Send + std::marker::Sync>,
    ) -> Result<Arc<Log>> {
        fs.make_dirs(&options.dir).await?;
        fs.make_dirs(&options.archive_dir).await?;
        if let Some(record) = &options.record {
            fs.make_dirs(&record.parent()).await?;
        }
        let (jobs, todo) = mpsc::unbounded_channel();
        let instruments = options
            .instruments
            .clone()
            .unwrap_or_else(|| Arc::new(Instruments::begin(env.clock.monotonic())));
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            wake: Notify::new(),
            books: Arc::default(),
            jobs,
            counts: Counts::default(),
            instruments,
        });
        let housekeeper = Housekeeper {
            fs: fs.clone(),
            books: shared.books.clone(),
            dir: options.dir.clone(),
            archive_dir: options.archive_dir.clone(),
            left: Vec::new(),
            elsewhere: HashMap::new(),
            record: options.record.clone(),
            recorded: Vec::new(),
        };
        let records = options.record.is_some();
        let committer = Committer::start(env.clone(), fs, options, shared.clone(), on_fatal).await?;
        env.spawn(TaskClass::Service, housekeeper.run(todo));
        // Not on the threads of flush and compaction: every write waits for this task.
        // Where those are who append and wait: to wake a task of the same thread costs no system call.
        env.spawn(TaskClass::Connection, committer.run());
        if records {
            let (clock, watched) = (env.clock.clone(), Arc::downgrade(&shared));
            env.spawn(TaskClass::Service, async move {
                // The task ends with the log.
                while watched.upgrade().is_some_and(|shared| shared.jobs.send(Job::Record).is_ok()) {
                    clock.sleep(RECORD_PERIOD).await;
                }
            });
        }
        Ok(Arc::new(Log { shared }))
    }

    /// Queues an edit; `edit.committed` is told when it is safe. Never blocks.
    ///
    /// The order of the calls is the order in the log, so a region calls it under the lock by which it gives sequence
    /// ids out.
    pub fn append(&self, edit: Edit) {
        self.shared.counts.queued_bytes.fetch_add(edit.queued_bytes(), Ordering::Relaxed);
        let mut queue = locked(&self.shared.queue);
        queue.edits.push(edit);
        let wakes = queue.edits.len() == queue.wake_at;
        drop(queue);
        if wakes {
            self.shared.wake.notify_one();
        }
    }

    /// Bytes of edits that are not committed yet; who appends should wait when they are many.
    pub fn queued_bytes(&self) -> u64 {
        self.shared.counts.queued_bytes.load(Ordering::Relaxed)
    }

    /// The file that is written now; none once the log has ended.
    pub fn open_file(&self) -> Option<FilePath> {
        locked(&self.shared.books).open_file().cloned()
    }

    /// Whether edits wait for room on a full disk. They are not acknowledged before they have it.
    pub fn waits_for_room(&self) -> bool {
        self.shared.counts.waits_for_room.load(Ordering::Relaxed)
    }

    /// Replaces the open file by a new one, after committing what was appended before.
    ///
    /// # Errors
    /// If no new file could be made; the old one then stays in use.
    pub async fn roll(&self) -> Result<()> {
        let (done, outcome) = oneshot::channel();
        self.shared.order(Order::Roll(done));
        outcome.await.unwrap_or(Err(Error::Closed))
    }

    /// Takes note that the region's edits up to `up_to_seq_id` are in store files that survive a power cut; logs that
    /// nobody needs any more are moved to the archive.
    pub fn flushed(&self, region: &str, up_to_seq_id: u64) {
        let unneeded = locked(&self.shared.books).flushed(region, up_to_seq_id);
        self.archive(unneeded);
    }

    /// Takes note that nothing the region wrote so far will ever be replayed: it was dropped, or closed with all its
    /// edits in files. It may come back with any sequence ids.
    pub fn forget(&self, region: &str) {
        let unneeded = locked(&self.shared.books).forget(region);
        self.archive(unneeded);
    }

    /// The regions to flush so that the oldest log can go.
    pub fn regions_holding_oldest(&self) -> Vec<Arc<str>> {
        locked(&self.shared.books).holding_oldest()
    }

    /// Takes over logs of an earlier run, as [`crate::recovery::LogIndex::old_logs`] gives them. Each of their regions
    /// must say [`Log::flushed`] (or [`Log::forget`]) some time, also when nothing was left to replay.
    pub fn adopt(&self, old: Vec<OldLog>) {
        for log in &old {
            if let Fate::MoveTo(dir) = &log.fate {
                let _ = self.shared.jobs.send(Job::MoveElsewhere(log.path.clone(), dir.clone()));
            }
        }
        let unneeded = locked(&self.shared.books).adopt(old);
        self.archive(unneeded);
    }

    /// Log files that are kept, with the open one and those adopted.
    pub fn log_count(&self) -> usize {
        locked(&self.shared.books).count()
    }

    /// Where it counts.
    pub fn instruments(&self) -> &Arc<Instruments> {
        &self.shared.instruments
    }

    /// Counts for metrics.
    pub fn figures(&self) -> Figures {
        let (counts, instruments) = (&self.shared.counts, &self.shared.instruments.all);
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Figures {
            logs: self.log_count() as u64,
            file_bytes: locked(&self.shared.books).bytes(),
            queued_bytes: read(&counts.queued_bytes),
            edits: instruments.appends.get(),
            bytes: instruments.written_bytes.get(),
            groups: instruments.sync_time.micros().count(),
            rolls: instruments.rolls.get(),
            failures: read(&counts.failures),
        }
    }

    /// Commits what was appended, ends the file with a trailer, waits for moves to the archive. Later appends fail
    /// with [`Error::Closed`].
    pub async fn close(&self) {
        let (done, closed) = oneshot::channel();
        self.shared.order(Order::Close(done));
        // An error says that it was closed already.
        let _ = closed.await;
        let (done, drained) = oneshot::channel();
        if self.shared.jobs.send(Job::Drain(done)).is_ok() {
            let _ = drained.await;
        }
    }

    fn archive(&self, unneeded: Vec<FilePath>) {
        if !unneeded.is_empty() {
            // The task ends only with the runtime; then the files stay for the next run.
            let _ = self.shared.jobs.send(Job::Archive(unneeded));
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        locked(&self.shared.queue).dropped = true;
        self.shared.wake.notify_one();
    }
}
