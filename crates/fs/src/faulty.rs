//! Wraps any file system and injects faults: the Nth call fails, calls at some path fail, the disk
//! is full, calls are slow or hang, appends are torn, bits are flipped, syncs fail.
//!
//! A [`Plan`] of [`Rule`]s defines the faults. It may change while files are open; all clones share
//! it. Faults are those of real disks, so the contract still holds. A file whose sync failed
//! refuses all further calls except close. A sync reported as failed may or may not have reached
//! the disk ([`Fault::Fail`], [`Fault::FailAfter`]).
//! [`MemoryFs::crash`](crate::memory::MemoryFs::crash) simulates power loss; both can be combined.

mod file;
mod plan;

use std::future::Future;
use std::sync::Arc;

use base::BoxFuture;

use self::file::{FaultyReader, FaultyWriter};
use self::plan::Shared;
pub use self::plan::{Fault, Operation, Plan, Rule};
use crate::{
    DiskSpace, Error, Fence, FileHosts, FilePath, FileReader, FileStatus, FileSystem, FileWriter,
    PolicyCounts, Purpose, Result,
};

/// A [`FileSystem`] with planned faults; clones share the plan. See the module's documentation.
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

    /// Adds a rule, effective immediately.
    pub fn add(&self, rule: Rule) {
        self.shared.plan().rules.push(rule);
    }

    /// Removes all rules and space limits, and lets new files have all replicas. Files broken by a
    /// failed sync stay broken.
    pub fn heal(&self) {
        let mut plan = self.shared.plan();
        plan.rules.clear();
        plan.space_left = None;
        plan.disk.capacity = None;
        plan.missing_replicas = 0;
    }

    /// Sets the capacity of the disk (`None`: unlimited). Unlike with
    /// [`set_space`](Faulty::set_space), deleting or truncating files frees space.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.shared.plan().disk.capacity = bytes;
    }

    /// Total bytes of all files written through this file system.
    pub fn used(&self) -> u64 {
        self.shared.plan().disk.used()
    }

    /// Sets how many more bytes fit (`None`: unlimited). Removing files frees nothing; the test
    /// decides when there is space.
    pub fn set_space(&self, bytes: Option<u64>) {
        self.shared.plan().space_left = bytes;
    }

    /// Sets how many replicas new files lack.
    pub fn set_missing_replicas(&self, replicas: usize) {
        self.shared.plan().missing_replicas = replicas;
    }

    /// Number of calls of an operation so far, including failed ones: the upper limit of N for a
    /// sweep over "the Nth call".
    pub fn calls(&self, operation: Operation) -> u64 {
        self.shared.plan().calls.get(&operation).copied().unwrap_or(0)
    }

    /// Calls of all operations so far.
    pub fn all_calls(&self) -> u64 {
        self.shared.plan().calls.values().sum()
    }

    /// Number of faults injected so far, so that a test can check that its fault happened.
    pub fn faults(&self) -> u64 {
        self.shared.plan().faults
    }
}

impl Shared {
    // Does `work` unless the plan injects a fault.
    async fn guarded<T>(
        &self,
        operation: Operation,
        path: &FilePath,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        match self.next_fault(operation, path).await {
            None | Some(Fault::Flip) => work.await,
            Some(Fault::FailAfter) => {
                work.await?;
                Err(planned(operation, path))
            }
            Some(Fault::NoSpace) => Err(Error::NoSpace { path: path.clone() }),
            Some(Fault::VolumeFull) => Err(Error::VolumeFull { path: path.clone() }),
            Some(_) => Err(planned(operation, path)),
        }
    }
}

fn planned(operation: Operation, path: &FilePath) -> Error {
    Error::io(path, operation.name(), "planned fault")
}

impl FileSystem for Faulty {
    fn create_for<'a>(
        &'a self,
        path: &'a FilePath,
        purpose: &'a Purpose,
    ) -> BoxFuture<'a, Result<Box<dyn FileWriter>>> {
        Box::pin(async move {
            self.shared.take_space(0, path)?;
            let created = self.shared.guarded(Operation::Create, path, self.inner.create_for(path, purpose));
            let inner = created.await?;
            self.shared.grow(path, 0)?;
            Ok(Box::new(FaultyWriter::new(inner, self.shared.clone())) as Box<dyn FileWriter>)
        })
    }

    fn link<'a>(&'a self, path: &'a FilePath, target: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.shared.guarded(Operation::Create, path, self.inner.link(path, target)))
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

    fn delete_empty_dir<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.shared.guarded(Operation::Delete, dir, self.inner.delete_empty_dir(dir)))
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

    fn fence<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Fence>> {
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
        Box::pin(async move {
            let root = FilePath::root();
            self.shared.guarded(Operation::Stat, &root, self.inner.check_root()).await
        })
    }
}
