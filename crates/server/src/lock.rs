//! Which processes use a data directory: a lock on a file in it, held until the process ends.
//! Either one process has it, or any number of processes of a cluster share it.
#![allow(clippy::disallowed_methods, reason = "file locks are not part of the FileSystem trait")]

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

/// The lock. Dropping it, or the end of the process for any reason, releases it.
pub struct DirectoryLock {
    file: File,
    path: PathBuf,
}

/// Why the lock could not be acquired.
#[derive(Debug)]
pub enum LockError {
    /// Another process holds it.
    InUse,
    /// The file cannot be created or locked.
    Io(io::Error),
}

impl DirectoryLock {
    /// Locks the file `path`, whose directory must exist. A shared lock excludes only processes
    /// that do not share it.
    ///
    /// # Errors
    /// [`LockError`].
    pub fn acquire(path: &Path, is_shared: bool) -> Result<DirectoryLock, LockError> {
        let file =
            OpenOptions::new().create(true).truncate(false).write(true).open(path).map_err(LockError::Io)?;
        DirectoryLock::lock(file, path, is_shared)
    }

    /// Locks the file `path`, but does not create it. `None` if it does not exist: no server has
    /// locked it. The directory may be read-only.
    ///
    /// # Errors
    /// [`LockError`].
    pub fn acquire_existing(path: &Path) -> Result<Option<DirectoryLock>, LockError> {
        match File::open(path) {
            Ok(file) => DirectoryLock::lock(file, path, false).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(LockError::Io(error)),
        }
    }

    fn lock(file: File, path: &Path, is_shared: bool) -> Result<DirectoryLock, LockError> {
        let operation = match is_shared {
            true => FlockOperation::NonBlockingLockShared,
            false => FlockOperation::NonBlockingLockExclusive,
        };
        match flock(&file, operation) {
            Ok(()) => Ok(DirectoryLock { file, path: path.to_path_buf() }),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(LockError::InUse),
            Err(error) => Err(LockError::Io(error.into())),
        }
    }

    /// Shares the lock from now on.
    ///
    /// # Errors
    /// The system's error, also if another process has taken the lock for itself in this moment.
    pub fn share(&self) -> io::Result<()> {
        Ok(flock(&self.file, FlockOperation::NonBlockingLockShared)?)
    }

    /// Removes the lock file: the directory belongs to another program and must stay as it was.
    pub fn remove(self) {
        // If the removal fails, an empty file stays; the caller reports the original error anyway.
        let _ = std::fs::remove_file(&self.path);
    }
}
