//! What a log does beside committing: trailers of logs that were replaced, and moving unneeded ones to the archive.
//!
//! One task does it in order, so that no commit waits for it. Nothing here is needed for durability: a failure is
//! logged and leaves a file behind that the next run finds.

use std::sync::{Arc, Mutex};

use fs::{FilePath, FileSystem};
use tokio::sync::{mpsc, oneshot};
use tracing::{info, warn};

use crate::books::Books;
use crate::log::locked;
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
    }

    async fn move_one(&self, path: &FilePath) -> fs::Result<()> {
        self.fs.rename(path, &self.archive_dir.join(path.name())).await?;
        self.fs.sync_dir(&self.archive_dir).await?;
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
