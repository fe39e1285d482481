//! A wrapper for a directory that several processes use: it detects that another process has taken
//! over a log.
//!
//! A process takes over the logs of another one by renaming their directory. The other process may
//! only be paused. When it continues, its open files still refer to the renamed logs, and its
//! writes still succeed. So each sync of a log ends with a check whether the log is still at its
//! path. If it is not, the sync fails, and nothing that it covered is acknowledged.
//!
//! The order makes this safe. Bytes that were synced before a successful check were in the file
//! before the rename, and the process that took over reads the file after the rename.
//!
//! The other process can still append to such a log without an acknowledgement. So a fence does not
//! make the contents final ([`Fence::OpenFilesRemain`]): the process that takes over must copy a
//! log that may be open elsewhere, so that all later readers find the same entries.
//!
//! HDFS needs no such check: a client whose lease was taken over cannot write.

use std::sync::Arc;

use base::BoxFuture;
use bytes::Bytes;

use crate::{
    DiskSpace, Error, Fence, FileHosts, FilePath, FileReader, FileStatus, FileSystem, FileWriter, Occupied,
    PolicyCounts, Purpose, Result, Role, SyncLevel,
};

/// A file system whose logs detect a takeover.
pub struct Shared {
    inner: Arc<dyn FileSystem>,
}

impl Shared {
    /// Wraps `inner`.
    pub fn new(inner: Arc<dyn FileSystem>) -> Shared {
        Shared { inner }
    }
}

/// Whether an error of a log means that another process took over the log.
pub fn is_taken_over(error: &Error) -> bool {
    matches!(error, Error::TakenOver { .. })
}

impl FileSystem for Shared {
    fn create_for<'a>(
        &'a self,
        path: &'a FilePath,
        purpose: &'a Purpose,
    ) -> BoxFuture<'a, Result<Box<dyn FileWriter>>> {
        if purpose.role != Role::Log {
            return self.inner.create_for(path, purpose);
        }
        Box::pin(async move {
            let inner = self.inner.create_for(path, purpose).await?;
            let fs = self.inner.clone();
            Ok(Box::new(SharedWriter { inner, fs }) as Box<dyn FileWriter>)
        })
    }

    fn open<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Arc<dyn FileReader>>> {
        self.inner.open(path)
    }

    fn open_uncached<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Arc<dyn FileReader>>> {
        self.inner.open_uncached(path)
    }

    fn rename<'a>(&'a self, from: &'a FilePath, to: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        self.inner.rename(from, to)
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
        self.inner.make_dirs(dir)
    }

    fn sync_dir<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        self.inner.sync_dir(dir)
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

    fn fence<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Fence>> {
        Box::pin(async move { self.inner.fence(path).await.map(|_| Fence::OpenFilesRemain) })
    }

    fn occupy<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<Option<Occupied>>> {
        self.inner.occupy(dir)
    }

    fn is_occupied<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<Option<bool>>> {
        self.inner.is_occupied(dir)
    }
}

/// The writer of a log.
struct SharedWriter {
    inner: Box<dyn FileWriter>,
    fs: Arc<dyn FileSystem>,
}

/// Checks that a log is still at its path.
async fn check(fs: &dyn FileSystem, path: &FilePath) -> Result<()> {
    match fs.stat(path).await? {
        Some(status) if !status.is_dir => Ok(()),
        _ => Err(Error::TakenOver { path: path.clone() }),
    }
}

impl FileWriter for SharedWriter {
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
        self.inner.append(bytes)
    }

    fn append_with_end(&mut self, bytes: Bytes, content_len: usize) -> BoxFuture<'_, Result<()>> {
        self.inner.append_with_end(bytes, content_len)
    }

    fn sync(&mut self, durability: SyncLevel) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            self.inner.sync(durability).await?;
            let path = self.inner.path().clone();
            check(&*self.fs, &path).await
        })
    }

    fn append_and_sync(
        &mut self,
        bytes: Bytes,
        content_len: usize,
        durability: SyncLevel,
    ) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            self.inner.append_and_sync(bytes, content_len, durability).await?;
            let path = self.inner.path().clone();
            check(&*self.fs, &path).await
        })
    }

    fn reserve(&mut self, bytes: u64) -> BoxFuture<'_, Result<()>> {
        self.inner.reserve(bytes)
    }

    fn close(self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        self.inner.close()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AccessPattern;
    use crate::memory::MemoryFs;

    async fn log_in(fs: &Shared, dir: &FilePath, name: &str) -> Box<dyn FileWriter> {
        fs.create(&dir.join(name), AccessPattern::Log).await.unwrap()
    }

    #[tokio::test]
    async fn a_sync_after_the_takeover_fails_and_one_before_it_is_read() {
        let memory = MemoryFs::new();
        let fs = Shared::new(Arc::new(memory.clone()));
        let (dir, taken) = (FilePath::new("WALs/a"), FilePath::new("WALs/a-splitting"));
        fs.make_dirs(&dir).await.unwrap();
        let mut log = log_in(&fs, &dir, "log.1").await;
        log.append_and_sync("one".into(), 3, SyncLevel::Disk).await.unwrap();
        fs.rename(&dir, &taken).await.unwrap();
        assert_eq!(memory.contents(&taken.join("log.1")).unwrap(), b"one");
        let failed = log.append_and_sync("two".into(), 3, SyncLevel::Disk).await.unwrap_err();
        assert!(is_taken_over(&failed), "{failed}");
        assert!(is_taken_over(&log.sync(SyncLevel::Visible).await.unwrap_err()));
        let created = fs.create(&dir.join("log.2"), AccessPattern::Log).await;
        assert!(matches!(created.err(), Some(Error::NotFound { .. })), "no new log in the old directory");
    }

    #[tokio::test]
    async fn data_files_are_not_checked() {
        let fs = Shared::new(Arc::new(MemoryFs::new()));
        let dir = FilePath::new("data");
        fs.make_dirs(&dir).await.unwrap();
        let mut file = fs.create(&dir.join("f"), AccessPattern::Data).await.unwrap();
        fs.delete(&dir.join("f")).await.unwrap();
        file.append("x".into()).await.unwrap();
        file.sync(SyncLevel::Disk).await.unwrap();
    }
}
