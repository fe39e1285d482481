//! Work on log files that is not part of a commit. The housekeeper writes the trailers of replaced
//! logs, moves unneeded logs to the archive, removes partly created logs, and records which logs
//! are retained.
//!
//! A separate task does these jobs in order, so that no commit waits for them. Durability does not
//! depend on them. If a job fails, a message is written to the server's log, and the next start of
//! the server finds the log file where it was.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::env::Clock;
use fs::{FilePath, FileSystem};
use tokio::sync::{mpsc, oneshot};
use tracing::{debug, info, warn};

use crate::record::{self, RecordedLog};
use crate::retention::{LogRetention, locked};
use crate::segment::Segment;

pub(crate) enum Job {
    /// Writes the trailer of a log that was replaced.
    Finish(Box<Segment>),
    /// Abandons a log after a failed write or sync: nothing more is written to it.
    Abandon(FilePath),
    /// Moves logs that are no longer needed to the archive.
    Archive(Vec<FilePath>),
    /// Removes a log that was only partly created.
    Discard(FilePath),
    /// Sets the directory to which a damaged log of an earlier run is moved when it is no longer
    /// needed, instead of to the archive. The fields are the log and the directory.
    MoveTo(FilePath, FilePath),
    /// Records which logs are retained, if the record is outdated.
    Record,
    /// Responds when all earlier jobs are done.
    Drain(oneshot::Sender<()>),
}

pub(crate) struct Housekeeper {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) fs: Arc<dyn FileSystem>,
    pub(crate) retention: Arc<Mutex<LogRetention>>,
    pub(crate) dir: FilePath,
    pub(crate) archive_dir: FilePath,
    // Logs whose move failed; it is retried with the next move.
    pub(crate) failed_moves: Vec<FilePath>,
    // Directories that damaged logs are moved to, by log.
    pub(crate) destinations: HashMap<FilePath, FilePath>,
    // The file that records the retained logs.
    pub(crate) record: Option<FilePath>,
    // Age at which the lengths in it are updated.
    pub(crate) record_age: Duration,
    // The content of the file `record`, and when it was written, on the monotonic clock.
    pub(crate) recorded: Vec<RecordedLog>,
    pub(crate) recorded_at: Duration,
}

impl Housekeeper {
    /// Runs until all senders are dropped.
    pub(crate) async fn run(mut self, mut jobs: mpsc::UnboundedReceiver<Job>) {
        while let Some(job) = jobs.recv().await {
            match job {
                Job::Finish(segment) => self.finish(*segment).await,
                Job::Abandon(path) => {
                    let unneeded = locked(&self.retention).record_finished(&path);
                    self.archive(unneeded).await;
                }
                Job::Archive(paths) => self.archive(paths).await,
                Job::Discard(path) => discard(&*self.fs, &path).await,
                Job::MoveTo(path, dir) => drop(self.destinations.insert(path, dir)),
                Job::Record => self.record_logs().await,
                // The caller may have stopped waiting.
                Job::Drain(done) => drop(done.send(())),
            }
        }
    }

    async fn finish(&mut self, segment: Segment) {
        let path = segment.path().clone();
        let finished = match segment.finish().await {
            // Zeros that `close` truncated must not reappear after a power loss.
            Ok(()) => self.fs.fence(&path).await.map(drop),
            Err(error) => Err(error),
        };
        if let Err(error) = finished {
            warn!(%path, %error, "cannot write the trailer of a log; its entries are durable anyway");
        }
        let unneeded = locked(&self.retention).record_finished(&path);
        self.archive(unneeded).await;
    }

    async fn archive(&mut self, mut paths: Vec<FilePath>) {
        if paths.is_empty() {
            return;
        }
        paths.splice(0..0, self.failed_moves.drain(..));
        let mut paths = paths.into_iter();
        while let Some(path) = paths.next() {
            match self.move_one(&path).await {
                Ok(()) => {
                    info!(%path, to = %self.destination(&path), "moved a log: all its edits are flushed")
                }
                // Moved by an earlier attempt whose directory sync failed, or by the operator.
                Err(fs::Error::NotFound { .. }) => (),
                Err(error) => {
                    warn!(%path, %error, "cannot move a log that is no longer needed; retrying later");
                    // A log may record closes that a replay of this one needs, so later logs wait.
                    self.failed_moves.push(path);
                    self.failed_moves.extend(paths);
                    break;
                }
            }
        }
        // Otherwise the next start would report the moved logs as missing.
        self.record_logs().await;
    }

    /// Records which logs are retained, if the record is outdated. A failure is only logged,
    /// because the record only helps to detect damage.
    async fn record_logs(&mut self) {
        let Some(path) = &self.record else { return };
        let (logs, now) = (locked(&self.retention).records(), self.clock.monotonic());
        let is_old = now >= self.recorded_at + self.record_age;
        if logs == self.recorded || !is_old && record::is_same_set(&logs, &self.recorded) {
            return;
        }
        match record::write(&*self.fs, path, &logs).await {
            Ok(()) => (self.recorded, self.recorded_at) = (logs, now),
            Err(error) => debug!(%path, %error, "cannot record which logs are retained"),
        }
    }

    /// The directory to which a log is moved when it is no longer needed.
    fn destination(&self, path: &FilePath) -> &FilePath {
        self.destinations.get(path).unwrap_or(&self.archive_dir)
    }

    async fn move_one(&self, path: &FilePath) -> fs::Result<()> {
        let to = self.destination(path);
        let target = to.join(path.name());
        match self.fs.rename(path, &target).await {
            // The directory is missing, and not the log.
            Err(fs::Error::NotFound { path: missing }) if missing != *path => {
                self.fs.make_dirs(to).await?;
                self.fs.rename(path, &target).await?;
            }
            renamed => renamed?,
        }
        self.fs.sync_dir(to).await?;
        let parent = path.parent();
        self.fs.sync_dir(&parent).await?;
        if parent != self.dir && self.fs.list(&parent).await?.is_empty() {
            // The directory of an earlier run, whose last log was moved.
            self.fs.delete(&parent).await?;
            self.fs.sync_dir(&parent.parent()).await?;
        }
        Ok(())
    }
}

/// Removes a log that was only partly created. If that fails, the log has no entries, and recovery
/// skips it.
pub(crate) async fn discard(fs: &dyn FileSystem, path: &FilePath) {
    if let Err(error) = fs.delete(path).await {
        warn!(%path, %error, "cannot remove a log that was only partly created");
    }
}
