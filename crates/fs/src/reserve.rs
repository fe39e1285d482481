//! Wraps any other file system and reserves part of the disk for writes that must not fail.
//!
//! After a log has accepted an edit, it must find space for it, because the edit is in a memstore
//! already. So some files are allocated in advance, in a separate directory. When a write finds the
//! disk full, they are deleted one by one until it succeeds. Logs, new files and directories may
//! use all of them, but the bytes of store files only half. When there is space again,
//! [`Reserve::refill`] allocates them again.
//!
//! Elsewhere: which writes are refused while space is short ([`Space::admit`]).

use std::sync::Arc;

use base::BoxFuture;
use bytes::Bytes;
use tracing::{info, warn};

use crate::space::Space;
use crate::{
    DiskSpace, Error, Fence, FileHosts, FilePath, FileReader, FileStatus, FileSystem, FileWriter, Occupied,
    PolicyCounts, Preferences, Purpose, Result, Role, SyncLevel,
};

/// Number of files of a whole reserve: the steps in which it is used.
const FILES: u64 = 16;
/// File sizes are multiples of this.
const STEP_BYTES: u64 = 64 << 10;

/// The pre-allocated files, and the [`Space`] of their disk.
pub struct Reserve {
    inner: Arc<dyn FileSystem>,
    dir: FilePath,
    file_bytes: u64,
    space: Arc<Space>,
    // The existing files. Locked while one is deleted or allocated.
    held: tokio::sync::Mutex<Vec<FilePath>>,
}

/// How much of the reserve a write may use.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Claim {
    All,
    Half,
}

impl Reserve {
    /// Opens the reserve of about `bytes` in `dir`, with the files of earlier runs. Allocates
    /// nothing yet.
    ///
    /// # Errors
    /// Those of the file system.
    pub async fn open(
        inner: Arc<dyn FileSystem>,
        dir: FilePath,
        bytes: u64,
        space: Arc<Space>,
    ) -> Result<Arc<Reserve>> {
        let file_bytes = (bytes / FILES).next_multiple_of(STEP_BYTES);
        let file_bytes = if bytes == 0 { 0 } else { file_bytes };
        let found = match inner.list(&dir).await {
            Ok(found) => found,
            Err(Error::NotFound { .. }) => Vec::new(),
            Err(error) => return Err(error),
        };
        let held: Vec<FilePath> = found.iter().map(|file| dir.join(&file.name)).collect();
        let reserve = Reserve { inner, dir, file_bytes, space, held: tokio::sync::Mutex::new(held) };
        reserve.space.set_reserve_bytes(found.iter().map(|file| file.len).sum());
        Ok(Arc::new(reserve))
    }

    /// The space of the disk.
    pub fn space(&self) -> &Arc<Space> {
        &self.space
    }

    /// Bytes of the complete reserve.
    pub fn wanted_bytes(&self) -> u64 {
        self.file_bytes * FILES
    }

    /// Whether part of the reserve is missing.
    pub fn is_used(&self) -> bool {
        self.space.reserve_bytes() < self.wanted_bytes()
    }

    /// Allocates missing files while the disk has more than `spare_bytes` free in addition. Stops
    /// without an error when it has less.
    ///
    /// # Errors
    /// Those of the file system, except a full disk.
    pub async fn refill(&self, spare_bytes: u64) -> Result<()> {
        let mut held = self.held.lock().await;
        if self.file_bytes == 0 || held.len() as u64 >= FILES {
            return Ok(());
        }
        self.inner.make_dirs(&self.dir).await?;
        for number in 0..FILES {
            let path = self.dir.join(&format!("{number:02}"));
            if held.contains(&path) {
                continue;
            }
            let free = self.inner.space().await?.map_or(u64::MAX, |space| space.free_bytes);
            if free < spare_bytes.saturating_add(self.file_bytes) {
                break;
            }
            match self.inner.allocate(&path, self.file_bytes).await {
                Ok(()) => held.push(path),
                Err(Error::NoSpace { .. }) => break,
                Err(error) => return Err(error),
            }
            self.space.set_reserve_bytes(held.len() as u64 * self.file_bytes);
        }
        Ok(())
    }

    /// Frees one more file for a write to `path`; returns whether there was one.
    async fn release(&self, claim: Claim, path: &FilePath) -> bool {
        let mut held = self.held.lock().await;
        let remaining = if claim == Claim::Half { FILES as usize / 2 } else { 0 };
        if held.len() <= remaining {
            self.space.record_full();
            return false;
        }
        let Some(file) = held.pop() else { return false };
        let deleted = self.inner.delete(&file).await;
        self.space.set_reserve_bytes(held.len() as u64 * self.file_bytes);
        self.space.record_full();
        match deleted {
            Ok(()) => info!(%path, left = held.len(), "disk is full: freed part of the reserve"),
            Err(error) => warn!(%file, %error, "cannot free part of the reserve"),
        }
        true
    }
}

/// A file system whose important writes use a [`Reserve`] when the disk is full. See the module's
/// documentation.
pub struct WithReserve {
    inner: Arc<dyn FileSystem>,
    reserve: Arc<Reserve>,
}

impl WithReserve {
    /// Wraps `inner`, with `reserve` on the same disk.
    pub fn new(inner: Arc<dyn FileSystem>, reserve: Arc<Reserve>) -> WithReserve {
        WithReserve { inner, reserve }
    }
}

/// Repeats `$call` while the disk is full and the reserve has files to free.
macro_rules! with_reserve {
    ($reserve:expr, $claim:expr, $path:expr, $call:expr) => {
        loop {
            match $call.await {
                Err(Error::NoSpace { .. }) if $reserve.release($claim, $path).await => {}
                other => break other,
            }
        }
    };
}

impl FileSystem for WithReserve {
    fn create_for<'a>(
        &'a self,
        path: &'a FilePath,
        purpose: &'a Purpose,
    ) -> BoxFuture<'a, Result<Box<dyn FileWriter>>> {
        Box::pin(async move {
            let created = with_reserve!(self.reserve, Claim::All, path, self.inner.create_for(path, purpose));
            let claim = if purpose.role == Role::Log { Claim::All } else { Claim::Half };
            let writer = ReservingWriter { inner: created?, reserve: self.reserve.clone(), claim };
            Ok(Box::new(writer) as Box<dyn FileWriter>)
        })
    }

    fn preferences(&self, purpose: &Purpose) -> Preferences {
        self.inner.preferences(purpose)
    }

    fn open<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Arc<dyn FileReader>>> {
        self.inner.open(path)
    }

    fn open_uncached<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Arc<dyn FileReader>>> {
        self.inner.open_uncached(path)
    }

    fn rename<'a>(&'a self, from: &'a FilePath, to: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move { with_reserve!(self.reserve, Claim::All, to, self.inner.rename(from, to)) })
    }

    fn delete<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        self.inner.delete(path)
    }

    fn delete_empty_dir<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        self.inner.delete_empty_dir(dir)
    }

    fn stat<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Option<FileStatus>>> {
        self.inner.stat(path)
    }

    fn list<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<Vec<FileStatus>>> {
        self.inner.list(dir)
    }

    fn make_dirs<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move { with_reserve!(self.reserve, Claim::All, dir, self.inner.make_dirs(dir)) })
    }

    fn sync_dir<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        self.inner.sync_dir(dir)
    }

    fn fence<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Fence>> {
        self.inner.fence(path)
    }

    fn occupy<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<Option<Occupied>>> {
        self.inner.occupy(dir)
    }

    fn is_occupied<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<Option<bool>>> {
        self.inner.is_occupied(dir)
    }

    fn space(&self) -> BoxFuture<'_, Result<Option<DiskSpace>>> {
        self.inner.space()
    }

    fn file_hosts<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<Option<Vec<FileHosts>>>> {
        self.inner.file_hosts(dir)
    }

    fn set_storage_policy<'a>(&'a self, dir: &'a FilePath, policy: &'a str) -> BoxFuture<'a, ()> {
        self.inner.set_storage_policy(dir, policy)
    }

    fn satisfy_storage_policy(&self, path: &FilePath) {
        self.inner.satisfy_storage_policy(path);
    }

    fn policy_counts(&self) -> Option<PolicyCounts> {
        self.inner.policy_counts()
    }

    fn check_root(&self) -> BoxFuture<'_, Result<()>> {
        self.inner.check_root()
    }

    fn allocate<'a>(&'a self, path: &'a FilePath, bytes: u64) -> BoxFuture<'a, Result<()>> {
        self.inner.allocate(path, bytes)
    }
}

struct ReservingWriter {
    inner: Box<dyn FileWriter>,
    reserve: Arc<Reserve>,
    claim: Claim,
}

impl FileWriter for ReservingWriter {
    fn path(&self) -> &FilePath {
        self.inner.path()
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn transfer_bytes(&self) -> usize {
        self.inner.transfer_bytes()
    }

    fn missing_replicas(&self) -> usize {
        self.inner.missing_replicas()
    }

    fn append(&mut self, bytes: Bytes) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            self.reserve.space.record_write(bytes.len() as u64);
            with_reserve!(
                self.reserve,
                self.claim,
                &self.inner.path().clone(),
                self.inner.append(bytes.clone())
            )
        })
    }

    fn append_with_end(&mut self, bytes: Bytes, content_len: usize) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            self.reserve.space.record_write(content_len as u64);
            with_reserve!(
                self.reserve,
                self.claim,
                &self.inner.path().clone(),
                self.inner.append_with_end(bytes.clone(), content_len)
            )
        })
    }

    fn sync(&mut self, durability: SyncLevel) -> BoxFuture<'_, Result<()>> {
        self.inner.sync(durability)
    }

    fn append_and_sync(
        &mut self,
        bytes: Bytes,
        content_len: usize,
        durability: SyncLevel,
    ) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            self.reserve.space.record_write(content_len as u64);
            with_reserve!(
                self.reserve,
                self.claim,
                &self.inner.path().clone(),
                self.inner.append_and_sync(bytes.clone(), content_len, durability)
            )
        })
    }

    fn reserve(&mut self, bytes: u64) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            // Reserved zeros save time, not data; when space is short, data needs it.
            let space = &self.reserve.space;
            if space.level() >= crate::space::Level::Low && space.free_bytes() < space.needed_bytes() * 2 {
                return Ok(());
            }
            self.inner.reserve(bytes).await
        })
    }

    fn close(self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        self.inner.close()
    }
}
