//! Wraps any file system and makes it as slow as a device of a given model: bandwidth, seeks,
//! latencies, queue depth, random pauses, and a bus shared with other devices.
//!
//! For tests and benchmarks only. In virtual time a run depends only on its inputs. In real time a
//! disk carries the model of devices that are slower than itself ([`Device::scaled`]).
//!
//! Each read, write and sync is a request. Requests to create, open, rename or delete a file, and
//! to sync a directory, take the latency of a call, or of a sync. Other calls are answered from
//! memory by most systems, and take no time.

mod bus;
mod device;
mod file;
mod model;
mod pauses;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::sync::Arc;

use base::BoxFuture;
use base::env::{Clock, Env};

pub use self::bus::Bus;
use self::device::Action;
pub use self::device::{DeviceCounters, PacedDevice};
use self::file::{PacedReader, PacedWriter};
pub use self::model::{Device, Stalls};
use crate::{
    DiskSpace, Fence, FileHosts, FilePath, FileReader, FileStatus, FileSystem, FileWriter, IoClass, Occupied,
    PolicyCounts, Purpose, Result,
};

/// A file system on a [`PacedDevice`]. See the module's documentation.
pub struct PacedFs {
    inner: Arc<dyn FileSystem>,
    clock: Arc<dyn Clock>,
    device: Arc<PacedDevice>,
}

impl PacedFs {
    /// Wraps `inner`. All file systems of a device must use the same clock.
    pub fn new(inner: Arc<dyn FileSystem>, env: &Env, device: Arc<PacedDevice>) -> PacedFs {
        PacedFs { inner, clock: env.clock.clone(), device }
    }

    /// The device.
    pub fn device(&self) -> &Arc<PacedDevice> {
        &self.device
    }

    async fn paced<T>(&self, action: Action, work: impl Future<Output = Result<T>>) -> Result<T> {
        // Names are synced for logs and for flushes; most of the other calls belong to reads.
        let class = if action == Action::Sync { IoClass::Log } else { IoClass::Read };
        self.device.serve(&*self.clock, class, action, work).await
    }

    fn reader(&self, inner: Arc<dyn FileReader>) -> Arc<dyn FileReader> {
        let (device, clock) = (self.device.clone(), self.clock.clone());
        Arc::new(PacedReader { inner, file: device.open_file(), device, clock })
    }
}

impl FileSystem for PacedFs {
    fn create_for<'a>(
        &'a self,
        path: &'a FilePath,
        purpose: &'a Purpose,
    ) -> BoxFuture<'a, Result<Box<dyn FileWriter>>> {
        let class = purpose.class();
        let access = purpose.access();
        Box::pin(async move {
            let create = self.inner.create_for(path, purpose);
            let inner = self.device.serve(&*self.clock, class, Action::Other, create).await?;
            let (device, clock) = (self.device.clone(), self.clock.clone());
            let file = device.open_file();
            let writer = PacedWriter { inner, device, clock, file, class, access, written_to: 0 };
            Ok(Box::new(writer) as Box<dyn FileWriter>)
        })
    }

    fn link<'a>(&'a self, path: &'a FilePath, target: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.paced(Action::Other, self.inner.link(path, target)))
    }

    fn open<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Arc<dyn FileReader>>> {
        Box::pin(async move { Ok(self.reader(self.paced(Action::Other, self.inner.open(path)).await?)) })
    }

    fn open_uncached<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Arc<dyn FileReader>>> {
        Box::pin(
            async move { Ok(self.reader(self.paced(Action::Other, self.inner.open_uncached(path)).await?)) },
        )
    }

    fn rename<'a>(&'a self, from: &'a FilePath, to: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.paced(Action::Other, self.inner.rename(from, to)))
    }

    fn delete<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.paced(Action::Other, self.inner.delete(path)))
    }

    fn delete_empty_dir<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.paced(Action::Other, self.inner.delete_empty_dir(dir)))
    }

    fn stat<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Option<FileStatus>>> {
        self.inner.stat(path)
    }

    fn list<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<Vec<FileStatus>>> {
        self.inner.list(dir)
    }

    fn make_dirs<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        self.inner.make_dirs(dir)
    }

    fn sync_dir<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.paced(Action::Sync, self.inner.sync_dir(dir)))
    }

    fn fence<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Fence>> {
        Box::pin(self.paced(Action::Sync, self.inner.fence(path)))
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
        Box::pin(self.paced(Action::Other, self.inner.allocate(path, bytes)))
    }
}
