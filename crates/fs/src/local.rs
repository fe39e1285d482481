//! A directory of this machine as a file system.
//!
//! Calls that may wait for the disk run on a bounded pool. A read whose pages are in the page cache
//! completes immediately on the calling thread. Files whose blocks the caller caches can be read
//! with direct I/O ([`LocalFs::with_direct_io`]), which the kernel performs asynchronously
//! (`local::aio`).
//!
//! Paths are resolved below a directory that is held open, so renaming the root or changing the
//! working directory does not redirect them. Only one process may use a directory at a time:
//! [`LocalFs::lock`] excludes others.

mod aio;
mod blocks;
mod direct;
mod handle;
mod reader;
mod tree;
mod writer;

use std::fmt;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use base::BoxFuture;
use base::pool::Pool;
use rustix::fs::{AtFlags, FallocateFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use self::direct::DirectReader;
use self::handle::{Handle, error_of};
use self::reader::LocalReader;
use self::writer::LocalWriter;
use crate::{
    AccessPattern, DiskSpace, Error, Fence, FilePath, FileReader, FileStatus, FileSystem, FileWriter,
    Occupied, Purpose, Result,
};

const DIR_FLAGS: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
// Reduced by the process's umask, as for HBase's own files.
const FILE_MODE: Mode = Mode::from_raw_mode(0o666);
const DIR_MODE: Mode = Mode::from_raw_mode(0o777);

/// A directory as a [`FileSystem`]; see the module's documentation.
#[derive(Clone)]
pub struct LocalFs {
    root: Arc<OwnedFd>,
    root_path: Arc<Path>,
    pool: Arc<Pool>,
    reads: Arc<reader::ReadPath>,
    direct_io: bool,
}

impl fmt::Debug for LocalFs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalFs").field("root", &self.root).finish_non_exhaustive()
    }
}

/// Excludes other processes from a root directory until it is dropped or the process ends.
#[derive(Debug)]
pub struct RootLock {
    _file: OwnedFd,
}

impl LocalFs {
    /// The file system below `root`, which must be a directory. Blocks; meant for process start.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the directory does not exist.
    pub fn new(root: &Path, pool: Arc<Pool>) -> Result<LocalFs> {
        let shown = FilePath::root();
        let opened = rustix::fs::open(root, DIR_FLAGS, Mode::empty()).map_err(|errno| match errno {
            Errno::NOENT | Errno::NOTDIR => Error::NotFound { path: shown },
            errno => Error::io(&shown, "open", format!("{}: {errno}", root.display())),
        })?;
        Ok(LocalFs {
            root: Arc::new(opened),
            root_path: root.into(),
            pool,
            reads: Arc::default(),
            direct_io: false,
        })
    }

    /// Enables direct I/O for [`FileSystem::open_uncached`], where the file system supports it.
    #[must_use]
    pub fn with_direct_io(self) -> LocalFs {
        LocalFs { direct_io: true, ..self }
    }

    /// Like [`LocalFs::new`], but creates `root` and its missing parents, durably.
    ///
    /// # Errors
    /// [`Error::Io`] if a directory cannot be created.
    pub fn create(root: &Path, pool: Arc<Pool>) -> Result<LocalFs> {
        let failed = |at: &Path, errno: Errno| {
            Error::io(&FilePath::root(), "make", format!("{}: {errno}", at.display()))
        };
        let mut missing: Vec<&Path> = Vec::new();
        for dir in root.ancestors().filter(|dir| !dir.as_os_str().is_empty()) {
            if dir.is_dir() {
                break;
            }
            missing.push(dir);
        }
        for dir in missing.into_iter().rev() {
            match rustix::fs::mkdir(dir, DIR_MODE) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(failed(dir, errno)),
            }
            let parent =
                dir.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let parent_fd =
                rustix::fs::open(parent, DIR_FLAGS, Mode::empty()).map_err(|errno| failed(parent, errno))?;
            sync_names(&parent_fd).map_err(|errno| failed(parent, errno))?;
        }
        LocalFs::new(root, pool)
    }

    /// Takes the lock file at `path`, creating it if it is missing. Does not wait for another
    /// holder.
    ///
    /// # Errors
    /// [`Error::Locked`] if another process holds the lock.
    pub fn lock(&self, path: &FilePath) -> Result<RootLock> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC;
        let failed = |errno| error_of(path, "lock", errno);
        let file = rustix::fs::openat(&self.root, os_path(path), flags, FILE_MODE).map_err(failed)?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(RootLock { _file: file }),
            Err(Errno::WOULDBLOCK) => Err(Error::Locked { path: path.clone() }),
            Err(errno) => Err(failed(errno)),
        }
    }

    // Runs `job` on the pool, with the root and the path.
    fn run<T: Send + 'static>(
        &self,
        path: &FilePath,
        job: impl FnOnce(&OwnedFd, &FilePath) -> Result<T> + Send + 'static,
    ) -> BoxFuture<'static, Result<T>> {
        let (root, path) = (self.root.clone(), path.clone());
        self.pool.run(move || job(&root, &path))
    }
}

// The path in the system's form, relative to the root.
fn os_path(path: &FilePath) -> &str {
    if path.as_str().is_empty() { "." } else { path.as_str() }
}

// Makes the names in an open directory durable.
fn sync_names(dir: impl AsFd) -> rustix::io::Result<()> {
    match rustix::fs::fsync(dir) {
        // The file system does not support the sync of directories; such file systems make names
        // durable by themselves.
        Err(Errno::INVAL) => Ok(()),
        other => other,
    }
}

fn sync_dir(root: &OwnedFd, path: &FilePath) -> Result<()> {
    let failed = |errno| error_of(path, "sync directory", errno);
    let dir = rustix::fs::openat(root, os_path(path), DIR_FLAGS, Mode::empty()).map_err(failed)?;
    sync_names(&dir).map_err(failed)
}

fn sync_file(root: &OwnedFd, path: &FilePath) -> Result<()> {
    let failed = |errno| error_of(path, "sync", errno);
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(root, os_path(path), flags, Mode::empty()).map_err(failed)?;
    rustix::fs::fdatasync(&file).map_err(failed)
}

/// Opens a file for reading; returns the file and its length.
fn open(root: &OwnedFd, path: &FilePath, how: OFlags) -> Result<(OwnedFd, u64)> {
    let failed = |errno| error_of(path, "open", errno);
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | how;
    let file = rustix::fs::openat(root, os_path(path), flags, Mode::empty()).map_err(failed)?;
    let status = tree::status(String::new(), &rustix::fs::fstat(&file).map_err(failed)?);
    if status.is_dir {
        return Err(Error::io(path, "open", "is a directory"));
    }
    Ok((file, status.len))
}

fn stat(root: &OwnedFd, path: &FilePath) -> Result<Option<FileStatus>> {
    tree::status_at(root, os_path(path), path.name().to_owned())
        .map_err(|errno| error_of(path, "stat", errno))
}

fn rename(root: &OwnedFd, from: &FilePath, to: &FilePath) -> Result<()> {
    let moved = stat(root, from)?.ok_or_else(|| Error::NotFound { path: from.clone() })?;
    // The system would let a directory replace an empty one; the contract only lets a file replace
    // a file.
    let replaced = if from == to { None } else { stat(root, to)? };
    if replaced.is_some_and(|replaced| moved.is_dir || replaced.is_dir) {
        return Err(Error::AlreadyExists { path: to.clone() });
    }
    rustix::fs::renameat(root, os_path(from), root, os_path(to)).map_err(|errno| match errno {
        // The source existed a moment ago, so the target's directory is missing.
        Errno::NOENT | Errno::NOTDIR => Error::NotFound { path: to.clone() },
        errno => error_of(from, "rename", errno),
    })
}

fn make_dirs(root: &OwnedFd, path: &FilePath) -> Result<()> {
    let mut at = FilePath::root();
    for name in path.as_str().split('/').filter(|name| !name.is_empty()) {
        let parent = at.clone();
        at = at.join(name);
        match rustix::fs::mkdirat(root, os_path(&at), DIR_MODE) {
            Ok(()) => {}
            Err(Errno::EXIST) if stat(root, &at)?.is_some_and(|there| there.is_dir) => {}
            Err(errno) => return Err(error_of(&at, "make directory", errno)),
        }
        // Sync also if the directory existed: its creator may have died before it was durable.
        sync_dir(root, &parent)?;
    }
    Ok(())
}

impl FileSystem for LocalFs {
    fn create_for<'a>(
        &'a self,
        path: &'a FilePath,
        purpose: &'a Purpose,
    ) -> BoxFuture<'a, Result<Box<dyn FileWriter>>> {
        let access = purpose.access();
        Box::pin(async move {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let opened = self.run(path, move |root, path| {
                let file = rustix::fs::openat(root, os_path(path), flags, FILE_MODE)
                    .map_err(|errno| error_of(path, "create", errno))?;
                // A log is written with direct I/O where possible, else through the page cache.
                let direct = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::DIRECT;
                let uncached = (access == AccessPattern::Log)
                    .then(|| rustix::fs::openat(root, os_path(path), direct, FILE_MODE).ok());
                Ok((file, uncached.flatten()))
            });
            let (file, uncached) = opened.await?;
            let handle = Handle::with_uncached(file, uncached, self.pool.clone());
            Ok(Box::new(LocalWriter::new(handle, path.clone(), access)) as Box<dyn FileWriter>)
        })
    }

    fn open<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Arc<dyn FileReader>>> {
        Box::pin(async move {
            let (file, len) = self.run(path, |root, path| open(root, path, OFlags::empty())).await?;
            let handle = Handle::new(file, self.pool.clone());
            Ok(Arc::new(LocalReader::new(handle, path.clone(), len, self.reads.clone()))
                as Arc<dyn FileReader>)
        })
    }

    fn open_uncached<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Arc<dyn FileReader>>> {
        if !self.direct_io {
            return self.open(path);
        }
        Box::pin(async move {
            let opened = self.run(path, |root, path| {
                let opened = open(root, path, OFlags::DIRECT).ok();
                Ok(opened.filter(|(file, _)| direct::can_read(file)))
            });
            // If direct I/O is not possible, open the file normally. Any other error then occurs
            // again, and is returned.
            let Some((file, len)) = opened.await? else { return self.open(path).await };
            let handle = Handle::new(file, self.pool.clone());
            Ok(Arc::new(DirectReader::new(handle, path.clone(), len)) as Arc<dyn FileReader>)
        })
    }

    /// A symbolic link. Programs that read the directory without Grampus follow it.
    fn link<'a>(&'a self, path: &'a FilePath, target: &'a str) -> BoxFuture<'a, Result<()>> {
        let target = target.to_owned();
        Box::pin(async move {
            self.run(path, move |root, path| {
                rustix::fs::symlinkat(target, root, os_path(path))
                    .map_err(|errno| error_of(path, "link", errno))
            })
            .await
        })
    }

    fn rename<'a>(&'a self, from: &'a FilePath, to: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        let to = to.clone();
        Box::pin(async move { self.run(from, move |root, from| rename(root, from, &to)).await })
    }

    fn delete<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move { self.run(path, tree::delete).await })
    }

    fn delete_empty_dir<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move { self.run(dir, tree::delete_empty_dir).await })
    }

    fn stat<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Option<FileStatus>>> {
        Box::pin(async move { self.run(path, stat).await })
    }

    fn list<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<Vec<FileStatus>>> {
        Box::pin(async move { self.run(dir, tree::list).await })
    }

    fn make_dirs<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move { self.run(dir, make_dirs).await })
    }

    fn sync_dir<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move { self.run(dir, sync_dir).await })
    }

    fn fence<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Fence>> {
        // The lock of the root directory excludes other processes, so only the bytes must be made
        // durable. For a directory without such a lock, the wrapper `shared` corrects the result.
        Box::pin(async move { self.run(path, sync_file).await.map(|()| Fence::Complete) })
    }

    fn occupy<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<Option<Occupied>>> {
        Box::pin(async move {
            match self.run(dir, try_lock).await? {
                Some(lock) => Ok(Some(Box::new(lock) as Occupied)),
                None => Err(Error::Locked { path: dir.clone() }),
            }
        })
    }

    fn is_occupied<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<Option<bool>>> {
        Box::pin(async move {
            match self.run(dir, try_lock).await {
                Ok(lock) => Ok(Some(lock.is_none())),
                Err(Error::NotFound { .. }) => Ok(Some(false)),
                Err(error) => Err(error),
            }
        })
    }

    fn space(&self) -> BoxFuture<'_, Result<Option<DiskSpace>>> {
        self.run(&FilePath::root(), |root, path| {
            let found = rustix::fs::fstatvfs(root).map_err(|errno| error_of(path, "statvfs", errno))?;
            let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
            let (total_bytes, free_bytes) = (bytes(found.f_blocks), bytes(found.f_bavail));
            // A file system without statistics (some network mounts) reports zeros.
            Ok((total_bytes > 0).then_some(DiskSpace { total_bytes, free_bytes }))
        })
    }

    fn check_root(&self) -> BoxFuture<'_, Result<()>> {
        let root_path = self.root_path.clone();
        self.run(&FilePath::root(), move |root, path| check_root(root, &root_path, path))
    }

    fn allocate<'a>(&'a self, path: &'a FilePath, bytes: u64) -> BoxFuture<'a, Result<()>> {
        self.run(path, move |root, path| allocate(root, path, bytes))
    }
}

/// Locks a directory for this process; `None` if another process has locked it. The system removes
/// the lock when the descriptor is closed, also by the end of the process.
fn try_lock(root: &OwnedFd, dir: &FilePath) -> Result<Option<OwnedFd>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(root, os_path(dir), flags, Mode::empty());
    let opened = opened.map_err(|errno| error_of(dir, "open", errno))?;
    match rustix::fs::flock(&opened, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(opened)),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(errno) => Err(error_of(dir, "lock", errno)),
    }
}

/// Compares the open directory with the one that its path refers to now.
fn check_root(root: &OwnedFd, root_path: &Path, path: &FilePath) -> Result<()> {
    let opened = rustix::fs::fstat(root).map_err(|errno| error_of(path, "stat", errno))?;
    let found = rustix::fs::stat(root_path).map_err(|errno| error_of(path, "stat", errno))?;
    if (opened.st_dev, opened.st_ino) != (found.st_dev, found.st_ino) {
        return Err(Error::RootReplaced { root: root_path.display().to_string() });
    }
    Ok(())
}

fn allocate(root: &OwnedFd, path: &FilePath, bytes: u64) -> Result<()> {
    let failed = |errno| error_of(path, "allocate", errno);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let file = rustix::fs::openat(root, os_path(path), flags, FILE_MODE).map_err(failed)?;
    let allocated = match rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, bytes) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => writer::write_zeros(&file, bytes),
        other => other,
    };
    allocated.map_err(|errno| {
        // Remove the empty or partial file: a failed call leaves no file.
        let _ = rustix::fs::unlinkat(root, os_path(path), AtFlags::empty());
        failed(errno)
    })
}
