//! Layer 1: files, as a trait that both a local disk and HDFS can keep honestly.
//!
//! * [`FileSystem`], [`FileReader`], [`FileWriter`]: the contract;
//! * [`local`]: a directory of this machine, calls answered from a bounded pool;
//! * [`memory`]: a file system in memory that knows what was synced and can show what a power cut leaves;
//! * [`faulty`]: wraps any other: fails the Nth call, tears writes, slows down, fills up;
//! * [`measured`]: wraps any other, and counts reads and writes;
//! * [`reserve`]: wraps any other, and keeps part of the disk for writes that must not fail;
//! * [`space`]: how much of the disk is free, and which writes it still admits.
//!
//! Knows nothing about: what is in the files.

pub mod faulty;
pub mod local;
pub mod measured;
pub mod memory;
mod path;
pub mod reserve;
pub mod space;

pub use path::FilePath;
pub use space::DiskSpace;

use std::sync::Arc;

use base::BoxFuture;
use bytes::Bytes;

/// An append of so many bytes that is synced is best made without [reserved](FileWriter::reserve) zeros: they would be as much
/// again to write, and what a sync takes more where the file becomes longer is little of its cost.
pub const LONG_APPEND_BYTES: usize = 32 << 10;

/// How far a [`FileWriter::sync`] reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// Other readers see the bytes; they survive this process (HDFS: hflush; local: nothing to do).
    Visible,
    /// The bytes survive a power cut (HDFS: hsync; local: fdatasync).
    Disk,
}

/// What kind of storage a file would like; a hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// Read at random for as long as it lives.
    Data,
    /// Written and synced often, read after a crash.
    Log,
}

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStatus {
    /// Last part of the path.
    pub name: String,
    /// A directory rather than a file.
    pub is_dir: bool,
    /// Bytes in the file (0 for a directory).
    pub len: u64,
    /// Time of the last change, milliseconds since the epoch.
    pub modified_ms: u64,
}

/// What went wrong with a file, told apart by what the caller can do about it.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// There is nothing at this path.
    #[error("{path}: no such file or directory")]
    NotFound {
        /// Where it was looked for.
        path: FilePath,
    },
    /// Something is there already.
    #[error("{path}: exists already")]
    AlreadyExists {
        /// Where it was to be made.
        path: FilePath,
    },
    /// The device or the quota is full: free space, then try again.
    #[error("{path}: no space left")]
    NoSpace {
        /// The file that was written.
        path: FilePath,
    },
    /// The process (or the system) has no file descriptor left: close files or raise the limit, then try again.
    #[error(
        "{path}: {operation} failed: no file descriptor is left; raise the limit of open files (ulimit -n, \
         LimitNOFILE) and restart"
    )]
    NoDescriptor {
        /// The file that was to be opened.
        path: FilePath,
        /// The call that failed.
        operation: &'static str,
    },
    /// A read asked for bytes past the end of the file.
    #[error("{path}: ends before byte {end}")]
    PastEnd {
        /// The file that was read.
        path: FilePath,
        /// The offset behind the last byte asked for.
        end: u64,
    },
    /// Another process holds the lock.
    #[error("{path}: in use by another process")]
    Locked {
        /// The lock's file.
        path: FilePath,
    },
    /// Anything else the operating system reports. After a failed sync the file must not be synced again.
    #[error("{path}: {operation} failed: {message}")]
    Io {
        /// The file or directory.
        path: FilePath,
        /// What was tried.
        operation: &'static str,
        /// The system's words.
        message: String,
    },
}

impl Error {
    /// An [`Error::Io`] in our own words.
    pub fn io(path: &FilePath, operation: &'static str, message: impl Into<String>) -> Error {
        Error::Io { path: path.clone(), operation, message: message.into() }
    }
}

/// The result of a file operation.
pub type Result<T> = std::result::Result<T, Error>;

/// A tree of files. Paths are relative to its root.
///
/// Nothing is durable until it is synced: a file's bytes by [`FileWriter::sync`], its name (after create, rename or
/// delete) by [`FileSystem::sync_dir`] of the directory that holds the name. A sync that failed is never tried again:
/// what it covered counts as lost.
pub trait FileSystem: Send + std::marker::Sync + 'static {
    /// Makes a new, empty file and opens it for writing. Parent directories must exist.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`], [`Error::NotFound`] if the directory is missing.
    fn create<'a>(
        &'a self,
        path: &'a FilePath,
        storage: Storage,
    ) -> BoxFuture<'a, Result<Box<dyn FileWriter>>>;

    /// Opens a file for reading; its length is fixed at this moment.
    fn open<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Arc<dyn FileReader>>>;

    /// The same for a file whose blocks the caller caches himself: where the storage can, reads go past the system's cache.
    fn open_uncached<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Arc<dyn FileReader>>> {
        self.open(path)
    }

    /// Gives a file or directory another name, replacing a file of that name at once.
    fn rename<'a>(&'a self, from: &'a FilePath, to: &'a FilePath) -> BoxFuture<'a, Result<()>>;

    /// Removes a file, or a directory with all in it. Nothing there is no error.
    fn delete<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<()>>;

    /// What is at `path`, or `None`.
    fn stat<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Option<FileStatus>>>;

    /// The entries of a directory, sorted by name.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no such directory.
    fn list<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<Vec<FileStatus>>>;

    /// Makes a directory and its parents; existing ones are fine. Their names are made durable.
    fn make_dirs<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<()>>;

    /// Makes the names in a directory durable (HDFS: nothing to do).
    fn sync_dir<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<()>>;

    /// The disk below the tree; `None` if it has no size of its own.
    fn space(&self) -> BoxFuture<'_, Result<Option<DiskSpace>>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Checks that the tree's root is still the directory that was opened.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the path leads nowhere, [`Error::Io`] if it leads to another directory or device: what is
    /// written would be found by no later start.
    fn check_root(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Makes a file of `bytes` bytes whose room on the disk is taken; what is in it is not defined.
    ///
    /// # Errors
    /// [`Error::NoSpace`], [`Error::AlreadyExists`]; nothing is left behind.
    fn allocate<'a>(&'a self, path: &'a FilePath, bytes: u64) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let mut writer = self.create(path, Storage::Data).await?;
            let written = writer.append(vec![0; usize::try_from(bytes).unwrap_or(usize::MAX)].into()).await;
            drop(writer);
            if let Err(error) = written {
                self.delete(path).await?;
                return Err(error);
            }
            Ok(())
        })
    }

    /// Makes sure that no other process goes on writing the file, and that what is in it now survives a power cut
    /// (HDFS: recover the lease; local: fdatasync, the lock of the root directory keeps others out). After it the
    /// length is final, and what was read once from a dead process's file is there after the next crash too.
    fn fence<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<()>>;
}

/// An open file that is read at any offset, by several at a time.
pub trait FileReader: Send + std::marker::Sync + 'static {
    /// The path it was opened under.
    fn path(&self) -> &FilePath;
    /// Bytes in the file when it was opened.
    fn len(&self) -> u64;
    /// Whether the file had no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Exactly `len` bytes from `offset`.
    ///
    /// # Errors
    /// [`Error::PastEnd`] if the file ends before; never fewer bytes than asked for.
    fn read_at(&self, offset: u64, len: usize) -> BoxFuture<'_, Result<Bytes>>;
    /// Bytes of memory that what [`read_at`](FileReader::read_at) returned keeps beside its own, on average.
    fn spare_bytes(&self) -> usize {
        0
    }
}

/// A file being written front to back by its only writer.
///
/// Dropping it without [`FileWriter::close`] leaves what was appended, synced or not.
pub trait FileWriter: Send + 'static {
    /// The path it was made under.
    fn path(&self) -> &FilePath;
    /// Bytes appended so far.
    fn len(&self) -> u64;
    /// Whether nothing was appended yet.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Writes `bytes` behind what was appended before.
    fn append(&mut self, bytes: Bytes) -> BoxFuture<'_, Result<()>>;
    /// Writes `bytes`, of which only the first `kept` count as appended. The rest is an end mark: it tells readers of
    /// a file with reserved zeros where its content ends; the next append overwrites it, close cuts it.
    ///
    /// What overwrites an earlier end mark is written last, or in one step with all the rest, so that a process killed in between leaves
    /// the old mark in its place, and behind it bytes that no reader reaches. Left out where [`FileWriter::reserve`] does nothing.
    fn append_with_end(&mut self, bytes: Bytes, kept: usize) -> BoxFuture<'_, Result<()>> {
        self.append(bytes.slice(..kept))
    }
    /// Returns when all that was appended is as safe as `reach` says. Never retry a failed one.
    fn sync(&mut self, reach: Sync) -> BoxFuture<'_, Result<()>>;
    /// [`append_with_end`](FileWriter::append_with_end), then [`sync`](FileWriter::sync): as one step where two take longer.
    fn append_and_sync(&mut self, bytes: Bytes, kept: usize, reach: Sync) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            self.append_with_end(bytes, kept).await?;
            self.sync(reach).await
        })
    }
    /// Writes zeros behind the end so that the next `bytes` appended bytes change no file length, which makes their
    /// sync cheaper; a reader meanwhile sees the zeros. Does nothing where the storage gains nothing.
    fn reserve(&mut self, bytes: u64) -> BoxFuture<'_, Result<()>>;
    /// Cuts what was reserved but not used, and closes. Does not sync.
    fn close(self: Box<Self>) -> BoxFuture<'static, Result<()>>;
}
