//! Wraps any file system and orders the requests of its device by their [`IoClass`].
//!
//! * A request of a log starts immediately. At the device it meets only the requests that are
//!   already in service, whose number the [`DeviceClass`] limits.
//! * Other requests wait until the device has a slot, the most urgent class first. While requests
//!   of a less urgent class wait, that class earns a minimum share of the device.
//! * Background classes and writers have limits of their own.
//! * Requests that only use names (create, open, rename, list) do not wait. They count for
//!   [`DeviceQueue::is_stuck`].
//!
//! The [`DeviceQueue`] measures the device on the way: speed, latency, errors, and the expected
//! completion of a new request.
//!
//! Appends to a local file reach the page cache, and the device only later. The measurement takes
//! this into account: an append that is faster than any device of the class counts when the file is
//! synced.
//!
//! The wrapper belongs directly on the storage, below [`reserve`](crate::reserve) and
//! [`shared`](crate::shared).

mod device_class;
mod file;
mod queue;
mod request;
mod speed;
#[cfg(test)]
mod tests;
mod waiting;

use std::future::Future;
use std::sync::Arc;

use base::BoxFuture;

pub use self::device_class::DeviceClass;
use self::file::{ScheduledReader, ScheduledWriter};
pub use self::queue::{DeviceLoad, DeviceQueue};
use self::request::{Action, Request};
use crate::{
    DiskSpace, Fence, FileHosts, FilePath, FileReader, FileStatus, FileSystem, FileWriter, IoClass, Occupied,
    PolicyCounts, Purpose, Result,
};

/// A file system whose requests a [`DeviceQueue`] orders. See the module's documentation.
pub struct ScheduledFs {
    inner: Arc<dyn FileSystem>,
    queue: Arc<DeviceQueue>,
}

impl ScheduledFs {
    /// Wraps `inner`, which is on the device of `queue`.
    pub fn new(inner: Arc<dyn FileSystem>, queue: Arc<DeviceQueue>) -> ScheduledFs {
        ScheduledFs { inner, queue }
    }

    /// The queue of the device.
    pub fn queue(&self) -> &Arc<DeviceQueue> {
        &self.queue
    }

    async fn names<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        self.queue.run(Request::without_bytes(IoClass::Read, Action::Names), work).await.0
    }

    /// A sync of names or of a file without a writer: a step in the life of a log, or of a flush.
    async fn sync<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        self.queue.run(Request::without_bytes(IoClass::Log, Action::Sync), work).await.0
    }

    fn reader(&self, inner: Arc<dyn FileReader>) -> Arc<dyn FileReader> {
        let (queue, file) = (self.queue.clone(), self.queue.open_file());
        Arc::new(ScheduledReader { inner, queue, file })
    }
}

impl FileSystem for ScheduledFs {
    fn create_for<'a>(
        &'a self,
        path: &'a FilePath,
        purpose: &'a Purpose,
    ) -> BoxFuture<'a, Result<Box<dyn FileWriter>>> {
        let class = purpose.class();
        Box::pin(async move {
            let inner = self.names(self.inner.create_for(path, purpose)).await?;
            let writer = ScheduledWriter::new(inner, self.queue.clone(), class);
            Ok(Box::new(writer) as Box<dyn FileWriter>)
        })
    }

    fn link<'a>(&'a self, path: &'a FilePath, target: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.names(self.inner.link(path, target)))
    }

    fn open<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Arc<dyn FileReader>>> {
        Box::pin(async move { Ok(self.reader(self.names(self.inner.open(path)).await?)) })
    }

    fn open_uncached<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Arc<dyn FileReader>>> {
        Box::pin(async move { Ok(self.reader(self.names(self.inner.open_uncached(path)).await?)) })
    }

    fn rename<'a>(&'a self, from: &'a FilePath, to: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.names(self.inner.rename(from, to)))
    }

    fn delete<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.names(self.inner.delete(path)))
    }

    fn delete_empty_dir<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.names(self.inner.delete_empty_dir(dir)))
    }

    fn stat<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Option<FileStatus>>> {
        Box::pin(self.names(self.inner.stat(path)))
    }

    fn list<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<Vec<FileStatus>>> {
        Box::pin(self.names(self.inner.list(dir)))
    }

    fn make_dirs<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.names(self.inner.make_dirs(dir)))
    }

    fn sync_dir<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.sync(self.inner.sync_dir(dir)))
    }

    fn fence<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Fence>> {
        Box::pin(self.sync(self.inner.fence(path)))
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
        Box::pin(self.names(self.inner.allocate(path, bytes)))
    }
}
