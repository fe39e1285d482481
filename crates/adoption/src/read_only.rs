//! A file system that refuses every change.

use std::sync::Arc;

use base::BoxFuture;
use fs::{
    DiskSpace, Error, Fence, FileHosts, FilePath, FileReader, FileStatus, FileSystem, FileWriter, Purpose,
    Result,
};

/// Reads another file system. Every call that would change something fails, except
/// [`fence`](FileSystem::fence), which does nothing: logs can be scanned as they are.
pub struct ReadOnly(pub Arc<dyn FileSystem>);

fn refused<T: Send + 'static>(path: &FilePath, operation: &'static str) -> BoxFuture<'static, Result<T>> {
    let error = Error::io(path, operation, "the directory is only inspected");
    Box::pin(std::future::ready(Err(error)))
}

impl FileSystem for ReadOnly {
    fn create_for<'a>(
        &'a self,
        path: &'a FilePath,
        _purpose: &'a Purpose,
    ) -> BoxFuture<'a, Result<Box<dyn FileWriter>>> {
        refused(path, "create")
    }

    fn open<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Arc<dyn FileReader>>> {
        self.0.open(path)
    }

    fn open_uncached<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Arc<dyn FileReader>>> {
        self.0.open_uncached(path)
    }

    fn rename<'a>(&'a self, from: &'a FilePath, _to: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        refused(from, "rename")
    }

    fn delete<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        refused(path, "delete")
    }

    fn stat<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Option<FileStatus>>> {
        self.0.stat(path)
    }

    fn list<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<Vec<FileStatus>>> {
        self.0.list(dir)
    }

    fn make_dirs<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        refused(dir, "make directory")
    }

    fn sync_dir<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        refused(dir, "sync directory")
    }

    fn space(&self) -> BoxFuture<'_, Result<Option<DiskSpace>>> {
        self.0.space()
    }

    fn file_hosts<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<Option<Vec<FileHosts>>>> {
        self.0.file_hosts(dir)
    }

    fn fence<'a>(&'a self, _path: &'a FilePath) -> BoxFuture<'a, Result<Fence>> {
        Box::pin(std::future::ready(Ok(Fence::Complete)))
    }

    fn is_occupied<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<Option<bool>>> {
        self.0.is_occupied(dir)
    }
}
