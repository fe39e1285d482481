//! An in-memory file system that takes snapshots ("pictures") at random moments. A picture is a
//! state that a power loss at that moment could leave.
//!
//! It can also lie: report a sync that did not happen. A checker is worthless if it does not detect
//! that.

use std::sync::{Arc, Mutex};

use base::BoxFuture;
use base::env::Random;
use bytes::Bytes;
use fs::memory::MemoryFs;
use fs::{Fence, FilePath, FileReader, FileStatus, FileSystem, FileWriter, Purpose, Result, SyncLevel};

/// The syncs that are skipped although success is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkippedSyncs {
    None,
    Files,
    Names,
}

/// Takes pictures before some of the calls that change something.
pub struct Camera<N> {
    pub memory: MemoryFs,
    shared: Arc<Shared<N>>,
    skipped_syncs: SkippedSyncs,
}

struct Shared<N> {
    memory: MemoryFs,
    random: Arc<dyn Random>,
    one_in: u64,
    expected: Box<dyn Fn() -> N + Send + Sync>,
    pictures: Mutex<Vec<(MemoryFs, N)>>,
}

impl<N: Send + 'static> Camera<N> {
    /// Takes a picture of `memory` before one in `one_in` changes. `expected` returns what the
    /// picture must contain.
    pub fn new(
        memory: MemoryFs,
        random: Arc<dyn Random>,
        one_in: u64,
        skipped_syncs: SkippedSyncs,
        expected: impl Fn() -> N + Send + Sync + 'static,
    ) -> Camera<N> {
        let pictures = Mutex::default();
        let shared =
            Shared { memory: memory.clone(), random, one_in, expected: Box::new(expected), pictures };
        Camera { memory, shared: Arc::new(shared), skipped_syncs }
    }

    /// The pictures taken so far, oldest first.
    pub fn take_pictures(&self) -> Vec<(MemoryFs, N)> {
        std::mem::take(&mut self.shared.pictures.lock().unwrap())
    }

    /// Takes another picture now.
    pub fn picture(&self) -> (MemoryFs, N) {
        self.shared.picture()
    }
}

impl<N> Shared<N> {
    fn picture(&self) -> (MemoryFs, N) {
        // The note comes first: what is acknowledged now is in every later image.
        let expected = (self.expected)();
        (self.memory.crash(&mut || self.random.next_u64()), expected)
    }

    fn before_change(&self) {
        if self.random.next_u64().is_multiple_of(self.one_in) {
            let picture = self.picture();
            self.pictures.lock().unwrap().push(picture);
        }
    }
}

impl<N: Send + 'static> FileSystem for Camera<N> {
    fn create_for<'a>(
        &'a self,
        path: &'a FilePath,
        purpose: &'a Purpose,
    ) -> BoxFuture<'a, Result<Box<dyn FileWriter>>> {
        Box::pin(async move {
            self.shared.before_change();
            let inner = self.memory.create_for(path, purpose).await?;
            let lies = self.skipped_syncs == SkippedSyncs::Files;
            Ok(Box::new(Writer { inner, shared: self.shared.clone(), lies }) as Box<dyn FileWriter>)
        })
    }

    fn open<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Arc<dyn FileReader>>> {
        self.memory.open(path)
    }

    fn rename<'a>(&'a self, from: &'a FilePath, to: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        self.shared.before_change();
        self.memory.rename(from, to)
    }

    fn delete<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        self.shared.before_change();
        self.memory.delete(path)
    }

    fn stat<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Option<FileStatus>>> {
        self.memory.stat(path)
    }

    fn list<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<Vec<FileStatus>>> {
        self.memory.list(dir)
    }

    fn make_dirs<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        self.shared.before_change();
        self.memory.make_dirs(dir)
    }

    fn sync_dir<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        self.shared.before_change();
        match self.skipped_syncs {
            SkippedSyncs::Names => Box::pin(std::future::ready(Ok(()))),
            _ => self.memory.sync_dir(dir),
        }
    }

    fn fence<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Fence>> {
        self.memory.fence(path)
    }
}

struct Writer<N> {
    inner: Box<dyn FileWriter>,
    shared: Arc<Shared<N>>,
    lies: bool,
}

impl<N: Send + 'static> FileWriter for Writer<N> {
    fn path(&self) -> &FilePath {
        self.inner.path()
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn append(&mut self, bytes: Bytes) -> BoxFuture<'_, Result<()>> {
        self.shared.before_change();
        self.inner.append(bytes)
    }

    fn sync(&mut self, durability: SyncLevel) -> BoxFuture<'_, Result<()>> {
        self.shared.before_change();
        if self.lies {
            return Box::pin(std::future::ready(Ok(())));
        }
        self.inner.sync(durability)
    }

    fn reserve(&mut self, bytes: u64) -> BoxFuture<'_, Result<()>> {
        self.shared.before_change();
        self.inner.reserve(bytes)
    }

    fn close(self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        self.shared.before_change();
        self.inner.close()
    }
}
