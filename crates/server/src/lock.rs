//! One process to a data directory: a lock on a file in it, held as long as the process lives.
#![allow(
    clippy::disallowed_methods,
    reason = "locks are the operating system's, not the file system trait's"
)]

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

/// The lock; dropping it (or the end of the process, however it ends) lets go.
pub struct DirectoryLock {
    #[allow(dead_code, reason = "held, not used")]
    file: File,
    path: PathBuf,
}

/// Why the lock was not had.
#[derive(Debug)]
pub enum Refused {
    /// Another process holds it.
    InUse,
    /// The directory or the file cannot be made.
    Io(io::Error),
}

impl DirectoryLock {
    /// Locks `file`, whose directory exists.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn take(path: &Path) -> Result<DirectoryLock, Refused> {
        let file =
            OpenOptions::new().create(true).truncate(false).write(true).open(path).map_err(Refused::Io)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(DirectoryLock { file, path: path.to_path_buf() }),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(Refused::InUse),
            Err(error) => Err(Refused::Io(error.into())),
        }
    }

    /// Takes the file away: the directory is somebody else's, and is left as it was found.
    pub fn withdraw(self) {
        // If it cannot be removed an empty file stays, and what went wrong is told all the same.
        let _ = std::fs::remove_file(&self.path);
    }
}
