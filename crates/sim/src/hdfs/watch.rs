//! A wrapper of the product's file system on HDFS that checks what a fence promises:
//!
//! * a fenced file is closed, and has all bytes that were acknowledged to its writer;
//! * nothing that is appended afterwards is acknowledged.
//!
//! The wrapper reads the model's namespace directly, without calls.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::BoxFuture;
use bytes::Bytes;
use fs::{
    DiskSpace, Fence, FileHosts, FilePath, FileReader, FileStatus, FileSystem, FileWriter, Purpose, Result,
    SyncLevel,
};
use hdfs::HdfsFileSystem;
use hdfs::simulated::Journal;

use super::lock;
use crate::scheduler::Scheduler;
use crate::timeline::Timeline;

/// What is known of the files of a world.
pub(super) struct FenceWatch {
    journal: Arc<Journal>,
    timeline: Arc<Timeline>,
    scheduler: Arc<Scheduler>,
    /// The weakest guarantee that counts: acknowledged bytes survive what happens in the world.
    durability: SyncLevel,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    // By the ids of their inodes.
    files: BTreeMap<u64, WatchedFile>,
    violations: Vec<String>,
}

#[derive(Default)]
struct WatchedFile {
    /// Bytes that were acknowledged to the writer.
    acked: u64,
    /// When a fence of the file ended.
    fenced: Option<Duration>,
}

impl FenceWatch {
    pub(super) fn new(
        journal: Arc<Journal>,
        timeline: Arc<Timeline>,
        scheduler: Arc<Scheduler>,
        durability: SyncLevel,
    ) -> Arc<FenceWatch> {
        Arc::new(FenceWatch { journal, timeline, scheduler, durability, state: Mutex::default() })
    }

    pub(super) fn check(&self) -> std::result::Result<(), String> {
        lock(&self.state).violations.first().map_or(Ok(()), |violation| Err(violation.clone()))
    }

    fn violate(&self, process: &str, invariant: &str, found: String) {
        let violation = format!("violated: {invariant}: {found} (by {process})");
        self.timeline.record(self.scheduler.now(), "hdfs", &violation);
        lock(&self.state).violations.push(violation);
    }

    /// A fence of a file has ended.
    fn end_fence(&self, process: &str, file_id: u64) {
        let Some(file) = self.journal.file_by_id(file_id) else { return };
        let acked = {
            let mut state = lock(&self.state);
            let watched = state.files.entry(file_id).or_default();
            watched.fenced.get_or_insert(self.scheduler.now());
            watched.acked
        };
        let event = format!("has fenced {} with {} bytes", file.path, file.len);
        self.timeline.record(self.scheduler.now(), process, &event);
        if file.is_open {
            self.violate(process, "a fenced file is closed", file.path.clone());
        }
        if file.len < acked {
            let found = format!("{} has {} bytes, but {acked} were acknowledged", file.path, file.len);
            self.violate(process, "a fenced file has all acknowledged bytes", found);
        }
    }

    /// `len` bytes of a file were acknowledged to its writer, by an operation that began at
    /// `began`.
    fn acknowledge(&self, process: &str, file_id: u64, len: u64, began: Duration) {
        let (before, fenced) = {
            let mut state = lock(&self.state);
            let watched = state.files.entry(file_id).or_default();
            let before = watched.acked;
            watched.acked = before.max(len);
            (before, watched.fenced)
        };
        let Some(fenced) = fenced else { return };
        let Some(file) = self.journal.file_by_id(file_id) else { return };
        if len > before && began > fenced {
            let found = format!("{} at {len} bytes, fenced at {fenced:?}", file.path);
            self.violate(process, "nothing is acknowledged after a fence", found);
        } else if len > file.len {
            let found = format!("{} has {} bytes, but {len} were acknowledged", file.path, file.len);
            self.violate(process, "a fenced file has all acknowledged bytes", found);
        }
    }
}

/// The file system of one process.
pub(super) struct WatchedFs {
    inner: HdfsFileSystem,
    watch: Arc<FenceWatch>,
    process: Arc<str>,
    root: &'static str,
    unfenced: bool,
}

impl WatchedFs {
    pub(super) fn new(
        inner: HdfsFileSystem,
        watch: &Arc<FenceWatch>,
        process: &str,
        root: &'static str,
        unfenced: bool,
    ) -> WatchedFs {
        WatchedFs { inner, watch: watch.clone(), process: process.into(), root, unfenced }
    }

    /// The id of the file at a path now.
    fn file_id(&self, path: &FilePath) -> Option<u64> {
        let full = format!("{}/{}", self.root, path.as_str());
        self.watch.journal.file(&full).map(|file| file.id)
    }

    /// The result of an operation, which is a detail of the timeline.
    fn recorded<'a, T: Send + 'a>(
        &'a self,
        operation: &'static str,
        path: &'a FilePath,
        result: BoxFuture<'a, Result<T>>,
    ) -> BoxFuture<'a, Result<T>> {
        Box::pin(async move {
            let result = result.await;
            self.record(operation, path, result.is_ok());
            result
        })
    }

    fn record(&self, operation: &str, path: &FilePath, is_ok: bool) {
        record(&self.watch, &self.process, operation, path, is_ok);
    }
}

fn record(watch: &FenceWatch, process: &str, operation: &str, path: &FilePath, is_ok: bool) {
    let now = watch.scheduler.now();
    watch.timeline.detail(now, process, operation, path.as_str(), &[u64::from(is_ok)]);
}

impl FileSystem for WatchedFs {
    fn create_for<'a>(
        &'a self,
        path: &'a FilePath,
        purpose: &'a Purpose,
    ) -> BoxFuture<'a, Result<Box<dyn FileWriter>>> {
        Box::pin(async move {
            let created = self.inner.create_for(path, purpose).await;
            self.record("create", path, created.is_ok());
            let (watch, process) = (self.watch.clone(), self.process.clone());
            // The file may have been renamed or deleted by now; then it is not watched.
            let file_id = self.file_id(path);
            Ok(Box::new(WatchedWriter { inner: created?, watch, process, file_id }) as Box<dyn FileWriter>)
        })
    }

    fn open<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Arc<dyn FileReader>>> {
        self.recorded("open", path, self.inner.open(path))
    }

    fn rename<'a>(&'a self, from: &'a FilePath, to: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        self.recorded("rename", from, self.inner.rename(from, to))
    }

    fn delete<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        self.recorded("delete", path, self.inner.delete(path))
    }

    fn delete_empty_dir<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        self.recorded("delete", dir, self.inner.delete_empty_dir(dir))
    }

    fn stat<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Option<FileStatus>>> {
        self.recorded("stat", path, self.inner.stat(path))
    }

    fn list<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<Vec<FileStatus>>> {
        self.recorded("list", dir, self.inner.list(dir))
    }

    fn make_dirs<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        self.recorded("make_dirs", dir, self.inner.make_dirs(dir))
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

    fn check_root(&self) -> BoxFuture<'_, Result<()>> {
        self.inner.check_root()
    }

    fn fence<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Fence>> {
        Box::pin(async move {
            let before = self.file_id(path);
            let fenced = match self.unfenced {
                true => Ok(Fence::Complete),
                false => self.inner.fence(path).await,
            };
            self.record("fence", path, fenced.is_ok());
            // If another file has the path now, it is unknown which one was fenced.
            if let Some(file_id) = before.filter(|_| fenced.is_ok() && self.file_id(path) == before) {
                self.watch.end_fence(&self.process, file_id);
            }
            fenced
        })
    }
}

struct WatchedWriter {
    inner: Box<dyn FileWriter>,
    watch: Arc<FenceWatch>,
    process: Arc<str>,
    file_id: Option<u64>,
}

impl WatchedWriter {
    fn end(&self, operation: &str, durability: SyncLevel, began: Duration, result: &Result<()>) {
        record(&self.watch, &self.process, operation, self.inner.path(), result.is_ok());
        let counts = durability == SyncLevel::Disk || self.watch.durability == SyncLevel::Visible;
        if let Some(file_id) = self.file_id.filter(|_| counts && result.is_ok()) {
            self.watch.acknowledge(&self.process, file_id, self.inner.len(), began);
        }
    }
}

impl FileWriter for WatchedWriter {
    fn path(&self) -> &FilePath {
        self.inner.path()
    }

    fn len(&self) -> u64 {
        self.inner.len()
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
            let began = self.watch.scheduler.now();
            let result = self.inner.sync(durability).await;
            self.end("sync", durability, began, &result);
            result
        })
    }

    fn append_and_sync(
        &mut self,
        bytes: Bytes,
        content_len: usize,
        durability: SyncLevel,
    ) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let began = self.watch.scheduler.now();
            let result = self.inner.append_and_sync(bytes, content_len, durability).await;
            self.end("append_and_sync", durability, began, &result);
            result
        })
    }

    fn reserve(&mut self, bytes: u64) -> BoxFuture<'_, Result<()>> {
        self.inner.reserve(bytes)
    }

    fn close(self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        let WatchedWriter { inner, watch, process, file_id } = *self;
        Box::pin(async move {
            let (began, path, len) = (watch.scheduler.now(), inner.path().clone(), inner.len());
            let closed = inner.close().await;
            record(&watch, &process, "close", &path, closed.is_ok());
            if let Some(file_id) = file_id.filter(|_| closed.is_ok()) {
                watch.acknowledge(&process, file_id, len, began);
            }
            closed
        })
    }
}
