//! Files, as a trait with a contract that both a local disk and HDFS can fulfil.
//!
//! * [`FileSystem`], [`FileReader`], [`FileWriter`]: the contract;
//! * [`local`]: a directory of this machine, with blocking calls on a bounded pool;
//! * [`memory`]: an in-memory file system that tracks syncs and can simulate power loss;
//! * [`faulty`]: a wrapper that injects faults: failing calls, torn writes, delays, a full disk;
//! * [`measured`]: a wrapper that measures reads and writes;
//! * [`mounted`]: a file system in which some directories are on another one;
//! * [`paced`]: a wrapper that is as slow as a device of a given model, for tests and benchmarks;
//! * [`scheduled`]: a wrapper that orders and limits the requests of a device by their class;
//! * [`shared`]: a wrapper that detects that another process took over a log;
//! * [`reserve`]: a wrapper that reserves part of the disk for writes that must not fail;
//! * [`space`]: the free space of the disk, and which writes it still admits.
//!
//! Knows nothing about: the contents of the files.

mod class;
pub mod faulty;
pub mod local;
pub mod measured;
pub mod memory;
pub mod mounted;
pub mod paced;
mod path;
mod policy;
mod purpose;
pub mod reserve;
pub mod scheduled;
pub mod shared;
pub mod space;
mod traffic;

pub use class::IoClass;
pub use path::FilePath;
pub use policy::PolicyCounts;
pub use purpose::{Preferences, Purpose, Role};
pub use space::DiskSpace;
pub use traffic::Traffic;

use std::collections::HashMap;
use std::sync::Arc;

use base::BoxFuture;
use bytes::Bytes;

/// A synced append of at least this many bytes should not use [reserved](FileWriter::reserve)
/// zeros. Writing the zeros would double the bytes written, and extending the file adds little to
/// the cost of such a sync.
pub const LONG_APPEND_BYTES: usize = 32 << 10;

/// Guarantee of a [`FileWriter::sync`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncLevel {
    /// Other readers see the bytes, and the bytes survive a crash of this process (HDFS: hflush;
    /// local: nothing to do).
    Visible,
    /// The bytes survive power loss (HDFS: hsync; local: fdatasync).
    Disk,
}

/// Expected access pattern of a file; a hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessPattern {
    /// Read at random offsets.
    Data,
    /// Written and synced often, read after a crash.
    Log,
}

/// Metadata of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStatus {
    /// Last part of the path.
    pub name: String,
    /// Whether it is a directory rather than a file.
    pub is_dir: bool,
    /// Length in bytes (0 for a directory).
    pub len: u64,
    /// Time of the last change, in milliseconds since the Unix epoch.
    pub modified_ms: u64,
    /// The target of a [link](FileSystem::link). A file system whose links can be followed states
    /// the kind, length and time of the target, others those of an empty file.
    pub link: Option<Arc<str>>,
}

/// The hosts that have the bytes of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileHosts {
    /// Last part of the path.
    pub name: String,
    /// Length in bytes.
    pub len: u64,
    /// How many of these bytes each host has. A host with both a name and an address is listed by
    /// each of them.
    pub bytes_by_host: HashMap<String, u64>,
}

/// An error of a file operation; the variants differ in what the caller can do.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The path does not exist.
    #[error("{path}: no such file or directory")]
    NotFound {
        /// The path that was looked up.
        path: FilePath,
    },
    /// The path exists already.
    #[error("{path}: already exists")]
    AlreadyExists {
        /// The path that was to be created.
        path: FilePath,
    },
    /// The device or the quota is full: free space, then retry.
    #[error("{path}: no space left")]
    NoSpace {
        /// The file that was written.
        path: FilePath,
    },
    /// The disk of this file is full, but others have space: write another file instead.
    #[error("{path}: no space left on its disk, but on others")]
    VolumeFull {
        /// The file that was written.
        path: FilePath,
    },
    /// The process (or the system) has no free file descriptor: close files or raise the limit,
    /// then retry.
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
    /// A read requested bytes after the end of the file.
    #[error("{path}: ends before byte {end}")]
    PastEnd {
        /// The file that was read.
        path: FilePath,
        /// End offset of the requested range.
        end: u64,
    },
    /// Another process holds the lock.
    #[error("{path}: in use by another process")]
    Locked {
        /// The lock file.
        path: FilePath,
    },
    /// Another process has taken over the file, so nothing that this process writes to it counts.
    #[error("{path}: another process has taken over this file")]
    TakenOver {
        /// The file that was written.
        path: FilePath,
    },
    /// The path of the root refers to another directory than the one that was opened.
    #[error("{root} is not the directory that was opened at startup")]
    RootReplaced {
        /// The path of the root, as the system names it.
        root: String,
    },
    /// Any other error of the operating system. After a failed sync the file must not be synced
    /// again.
    #[error("{path}: {operation} failed: {message}")]
    Io {
        /// The file or directory.
        path: FilePath,
        /// The operation that failed.
        operation: &'static str,
        /// The system's message.
        message: String,
    },
}

impl Error {
    /// Creates an [`Error::Io`] with a custom message.
    pub fn io(path: &FilePath, operation: &'static str, message: impl Into<String>) -> Error {
        Error::Io { path: path.clone(), operation, message: message.into() }
    }
}

/// What [`FileSystem::fence`] achieved.
#[must_use = "a file that other processes can still write needs more"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fence {
    /// No other process can write the file: its contents are final.
    Complete,
    /// The contents so far are durable, but a process that has the file open can still append to
    /// it. This is so in a directory that several processes share ([`shared`]).
    OpenFilesRemain,
}

/// The result of a file operation.
pub type Result<T> = std::result::Result<T, Error>;

/// A tree of files. Paths are relative to its root.
///
/// Nothing is durable before it is synced. [`FileWriter::sync`] syncs the bytes of a file. After a
/// file is created, renamed or deleted, [`FileSystem::sync_dir`] of its directory syncs the change.
/// A failed sync must never be retried: the data that it covered counts as lost.
pub trait FileSystem: Send + Sync + 'static {
    /// Creates a new, empty file and opens it for writing. Parent directories must exist. Storage
    /// of several kinds chooses a disk by the purpose.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`], [`Error::NotFound`] if the directory is missing.
    fn create_for<'a>(
        &'a self,
        path: &'a FilePath,
        purpose: &'a Purpose,
    ) -> BoxFuture<'a, Result<Box<dyn FileWriter>>>;

    /// [`create_for`](FileSystem::create_for) of which only the access pattern is known.
    fn create<'a>(
        &'a self,
        path: &'a FilePath,
        access: AccessPattern,
    ) -> BoxFuture<'a, Result<Box<dyn FileWriter>>> {
        Box::pin(async move { self.create_for(path, &access.into()).await })
    }

    /// How the storage wants a file of this purpose to be written.
    fn preferences(&self, purpose: &Purpose) -> Preferences {
        let _ = purpose;
        Preferences::default()
    }

    /// Creates a link to a file outside of this file system. Renaming or deleting `path` renames or
    /// deletes the link, also if a rename replaces it.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`], [`Error::NotFound`] if the directory is missing, [`Error::Io`] if
    /// the storage has no links.
    fn link<'a>(&'a self, path: &'a FilePath, target: &'a str) -> BoxFuture<'a, Result<()>> {
        let _ = target;
        Box::pin(std::future::ready(Err(Error::io(path, "link", "the storage has no links"))))
    }

    /// Opens a file for reading. The reader ignores bytes that are appended later.
    fn open<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Arc<dyn FileReader>>>;

    /// Opens a file for reads that bypass the system's page cache, if the storage supports that.
    /// For callers that have their own cache.
    fn open_uncached<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Arc<dyn FileReader>>> {
        self.open(path)
    }

    /// Renames a file or directory, atomically replacing an existing file of the new name.
    fn rename<'a>(&'a self, from: &'a FilePath, to: &'a FilePath) -> BoxFuture<'a, Result<()>>;

    /// Removes a file, or a directory with its contents. A missing path is not an error.
    fn delete<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<()>>;

    /// Removes an empty directory. A missing path is not an error. Storage for several processes
    /// checks and removes atomically, so that a late call removes nothing that another process has
    /// created meanwhile.
    ///
    /// # Errors
    /// [`Error::Io`] if the directory has entries.
    fn delete_empty_dir<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            match self.list(dir).await {
                Ok(entries) if entries.is_empty() => self.delete(dir).await,
                Ok(_) => Err(Error::io(dir, "delete", "the directory is not empty")),
                Err(Error::NotFound { .. }) => Ok(()),
                Err(error) => Err(error),
            }
        })
    }

    /// The status of `path`, or `None` if it does not exist.
    fn stat<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Option<FileStatus>>>;

    /// The entries of a directory, sorted by name.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the directory does not exist.
    fn list<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<Vec<FileStatus>>>;

    /// Creates a directory and its parents, and makes their names durable. Existing directories are
    /// not an error.
    fn make_dirs<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<()>>;

    /// Makes the names in a directory durable (HDFS: nothing to do).
    fn sync_dir<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<()>>;

    /// The space of the underlying disk; `None` if the storage has no size of its own.
    fn space(&self) -> BoxFuture<'_, Result<Option<DiskSpace>>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// On which hosts the files of a directory are; `None` if the storage does not report hosts.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the directory does not exist.
    fn file_hosts<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<Option<Vec<FileHosts>>>> {
        let _ = dir;
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Sets the storage policy of an existing directory, such as `ALL_SSD`: it names the disks for
    /// files that are created in the directory from now on, and in directories below that have no
    /// policy. Storage without policies of directories does nothing.
    ///
    /// An error must not fail the operation that the directory is for. So the storage logs the
    /// error, [counts](FileSystem::policy_counts) it, and keeps the old policy.
    fn set_storage_policy<'a>(&'a self, dir: &'a FilePath, policy: &'a str) -> BoxFuture<'a, ()> {
        let _ = (dir, policy);
        Box::pin(std::future::ready(()))
    }

    /// Requests that a file moves to the disks that the storage policy of its directory names; for
    /// a directory, all files in it. Returns immediately. The storage moves the files later, if it
    /// has a service that does so, and counts and logs errors.
    ///
    /// A policy applies when a file is written. So this is needed after a rename to a directory
    /// with another policy, and after a change of a policy.
    fn satisfy_storage_policy(&self, path: &FilePath) {
        let _ = path;
    }

    /// What was done with storage policies; `None` if directories have none.
    fn policy_counts(&self) -> Option<PolicyCounts> {
        None
    }

    /// Checks that the root path still refers to the directory that was opened.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the path does not exist, [`Error::RootReplaced`] if it refers to
    /// another directory or device: a later start would not find the data written now.
    fn check_root(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Creates a file of `bytes` bytes with allocated disk space and undefined contents.
    ///
    /// # Errors
    /// [`Error::NoSpace`], [`Error::AlreadyExists`]; a failed call leaves no file.
    fn allocate<'a>(&'a self, path: &'a FilePath, bytes: u64) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let mut writer = self.create(path, AccessPattern::Data).await?;
            let written = writer.append(vec![0; usize::try_from(bytes).unwrap_or(usize::MAX)].into()).await;
            drop(writer);
            if let Err(error) = written {
                self.delete(path).await?;
                return Err(error);
            }
            Ok(())
        })
    }

    /// Ensures that the current contents of the file survive power loss, and that no other process
    /// can continue writing it, if the storage can ensure that. HDFS: lease recovery. Local:
    /// fdatasync, while the lock of the root directory excludes other processes.
    ///
    /// Bytes that are read afterwards from the file of a dead process still exist after the next
    /// crash.
    fn fence<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Fence>>;

    /// Marks an existing directory as used by this process, until the result is dropped or the
    /// process ends for any reason. The mark follows a renamed directory. Returns `None` if the
    /// storage cannot show whether a process lives.
    ///
    /// # Errors
    /// [`Error::Locked`] if another process uses the directory.
    fn occupy<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<Option<Occupied>>> {
        let _ = dir;
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Whether a living process has [occupied](FileSystem::occupy) the directory. A missing
    /// directory is not occupied. Returns `None` if that is unknown.
    fn is_occupied<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<Option<bool>>> {
        let _ = dir;
        Box::pin(std::future::ready(Ok(None)))
    }
}

/// The mark of [`FileSystem::occupy`]; dropping it removes the mark.
pub type Occupied = Box<dyn std::any::Any + Send + Sync>;

/// An open file that can be read at any offset, also concurrently.
pub trait FileReader: Send + Sync + 'static {
    /// The path at the time of opening.
    fn path(&self) -> &FilePath;
    /// Length in bytes at the time of opening.
    fn len(&self) -> u64;
    /// Whether the file had no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Reads exactly `len` bytes from `offset`.
    ///
    /// # Errors
    /// [`Error::PastEnd`] if the file ends earlier; a read never returns fewer bytes.
    fn read_at(&self, offset: u64, len: usize) -> BoxFuture<'_, Result<Bytes>>;
    /// [`read_at`](FileReader::read_at) for the purpose `class`. A file system that does not order
    /// its requests ignores the class.
    ///
    /// # Errors
    /// Those of [`read_at`](FileReader::read_at).
    fn read_for(&self, class: IoClass, offset: u64, len: usize) -> BoxFuture<'_, Result<Bytes>> {
        let _ = class;
        self.read_at(offset, len)
    }
    /// Bytes that the result of a [`read_at`](FileReader::read_at) occupies on average in addition
    /// to its `len` bytes.
    fn read_overhead_bytes(&self) -> usize {
        0
    }
    /// Bytes that one call should read if the whole file is read in order. The default is as many
    /// as a local disk returns from the page cache without a pool thread. They stay in the CPU
    /// cache until they are checked.
    fn sequential_read_bytes(&self) -> usize {
        256 << 10
    }
}

/// An append-only file with one writer.
///
/// If it is dropped without [`FileWriter::close`], all appended bytes stay in the file, synced or
/// not.
pub trait FileWriter: Send + 'static {
    /// The path at the time of creation.
    fn path(&self) -> &FilePath;
    /// Bytes appended so far.
    fn len(&self) -> u64;
    /// Whether nothing has been appended yet.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Recommended size of the appends to a long file, in bytes.
    fn transfer_bytes(&self) -> usize {
        256 << 10
    }
    /// Replicas that the storage did not create. A log then continues in a new file after a while,
    /// because a file does not get them later while it is open.
    fn missing_replicas(&self) -> usize {
        0
    }
    /// Appends `bytes`.
    fn append(&mut self, bytes: Bytes) -> BoxFuture<'_, Result<()>>;
    /// Writes `bytes`, of which only the first `content_len` count as appended. The rest is an end
    /// mark: in a file with reserved zeros it shows readers where the content ends. The next append
    /// overwrites the end mark, and close truncates it.
    ///
    /// The end mark of an earlier append is overwritten last, or atomically with the other bytes.
    /// So if the process is killed during the write, readers find either that end mark, and ignore
    /// the bytes after it, or all new bytes. No end mark is written if [`FileWriter::reserve`] does
    /// nothing.
    fn append_with_end(&mut self, bytes: Bytes, content_len: usize) -> BoxFuture<'_, Result<()>> {
        self.append(bytes.slice(..content_len))
    }
    /// Returns when all appended bytes have the guarantee `durability`. Never retry a failed sync.
    fn sync(&mut self, durability: SyncLevel) -> BoxFuture<'_, Result<()>>;
    /// [`append_with_end`](FileWriter::append_with_end), then [`sync`](FileWriter::sync), combined
    /// where that is faster.
    fn append_and_sync(
        &mut self,
        bytes: Bytes,
        content_len: usize,
        durability: SyncLevel,
    ) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            self.append_with_end(bytes, content_len).await?;
            self.sync(durability).await
        })
    }
    /// Extends the file with zeros, so that at least `bytes` zeros follow the appended bytes.
    /// Appends overwrite the zeros without a change of the file length, which makes their syncs
    /// cheaper. Readers see the zeros that are left. Does nothing if the storage does not benefit.
    fn reserve(&mut self, bytes: u64) -> BoxFuture<'_, Result<()>>;
    /// Truncates unused reserved bytes and closes the file. Does not sync.
    fn close(self: Box<Self>) -> BoxFuture<'static, Result<()>>;
}
