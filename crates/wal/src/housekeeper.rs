//! What a log does beside committing: trailers of logs that were replaced, and moving unneeded ones to the archive.
//!
//! One task does it in order, so that no commit waits for it. Nothing here is needed for durability: a failure is
//! logged and leaves a file behind that the next run finds.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use fs::{FilePath, FileSystem};
use tokio::sync::{mpsc, oneshot};
use tracing::{debug, info, warn};

use crate::books::Books;
use crate::log::locked;
use crate::record::{self, Recorded};
use crate::segment::Segment;

/// Something to do.
pub(crate) enum Job {
    /// Ends a log that was replaced.
    Finish(Box<Segment>),
    /// A log that failed: nothing more is written to it.
    GiveUp(FilePath),
    /// Moves logs that nobody needs.
    Archive(Vec<FilePath>),
    /// Removes a log that was not wholly made.
    Discard(FilePath),
    /// A damaged log of an earlier run: it is moved there instead of to the archive.
    MoveElsewhere(FilePath, FilePath),
    /// Records which logs are kept.
    Record,
    /// Answers when all before is done.
    Drain(oneshot::Sender<()>),
}

pub(crate) struct Housekeeper {
    pub(crate) fs: Arc<dyn FileSystem>,
    pub(crate) books: Arc<Mutex<Books>>,
    pub(crate) dir: FilePath,
    pub(crate) archive_dir: FilePath,
    // Logs whose move failed: tried again with the next.
    pub(crate) left: Vec<FilePath>,
    // Where damaged logs go.
    pub(crate) elsewhere: HashMap<FilePath, FilePath>,
    // Where logs are recorded, and what was recorded last.
    pub(crate) record: Option<FilePath>,
    pub(crate) recorded: Vec<Recorded>,
}

impl Housekeeper {
    /// Works until no one can ask for more.
    pub(crate) async fn run(mut self, mut jobs: mpsc::UnboundedReceiver<Job>) {
        while let Some(job) = jobs.recv().await {
            match job {
                Job::Finish(segment) => self.finish(*segment).await,
                Job::GiveUp(path) => {
                    let unneeded = locked(&self.books).finished(&path);
                    self.archive(unneeded).await;
                }
                Job::Archive(paths) => self.archive(paths).await,
                Job::Discard(path) => {
                    if let Err(error) = self.fs.delete(&path).await {
                        warn!(%path, %error, "a log that was not wholly made stays");
                    }
                }
                Job::MoveElsewhere(path, dir) => drop(self.elsewhere.insert(path, dir)),
                Job::Record => self.record_logs().await,
                // Who asked may have given up waiting.
                Job::Drain(done) => drop(done.send(())),
            }
        }
    }

    async fn finish(&mut self, segment: Segment) {
        let path = segment.path().clone();
        let finished = match segment.finish().await {
            // Zeros that close cut off must not come back behind the trailer.
            Ok(()) => self.fs.fence(&path).await,
            Err(error) => Err(error),
        };
        if let Err(error) = finished {
            warn!(%path, %error, "a log ends without trailer; its entries are durable all the same");
        }
        let unneeded = locked(&self.books).finished(&path);
        self.archive(unneeded).await;
    }

    async fn archive(&mut self, mut paths: Vec<FilePath>) {
        if paths.is_empty() {
            return;
        }
        paths.append(&mut self.left);
        for path in paths {
            match self.move_one(&path).await {
                Ok(()) => {
                    info!(%path, archive = %self.archive_dir, "all edits of a log are flushed; archived it")
                }
                // Moved by an earlier try whose directory sync failed, or by hand.
                Err(fs::Error::NotFound { .. }) => (),
                Err(error) => {
                    warn!(%path, %error, "a log that nobody needs could not be archived; tried again later");
                    self.left.push(path);
                }
            }
        }
        // Before a crash can make them seem missing.
        self.record_logs().await;
    }

    /// Records which logs are kept. Only helps to notice damage later, so a failure is no more than logged.
    async fn record_logs(&mut self) {
        let Some(path) = &self.record else { return };
        let logs = locked(&self.books).recorded();
        if logs == self.recorded {
            return;
        }
        match record::write(&*self.fs, path, &logs).await {
            Ok(()) => self.recorded = logs,
            Err(error) => debug!(%path, %error, "the logs that are kept could not be recorded"),
        }
    }

    async fn move_one(&self, path: &FilePath) -> fs::Result<()> {
        let to = self.elsewhere.get(path).unwrap_or(&self.archive_dir);
        if *to != self.archive_dir {
            self.fs.make_dirs(to).await?;
        }
        self.fs.rename(path, &to.join(path.name())).await?;
        self.fs.sync_dir(to).await?;
        let parent = path.parent();
        self.fs.sync_dir(&parent).await?;
        if parent != self.dir && self.fs.list(&parent).await?.is_empty() {
            // The directory of a server that is gone, its last log moved.
            self.fs.delete(&parent).await?;
            self.fs.sync_dir(&parent.parent()).await?;
        }
        Ok(())
    }
}
