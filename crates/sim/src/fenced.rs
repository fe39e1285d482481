//! Logs that stop when their directory is taken over.
//!
//! A master that recovers a dead region server renames the directory of its logs. On a shared file
//! system that is not HDFS, a server that is not dead can still write to its open log, under the
//! new name. Therefore a sync of a log succeeds only if the log still exists at its path after the
//! sync. Then the bytes were in the file when the directory was renamed, and the master, which
//! reads the log after the rename, finds them.

use std::sync::Arc;

use base::BoxFuture;
use bytes::Bytes;
use fs::{AccessPattern, Error, FilePath, FileReader, FileStatus, FileSystem, FileWriter, Result, SyncLevel};

/// A [`FileSystem`] whose logs are fenced by a rename of their directory.
#[derive(Clone)]
pub struct Fenced {
    inner: Arc<dyn FileSystem>,
}

impl Fenced {
    /// Wraps `inner`.
    pub fn new(inner: Arc<dyn FileSystem>) -> Fenced {
        Fenced { inner }
    }
}

impl FileSystem for Fenced {
    fn create<'a>(
        &'a self,
        path: &'a FilePath,
        access: AccessPattern,
    ) -> BoxFuture<'a, Result<Box<dyn FileWriter>>> {
        Box::pin(async move {
            let writer = self.inner.create(path, access).await?;
            match access {
                AccessPattern::Data => Ok(writer),
                AccessPattern::Log => {
                    Ok(Box::new(FencedWriter { fs: self.inner.clone(), inner: writer })
                        as Box<dyn FileWriter>)
                }
            }
        })
    }

    fn open<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Arc<dyn FileReader>>> {
        self.inner.open(path)
    }

    fn rename<'a>(&'a self, from: &'a FilePath, to: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        self.inner.rename(from, to)
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
        self.inner.make_dirs(dir)
    }

    fn sync_dir<'a>(&'a self, dir: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        self.inner.sync_dir(dir)
    }

    fn fence<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<()>> {
        self.inner.fence(path)
    }
}

struct FencedWriter {
    fs: Arc<dyn FileSystem>,
    inner: Box<dyn FileWriter>,
}

impl FileWriter for FencedWriter {
    fn path(&self) -> &FilePath {
        self.inner.path()
    }

    fn len(&self) -> u64 {
        self.inner.len()
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
            let path = self.inner.path();
            match self.fs.stat(path).await? {
                Some(_) => Ok(()),
                None => Err(Error::io(path, "sync", "the log was taken over by another server")),
            }
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
    use std::sync::Mutex;
    use std::time::Duration;

    use super::*;
    use crate::process::Life;
    use crate::world::{World, WorldOptions};

    fn path(text: &str) -> FilePath {
        FilePath::new(text)
    }

    /// Appends numbered bytes; counts those whose sync succeeded.
    async fn write(life: Life, acknowledged: Arc<Mutex<usize>>) {
        let fs = Fenced::new(life.fs.clone());
        fs.make_dirs(&path("WALs/a")).await.unwrap();
        let mut log = fs.create(&path("WALs/a/log"), AccessPattern::Log).await.unwrap();
        loop {
            log.append(Bytes::from_static(b"x")).await.unwrap();
            if log.sync(SyncLevel::Disk).await.is_err() {
                return;
            }
            *acknowledged.lock().unwrap() += 1;
        }
    }

    #[test]
    fn a_reader_of_a_renamed_log_finds_all_acknowledged_bytes() {
        let mut late = 0;
        for seed in 0..200 {
            let run = World::run(WorldOptions::new(seed), |world| async move {
                let acknowledged: Arc<Mutex<usize>> = Arc::default();
                let counted = acknowledged.clone();
                let writer = world.add_process("a", move |life| write(life, counted.clone()));
                writer.start();
                let master = world.add_idle_process("master").start().fs;
                let random = world.random("test");
                let millis = |to| random.between(Duration::from_millis(2), Duration::from_millis(to));
                while *acknowledged.lock().unwrap() == 0 {
                    world.sleep(Duration::from_millis(1)).await;
                }
                world.sleep(millis(10)).await;
                let is_paused = random.one_in(2);
                if is_paused {
                    writer.pause();
                    world.sleep(millis(20)).await;
                }
                master.rename(&path("WALs/a"), &path("WALs/a-splitting")).await.unwrap();
                let read = master.open(&path("WALs/a-splitting/log")).await.unwrap().len() as usize;
                writer.resume();
                world.sleep(Duration::from_secs(1)).await;
                assert!(!writer.is_running(), "the writer stops");
                let len = world.disk().files().contents(&path("WALs/a-splitting/log")).unwrap().len();
                let acknowledged = *acknowledged.lock().unwrap();
                assert!(acknowledged <= read, "{acknowledged} acknowledged, {read} read");
                usize::from(len > read)
            });
            late += run.result.unwrap_or_else(|panic| panic!("seed {seed}: {panic}"));
        }
        assert!(late > 0, "some writers write to the moved log");
    }
}
