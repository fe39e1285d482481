//! The next file of a log while it is created. Groups are committed to the old file meanwhile: on
//! HDFS a creation needs the NameNode, and a commit does not.

use std::sync::Arc;

use base::env::{Env, TaskClass};
use fs::{AccessPattern, Error, FilePath, FileSystem, FileWriter, Result};
use tokio::sync::oneshot::{self, error::TryRecvError};

use crate::shared::Shared;

/// An empty file, or the error of its creation.
type Created = Result<Box<dyn FileWriter>>;

/// The creation of a file in the background. If this is dropped, the file is removed when it was
/// created.
pub(crate) struct NextFile {
    pub(crate) path: FilePath,
    /// The number in its name.
    pub(crate) number: u64,
    shared: Arc<Shared>,
    running: oneshot::Receiver<Created>,
    done: Option<Created>,
}

impl NextFile {
    pub(crate) fn begin(
        env: &Env,
        fs: &Arc<dyn FileSystem>,
        shared: &Arc<Shared>,
        path: FilePath,
        number: u64,
    ) -> NextFile {
        let (sender, running) = oneshot::channel();
        let (task_fs, task_shared, task_path) = (fs.clone(), shared.clone(), path.clone());
        env.spawn(TaskClass::Service, async move {
            let created = task_fs.create(&task_path, AccessPattern::Log).await;
            if let Err(unwanted) = sender.send(created) {
                task_shared.discard_new_file(task_path, unwanted.err().as_ref());
            }
        });
        NextFile { path, number, shared: shared.clone(), running, done: None }
    }

    /// Returns when the creation has ended.
    pub(crate) async fn wait(&mut self) {
        if self.done.is_none() {
            let ended = (&mut self.running).await;
            self.done = Some(ended.unwrap_or_else(|_| Err(no_result(&self.path))));
        }
    }

    /// The result, if the creation has ended.
    pub(crate) fn take(&mut self) -> Option<Created> {
        self.done.take().or_else(|| match self.running.try_recv() {
            Ok(created) => Some(created),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Closed) => Some(Err(no_result(&self.path))),
        })
    }
}

fn no_result(path: &FilePath) -> Error {
    Error::io(path, "create", "the task ended")
}

impl Drop for NextFile {
    fn drop(&mut self) {
        self.running.close();
        if let Some(unwanted) = self.done.take().or_else(|| self.running.try_recv().ok()) {
            self.shared.discard_new_file(self.path.clone(), unwanted.err().as_ref());
        }
    }
}
