//! Wraps any other file system and keeps part of the disk for writes that must not fail.
//!
//! Once a log has accepted an edit, it must find room for it: the edit is in a memstore already. So some files are
//! allocated ahead, in a directory of their own. When a write finds the disk full, they are deleted one by one until
//! it succeeds. Logs, new files and directories may use all of them, bytes of store files only half. When there is
//! room again, [`Reserve::refill`] allocates them once more.
//!
//! Not here: who is refused while space is short ([`Space::admit`]).

use std::sync::Arc;

use base::BoxFuture;
use bytes::Bytes;
use tracing::{info, warn};

use crate::space::Space;
use crate::{
    DiskSpace, Error, FilePath, FileReader, FileStatus, FileSystem, FileWriter, Result, Storage, Sync,
};

/// Files of a whole reserve: the steps in which it is used.
const FILES: u64 = 16;
/// Sizes of files are multiples of this.
const STEP_BYTES: u64 = 64 << 10;

/// Files that are allocated ahead, and the [`Space`] of the disk they are on.
pub struct Reserve {
    inner: Arc<dyn FileSystem>,
    dir: FilePath,
    file_bytes: u64,
    space: Arc<Space>,
    // Those that are there. Held while one is deleted or allocated.
    held: tokio::sync::Mutex<Vec<FilePath>>,
}

/// What a write may use.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Claim {
    All,
    Half,
}

impl Reserve {
    /// The reserve of about `bytes` in `dir`, as earlier runs left it. Allocates nothing yet.
    ///
    /// # Errors
    /// What the file system reports.
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

    /// Bytes of the whole reserve.
    pub fn wanted_bytes(&self) -> u64 {
        self.file_bytes * FILES
    }

    /// Whether part of it was used.
    pub fn is_used(&self) -> bool {
        self.space.reserve_bytes() < self.wanted_bytes()
    }

    /// Allocates what is missing, for as long as the disk has `spare_bytes` more than that free. Ends quietly where it
    /// has not.
    ///
    /// # Errors
    /// What the file system reports other than a full disk.
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

    /// Frees one more file for a write to `path`; whether there was one.
    async fn release(&self, claim: Claim, path: &FilePath) -> bool {
        let mut held = self.held.lock().await;
        let kept = if claim == Claim::Half { FILES as usize / 2 } else { 0 };
        if held.len() <= kept {
            self.space.found_full();
            return false;
        }
        let Some(file) = held.pop() else { return false };
        let deleted = self.inner.delete(&file).await;
        self.space.set_reserve_bytes(held.len() as u64 * self.file_bytes);
        self.space.found_full();
        match deleted {
            Ok(()) => info!(%path, left = held.len(), "the disk is full: freed a part of the reserve"),
            Err(error) => warn!(%file, %error, "a part of the reserve cannot be freed"),
        }
        true
    }
}

/// A file system whose important writes use a [`Reserve`] when the disk is full. See the module's documentation.
pub struct WithReserve {
    inner: Arc<dyn FileSystem>,
    reserve: Arc<Reserve>,
}

impl WithReserve {
    /// `inner`, with `reserve` on the same disk.
    pub fn new(inner: Arc<dyn FileSystem>, reserve: Arc<Reserve>) -> WithReserve {
        WithReserve { inner, reserve }
    }
}

/// Repeats `$call` as long as the disk is full and the reserve has something to free.
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
    fn create<'a>(
        &'a self,
        path: &'a FilePath,
        storage: Storage,
    ) -> BoxFuture<'a, Result<Box<dyn FileWriter>>> {
        Box::pin(async move {
            let created = with_reserve!(self.reserve, Claim::All, path, self.inner.create(path, storage));
            let claim = if storage == Storage::Log { Claim::All } else { Claim::Half };
            let writer = ReservingWriter { inner: created?, reserve: self.reserve.clone(), claim };
            Ok(Box::new(writer) as Box<dyn FileWriter>)
        })
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

    fn fence<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        self.inner.fence(path)
    }

    fn space(&self) -> BoxFuture<'_, Result<Option<DiskSpace>>> {
        self.inner.space()
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

    fn append(&mut self, bytes: Bytes) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            self.reserve.space.wrote(bytes.len() as u64);
            with_reserve!(
                self.reserve,
                self.claim,
                &self.inner.path().clone(),
                self.inner.append(bytes.clone())
            )
        })
    }

    fn append_with_end(&mut self, bytes: Bytes, kept: usize) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            self.reserve.space.wrote(kept as u64);
            with_reserve!(
                self.reserve,
                self.claim,
                &self.inner.path().clone(),
                self.inner.append_with_end(bytes.clone(), kept)
            )
        })
    }

    fn sync(&mut self, reach: Sync) -> BoxFuture<'_, Result<()>> {
        self.inner.sync(reach)
    }

    fn append_and_sync(&mut self, bytes: Bytes, kept: usize, reach: Sync) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            self.reserve.space.wrote(kept as u64);
            with_reserve!(
                self.reserve,
                self.claim,
                &self.inner.path().clone(),
                self.inner.append_and_sync(bytes.clone(), kept, reach)
            )
        })
    }

    fn reserve(&mut self, bytes: u64) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            // Zeros ahead save time, not data: where space is short they would take what is needed for data.
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
