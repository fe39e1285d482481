//! The interface of a log, which is a sequence of log files: a queue that takes edits and later
//! reports whether they were committed.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::env::{Env, TaskClass};
use fs::{FilePath, FileSystem, SyncLevel};
use tokio::sync::{Notify, mpsc, oneshot};

use crate::committer::Committer;
use crate::housekeeper::{Housekeeper, Job};
use crate::instruments::Instruments;
use crate::retention::{LogRetention, OldLog, OldLogAction, locked};
use crate::{Edit, Error, Result};

/// Interval at which the record of the retained log files is updated.
const RECORD_PERIOD: Duration = Duration::from_secs(1);

/// Where a log is stored, and when it rolls to a new file.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// The server's log directory, `WALs/<server>`.
    pub dir: FilePath,
    /// First part of the file names: the server's name, URL-encoded.
    pub prefix: String,
    /// Last part of the file names: empty, or `.meta` for the log of `hbase:meta`.
    pub suffix: String,
    /// Archive directory for log files that are no longer needed, `oldWALs`.
    pub archive_dir: FilePath,
    /// File length at which the log rolls, at most 1000 MiB.
    pub roll_bytes: u64,
    /// File age at which the log rolls, unless the file has no entries. `None`: never by age.
    pub roll_period: Option<Duration>,
    /// Number of zeros to write ahead of the entries at a time, so that a sync does not change the
    /// file length. 0: none.
    pub reserve_bytes: u64,
    /// Approximate maximum size of a commit group, in bytes.
    pub group_bytes: u64,
    /// Guarantee that an edit must have before it is reported as committed. A group with a
    /// [forced](Edit::forced) edit is always synced to disk.
    pub durability: SyncLevel,
    /// Path of the file that lists the retained log files (see [`crate::record`]). `None`: there is
    /// no such file.
    pub record: Option<FilePath>,
    /// Metrics, which several [`Log`]s can share. `None`: new ones.
    pub instruments: Option<Arc<Instruments>>,
}

impl LogOptions {
    /// Options with HBase's defaults: files of 128 MiB, a new file each hour.
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
            durability: SyncLevel::Disk,
            record: None,
            instruments: None,
        }
    }
}

/// Statistics of a log: its current state, and counts since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogStatistics {
    /// Log files retained, including the open one.
    pub logs: u64,
    /// Bytes of these files.
    pub file_bytes: u64,
    /// Bytes of queued edits, including those being written.
    pub queued_bytes: u64,
    /// Committed edits, without those of `SKIP_WAL`. `edits`, `bytes`, `groups` and `rolls` cover
    /// all [`Log`]s that share the instruments.
    pub edits: u64,
    /// Bytes of entries written.
    pub bytes: u64,
    /// Commit groups, each with one sync.
    pub groups: u64,
    /// Log files replaced, for any reason.
    pub rolls: u64,
    /// Log files abandoned because a write or sync failed.
    pub failures: u64,
}

/// The log of a server, or of `hbase:meta`: a sequence of log files. Takes edits, commits them in
/// groups, and tracks which log files are still needed.
///
/// [`Log::close`] commits the queued edits and ends the open file with a trailer. Dropping the
/// `Log` also commits the queued edits, but the file gets no trailer.
pub struct Log {
    shared: Arc<Shared>,
}

/// State shared by the callers of a [`Log`] and its tasks.
pub(crate) struct Shared {
    // Locked only briefly, never across an await. The holder takes no other lock.
    queue: Mutex<Queue>,
    wake: Notify,
    pub(crate) retention: Arc<Mutex<LogRetention>>,
    pub(crate) jobs: mpsc::UnboundedSender<Job>,
    pub(crate) counts: Counts,
    pub(crate) instruments: Arc<Instruments>,
}

#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) queued_bytes: AtomicU64,
    pub(crate) failures: AtomicU64,
    // A group found the disk full and is being retried.
    pub(crate) waits_for_space: AtomicBool,
}

struct Queue {
    edits: Vec<Edit>,
    // Queue length at which the committer is woken.
    wake_at: usize,
    commands: Vec<Command>,
    dropped: bool,
}

impl Default for Queue {
    fn default() -> Queue {
        Queue { edits: Vec::new(), wake_at: 1, commands: Vec::new(), dropped: false }
    }
}

/// A command to the committer. It is executed after the edits that were appended before it.
pub(crate) enum Command {
    Roll(oneshot::Sender<Result<()>>),
    Close(oneshot::Sender<()>),
}

/// The result of [`Shared::drain`], which returns the edits separately.
pub(crate) struct DrainedCommands {
    pub(crate) commands: Vec<Command>,
    // Whether the log was dropped.
    pub(crate) dropped: bool,
}

impl Shared {
    /// Moves all queued edits into `edits`, which must be empty, and takes the queued commands.
    pub(crate) fn drain(&self, edits: &mut Vec<Edit>) -> DrainedCommands {
        debug_assert!(edits.is_empty(), "the caller has processed the edits of the last call");
        let mut queue = locked(&self.queue);
        std::mem::swap(&mut queue.edits, edits);
        DrainedCommands { commands: std::mem::take(&mut queue.commands), dropped: queue.dropped }
    }

    /// Waits until an edit or a command is queued, or the log is dropped.
    pub(crate) async fn wait_queued(&self) {
        self.wake.notified().await;
    }

    pub(crate) fn queued_edit_count(&self) -> usize {
        locked(&self.queue).edits.len()
    }

    /// Waits until at least `edits` edits or a command are queued, or the log is dropped. Until
    /// [`wake_at_first_edit`](Self::wake_at_first_edit) is called, fewer edits do not wake the
    /// committer.
    pub(crate) async fn wait_queued_at_least(&self, edits: usize) {
        while self.needs_more(edits) {
            self.wake.notified().await;
        }
    }

    fn needs_more(&self, edits: usize) -> bool {
        let mut queue = locked(&self.queue);
        queue.wake_at = edits;
        queue.edits.len() < edits && queue.commands.is_empty() && !queue.dropped
    }

    /// Whether the log is being closed or was dropped.
    pub(crate) fn is_ending(&self) -> bool {
        let queue = locked(&self.queue);
        queue.dropped || queue.commands.iter().any(|command| matches!(command, Command::Close(_)))
    }

    /// Makes the first edit in an empty queue wake the committer again.
    pub(crate) fn wake_at_first_edit(&self) {
        locked(&self.queue).wake_at = 1;
    }

    fn send_command(&self, command: Command) {
        locked(&self.queue).commands.push(command);
        self.wake.notify_one();
    }
}

impl Log {
    /// Creates the first file and starts the log's tasks. `on_fatal` is called once if the log
    /// stops after an error.
    ///
    /// # Errors
    /// If the directories or the first file cannot be created.
    pub async fn start(
        env: Env,
        fs: Arc<dyn FileSystem>,
        options: LogOptions,
        on_fatal: Arc<dyn Fn(&Error) + Send + Sync>,
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
            retention: Arc::default(),
            jobs,
            counts: Counts::default(),
            instruments,
        });
        let housekeeper = Housekeeper {
            fs: fs.clone(),
            retention: shared.retention.clone(),
            dir: options.dir.clone(),
            archive_dir: options.archive_dir.clone(),
            failed_moves: Vec::new(),
            destinations: HashMap::new(),
            record: options.record.clone(),
            recorded: Vec::new(),
        };
        let has_record = options.record.is_some();
        let committer = Committer::start(env.clone(), fs, options, shared.clone(), on_fatal).await?;
        env.spawn(TaskClass::Service, housekeeper.run(todo));
        // On a connection thread, where most appenders wait: waking a task of the same thread needs
        // no system call.
        env.spawn(TaskClass::Connection, committer.run());
        if has_record {
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

    /// Queues an edit and returns immediately. `edit.listener` is notified once the edit is
    /// durable or has failed.
    ///
    /// The order of the calls is the order in the log. So a region must call this under the lock
    /// that assigns its sequence ids.
    pub fn append(&self, edit: Edit) {
        self.shared.counts.queued_bytes.fetch_add(edit.queued_bytes(), Ordering::Relaxed);
        let mut queue = locked(&self.shared.queue);
        queue.edits.push(edit);
        let is_wake_due = queue.edits.len() == queue.wake_at;
        drop(queue);
        if is_wake_due {
            self.shared.wake.notify_one();
        }
    }

    /// Bytes of edits that are not committed yet. The caller should delay appends while this is
    /// large.
    pub fn queued_bytes(&self) -> u64 {
        self.shared.counts.queued_bytes.load(Ordering::Relaxed)
    }

    /// The file that is being written; `None` once the log was closed or stopped.
    pub fn open_file(&self) -> Option<FilePath> {
        locked(&self.shared.retention).open_file().cloned()
    }

    /// Whether the disk is full and edits wait for space. They are not acknowledged until they are
    /// written.
    pub fn waits_for_space(&self) -> bool {
        self.shared.counts.waits_for_space.load(Ordering::Relaxed)
    }

    /// Commits the edits that were appended so far, then replaces the open file with a new one.
    ///
    /// # Errors
    /// If no new file can be created; the old one then stays in use.
    pub async fn roll(&self) -> Result<()> {
        let (done, outcome) = oneshot::channel();
        self.shared.send_command(Command::Roll(done));
        outcome.await.unwrap_or(Err(Error::Closed))
    }

    /// Records that the region's edits up to `up_to_seq_id` are in durable store files. Log files
    /// that are no longer needed are moved to the archive.
    pub fn record_flush(&self, region: &str, up_to_seq_id: u64) {
        let unneeded = locked(&self.shared.retention).record_flush(region, up_to_seq_id);
        self.archive(unneeded);
    }

    /// Records that the region's edits so far need no replay, because the region was dropped, or
    /// closed with all its edits in store files. If it is reopened, its sequence ids need not
    /// continue the earlier ones.
    pub fn forget_region(&self, region: &str) {
        let unneeded = locked(&self.shared.retention).forget_region(region);
        self.archive(unneeded);
    }

    /// The regions to flush so that the oldest log file can be archived.
    pub fn regions_holding_oldest(&self) -> Vec<Arc<str>> {
        locked(&self.shared.retention).regions_of_oldest()
    }

    /// Adopts log files of an earlier run, as returned by [`crate::recovery::LogIndex::old_logs`].
    ///
    /// The caller must eventually call [`Log::record_flush`] or [`Log::forget_region`] for each
    /// region in these files, even if the region had no edit to replay.
    pub fn adopt(&self, old: Vec<OldLog>) {
        for log in &old {
            if let OldLogAction::MoveTo(dir) = &log.action {
                let _ = self.shared.jobs.send(Job::MoveTo(log.path.clone(), dir.clone()));
            }
        }
        let unneeded = locked(&self.shared.retention).adopt(old);
        self.archive(unneeded);
    }

    /// Log files retained, including the open one and adopted ones.
    pub fn log_count(&self) -> usize {
        locked(&self.shared.retention).count()
    }

    /// The metrics of this log.
    pub fn instruments(&self) -> &Arc<Instruments> {
        &self.shared.instruments
    }

    /// Statistics for metrics.
    pub fn statistics(&self) -> LogStatistics {
        let (counts, instruments) = (&self.shared.counts, &self.shared.instruments.all);
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        LogStatistics {
            logs: self.log_count() as u64,
            file_bytes: locked(&self.shared.retention).bytes(),
            queued_bytes: read(&counts.queued_bytes),
            edits: instruments.appends.get(),
            bytes: instruments.written_bytes.get(),
            groups: instruments.sync_time.micros().count(),
            rolls: instruments.rolls.get(),
            failures: read(&counts.failures),
        }
    }

    /// Commits the queued edits, ends the file with a trailer, and waits until unneeded files are
    /// archived. Later appends fail with [`Error::Closed`].
    pub async fn close(&self) {
        let (done, closed) = oneshot::channel();
        self.shared.send_command(Command::Close(done));
        // An error means that the log was closed already.
        let _ = closed.await;
        let (done, drained) = oneshot::channel();
        if self.shared.jobs.send(Job::Drain(done)).is_ok() {
            let _ = drained.await;
        }
    }

    fn archive(&self, unneeded: Vec<FilePath>) {
        if !unneeded.is_empty() {
            // The send fails only if the runtime has ended. Then the next run archives the files.
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
