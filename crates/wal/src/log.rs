//! The interface of a log, which is a sequence of log files: a queue that takes edits and later
//! reports whether they were committed.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base::env::{Env, TaskClass};
use fs::{FilePath, FileSystem};
use tokio::sync::{mpsc, oneshot};

use crate::committer::Committer;
use crate::housekeeper::{Housekeeper, Job};
use crate::instruments::Instruments;
use crate::options::LogOptions;
use crate::retention::{OldLog, OldLogAction, locked};
use crate::shared::{Command, Shared};
use crate::{Edit, Error, Result};

/// How often the log checks whether the record of the retained logs must be updated.
const RECORD_PERIOD: Duration = Duration::from_secs(1);

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
    fs: Arc<dyn FileSystem>,
    dir: FilePath,
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
        if let Some(policy) = &options.storage_policy {
            fs.set_storage_policy(&options.dir, policy).await;
        }
        if let Some(record) = &options.record {
            fs.make_dirs(&record.parent()).await?;
        }
        let (jobs, todo) = mpsc::unbounded_channel();
        let instruments = options
            .instruments
            .clone()
            .unwrap_or_else(|| Arc::new(Instruments::begin(env.clock.monotonic())));
        let shared = Arc::new(Shared::new(jobs, instruments));
        let housekeeper = Housekeeper {
            clock: env.clock.clone(),
            fs: fs.clone(),
            retention: shared.retention.clone(),
            dir: options.dir.clone(),
            archive_dir: options.archive_dir.clone(),
            failed_moves: Vec::new(),
            destinations: HashMap::new(),
            record: options.record.clone(),
            record_age: options.record_age,
            recorded: Vec::new(),
            recorded_at: Duration::ZERO,
        };
        let has_record = options.record.is_some();
        let (own_fs, dir) = (fs.clone(), options.dir.clone());
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
        Ok(Arc::new(Log { shared, fs: own_fs, dir }))
    }

    /// Queues an edit and returns immediately. `edit.listener` is notified once the edit is
    /// durable or has failed.
    ///
    /// The order of the calls is the order in the log. So a region must call this under the lock
    /// that assigns its sequence ids.
    pub fn append(&self, edit: Edit) {
        self.shared.append(edit);
    }

    /// Checks that no other process has taken over the log: that would have renamed its directory.
    /// A process that was frozen together with its clocks learns nothing of a takeover until its
    /// next edit. So it checks before it changes files that the other process may use.
    ///
    /// # Errors
    /// [`TakenOver`](fs::Error::TakenOver), and errors of the file system.
    pub async fn check_owned(&self) -> Result<()> {
        match self.fs.stat(&self.dir).await? {
            Some(_) => Ok(()),
            None => Err(fs::Error::TakenOver { path: self.dir.clone() }.into()),
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
    /// Later edits do not wait for the creation of the new file.
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

    /// The regions to flush so that at most `logs_max` log files are retained, including the open
    /// one.
    pub fn regions_beyond(&self, logs_max: usize) -> Vec<Arc<str>> {
        locked(&self.shared.retention).regions_beyond(logs_max).into_iter().collect()
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
        self.shared.end();
    }
}
