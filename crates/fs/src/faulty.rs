//! Wraps any file system and makes it fail: the Nth call, calls at some path, a full disk, slow or hanging calls,
//! torn appends, flipped bits, failed syncs.
//!
//! What is to happen is a [`Plan`] of [`Rule`]s, which may change while files are open (all clones share it). Faults
//! are those that a true disk shows, so the contract holds in between: a file whose sync failed refuses everything
//! else, and a sync reported as failed may or may not have reached the disk ([`Fault::Fail`],
//! [`Fault::FailAfter`]). Loss of power is [`MemoryFs::crash`](crate::memory::MemoryFs::crash); both go together.

mod file;
mod plan;

use std::future::Future;
use std::sync::Arc;

use base::BoxFuture;

use self::file::{FaultyReader, FaultyWriter};
use self::plan::Shared;
pub use self::plan::{Fault, Operation, Plan, Rule};
use crate::{DiskSpace, Error, FilePath, FileReader, FileStatus, FileSystem, FileWriter, Result, Storage};

/// A [`FileSystem`] that fails as planned; clones share the plan. See the module's documentation.
#[derive(Clone)]
pub struct Faulty {
    inner: Arc<dyn FileSystem>,
    shared: Arc<Shared>,
}

impl Faulty {
    /// Wraps `inner`.
    pub fn new(inner: Arc<dyn FileSystem>, plan: Plan) -> Faulty {
        Faulty { inner, shared: Arc::new(Shared::new(plan)) }
    }

    /// Adds a rule from now on.
    pub fn add(&self, rule: Rule) {
        self.shared.plan().rules.push(rule);
    }

    /// Drops all rules and the limit of space. Files broken by a failed sync stay broken.
    pub fn heal(&self) {
        let mut plan = self.shared.plan();
        plan.rules.clear();
        plan.space_left = None;
        plan.disk.capacity = None;
    }

    /// Sets the capacity of the disk (`None`: no limit). Unlike with [`set_space`](Faulty::set_space), files that are
    /// deleted or cut free their room.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.shared.plan().disk.capacity = bytes;
    }

    /// Bytes of all files that were written through this file system.
    pub fn used(&self) -> u64 {
        self.shared.plan().disk.used()
    }

    /// How many more bytes fit (`None`: no limit). Removing files frees nothing; the test says when there is room.
    pub fn set_space(&self, bytes: Option<u64>) {
        self.shared.plan().space_left = bytes;
    }

    /// Calls of an operation so far, failed ones too: the N up to which a sweep over "the Nth call" runs.
    pub fn calls(&self, operation: Operation) -> u64 {
        self.shared.plan().calls.get(&operation).copied().unwrap_or(0)
    }

    /// Calls of all operations so far.
    pub fn all_calls(&self) -> u64 {
        self.shared.plan().calls.values().sum()
    }

    /// Faults that were met so far: a test of a fault sees that it happened.
    pub fn faults(&self) -> u64 {
        self.shared.plan().faults
    }
}

impl Shared {
    // Does `work`, unless the plan has another idea.
    async fn guarded<T>(
        &self,
        operation: Operation,
        path: &FilePath,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        match self.meet(operation, path).await {
            None | Some(Fault::Flip) => work.await,
            Some(Fault::FailAfter) => {
                work.await?;
                Err(planned(operation, path))
            }
            Some(Fault::NoSpace) => Err(Error::NoSpace { path: path.clone() }),
            Some(_) => Err(planned(operation, path)),
        }
    }
}

fn planned(operation: Operation, path: &FilePath) -> Error {
    Error::io(path, operation.name(), "planned fault")
}

impl FileSystem for Faulty {
    fn create<'a>(
        &'a self,
        path: &'a FilePath,
        storage: Storage,
    ) -> BoxFuture<'a, Result<Box<dyn FileWriter>>> {
        Box::pin(async move {
            self.shared.take_space(0, path)?;
            let created = self.shared.guarded(Operation::Create, path, self.inner.create(path, storage));
            let inner = created.await?;
            self.shared.grow(path, 0)?;
            Ok(Box::new(FaultyWriter::new(inner, self.shared.clone())) as Box<dyn FileWriter>)
        })
    }

    fn open<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Arc<dyn FileReader>>> {
        Box::pin(async move {
            let inner = self.shared.guarded(Operation::Open, path, self.inner.open(path)).await?;
            Ok(Arc::new(FaultyReader { inner, shared: self.shared.clone() }) as Arc<dyn FileReader>)
        })
    }

    fn rename<'a>(&'a self, from: &'a FilePath, to: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            self.shared.guarded(Operation::Rename, from, self.inner.rename(from, to)).await?;
            self.shared.plan().disk.rename(from, to);
            Ok(())
        })
    }

    fn delete<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            self.shared.guarded(Operation::Delete, path, self.inner.delete(path)).await?;
            self.shared.plan().disk.remove(path);
            Ok(())
        })
    }

    fn stat<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Option<FileStatus>>> {
        Box::pin(self.shared.guarded(Operation::Stat, path, self.inner.stat(path)))
    }

    fn list<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<Vec<FileStatus>>> {
        Box::pin(self.shared.guarded(Operation::List, dir, self.inner.list(dir)))
    }

    fn make_dirs<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            self.shared.take_space(0, dir)?;
            self.shared.guarded(Operation::MakeDirs, dir, self.inner.make_dirs(dir)).await
        })
    }

    fn sync_dir<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.shared.guarded(Operation::SyncDir, dir, self.inner.sync_dir(dir)))
    }

    fn fence<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.shared.guarded(Operation::Fence, path, self.inner.fence(path)))
    }

    fn space(&self) -> BoxFuture<'_, Result<Option<DiskSpace>>> {
        let plan = self.shared.plan();
        let found = plan.disk.capacity.map(|total_bytes| DiskSpace {
            total_bytes,
            free_bytes: total_bytes.saturating_sub(plan.disk.used()),
        });
        Box::pin(std::future::ready(Ok(found)))
    }

    fn check_root(&self) -> BoxFuture<'_, Result<()>> {
        self.inner.check_root()
    }
}
