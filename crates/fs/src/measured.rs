//! Wraps any other file system and measures reads and writes, under HBase's metric names.

use std::sync::Arc;

use base::BoxFuture;
use base::env::Clock;
use bytes::Bytes;

use crate::{
    DiskSpace, Fence, FileHosts, FilePath, FileReader, FileStatus, FileSystem, FileWriter, IoClass, Occupied,
    PolicyCounts, Preferences, Purpose, Result, Role, SyncLevel,
};

/// Longer reads are prefetched runs of blocks.
const BLOCK_BYTES_MAX: usize = 256 << 10;

base::instruments! {
    /// Latency of reads and writes of store files.
    pub struct FileInstruments in "RegionServer,sub=IO" {
        /// How long a read of several blocks took.
        read_time: Times = "FsReadTime",
        /// How long a read of a block took.
        block_read_time: Times = "FsPReadTime",
        /// How long a write took.
        write_time: Times = "FsWriteTime",
    }
}

base::instruments! {
    /// Bytes read from files.
    pub struct ReadInstruments in "RegionServer,sub=Server" {
        /// Bytes read.
        bytes: Counter = "totalBytesRead" in Bytes,
        /// Bytes read from this machine: always all of them.
        local_bytes: Counter = "localBytesRead" in Bytes,
    }
}

/// Instruments of a file system.
pub struct Instruments {
    clock: Arc<dyn Clock>,
    /// Latency of reads and writes.
    pub files: Arc<FileInstruments>,
    /// Bytes read.
    pub reads: Arc<ReadInstruments>,
}

impl Instruments {
    /// Instruments without values.
    pub fn begin(clock: Arc<dyn Clock>) -> Arc<Instruments> {
        let now = clock.monotonic();
        Arc::new(Instruments {
            clock,
            files: Arc::new(FileInstruments::begin(now)),
            reads: Arc::new(ReadInstruments::begin(now)),
        })
    }

    async fn read(&self, read: BoxFuture<'_, Result<Bytes>>, len: usize) -> Result<Bytes> {
        let begun = self.clock.monotonic();
        let bytes = read.await?;
        let took = self.clock.monotonic().saturating_sub(begun);
        let time = if len > BLOCK_BYTES_MAX { &self.files.read_time } else { &self.files.block_read_time };
        time.record(took);
        self.reads.bytes.add(bytes.len() as u64);
        self.reads.local_bytes.add(bytes.len() as u64);
        Ok(bytes)
    }
}

/// A file system that measures all reads, and the writes of its data files; a log measures its own
/// writes.
pub struct Measured {
    inner: Arc<dyn FileSystem>,
    instruments: Arc<Instruments>,
}

impl Measured {
    /// Wraps `inner` and counts with `instruments`.
    pub fn new(inner: Arc<dyn FileSystem>, instruments: Arc<Instruments>) -> Measured {
        Measured { inner, instruments }
    }

    fn reader(&self, inner: Arc<dyn FileReader>) -> Arc<dyn FileReader> {
        Arc::new(MeasuredReader { inner, instruments: self.instruments.clone() })
    }
}

impl FileSystem for Measured {
    fn create_for<'a>(
        &'a self,
        path: &'a FilePath,
        purpose: &'a Purpose,
    ) -> BoxFuture<'a, Result<Box<dyn FileWriter>>> {
        if purpose.role == Role::Log {
            return self.inner.create_for(path, purpose);
        }
        Box::pin(async move {
            let inner = self.inner.create_for(path, purpose).await?;
            let instruments = self.instruments.clone();
            Ok(Box::new(MeasuredWriter { inner, instruments }) as Box<dyn FileWriter>)
        })
    }

    fn preferences(&self, purpose: &Purpose) -> Preferences {
        self.inner.preferences(purpose)
    }

    fn open<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Arc<dyn FileReader>>> {
        Box::pin(async move { Ok(self.reader(self.inner.open(path).await?)) })
    }

    fn open_uncached<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Arc<dyn FileReader>>> {
        Box::pin(async move { Ok(self.reader(self.inner.open_uncached(path).await?)) })
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

    fn fence<'a>(&'a self, path: &'a FilePath) -> BoxFuture<'a, Result<Fence>> {
        self.inner.fence(path)
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
        self.inner.allocate(path, bytes)
    }
}

struct MeasuredReader {
    inner: Arc<dyn FileReader>,
    instruments: Arc<Instruments>,
}

impl FileReader for MeasuredReader {
    fn path(&self) -> &FilePath {
        self.inner.path()
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn read_at(&self, offset: u64, len: usize) -> BoxFuture<'_, Result<Bytes>> {
        Box::pin(self.instruments.read(self.inner.read_at(offset, len), len))
    }

    fn read_for(&self, class: IoClass, offset: u64, len: usize) -> BoxFuture<'_, Result<Bytes>> {
        Box::pin(self.instruments.read(self.inner.read_for(class, offset, len), len))
    }

    fn read_overhead_bytes(&self) -> usize {
        self.inner.read_overhead_bytes()
    }

    fn sequential_read_bytes(&self) -> usize {
        self.inner.sequential_read_bytes()
    }
}

struct MeasuredWriter {
    inner: Box<dyn FileWriter>,
    instruments: Arc<Instruments>,
}

impl FileWriter for MeasuredWriter {
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
        Box::pin(async move {
            let clock = self.instruments.clock.clone();
            let begun = clock.monotonic();
            self.inner.append(bytes).await?;
            self.instruments.files.write_time.record(clock.monotonic().saturating_sub(begun));
            Ok(())
        })
    }

    fn append_with_end(&mut self, bytes: Bytes, content_len: usize) -> BoxFuture<'_, Result<()>> {
        self.inner.append_with_end(bytes, content_len)
    }

    fn sync(&mut self, durability: SyncLevel) -> BoxFuture<'_, Result<()>> {
        self.inner.sync(durability)
    }

    fn append_and_sync(
        &mut self,
        bytes: Bytes,
        content_len: usize,
        durability: SyncLevel,
    ) -> BoxFuture<'_, Result<()>> {
        self.inner.append_and_sync(bytes, content_len, durability)
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
    use base::testing::TestClock;

    use super::*;
    use crate::AccessPattern;
    use crate::memory::MemoryFs;

    #[tokio::test]
    async fn reads_and_writes_of_data_are_counted() {
        let instruments = Instruments::begin(Arc::new(TestClock::new()));
        let fs = Measured::new(Arc::new(MemoryFs::new()), instruments.clone());
        for access in [AccessPattern::Data, AccessPattern::Log] {
            let path = FilePath::new(&format!("{access:?}"));
            let mut writer = fs.create(&path, access).await.unwrap();
            writer.append(Bytes::from(vec![7; 300 << 10])).await.unwrap();
            writer.append_and_sync(Bytes::from_static(b"x"), 1, SyncLevel::Disk).await.unwrap();
            writer.close().await.unwrap();
        }
        let reader = fs.open(&FilePath::new("Data")).await.unwrap();
        reader.read_at(0, 1000).await.unwrap();
        reader.read_at(0, 300 << 10).await.unwrap();
        reader.read_at(300 << 10, 2).await.unwrap_err();
        let files = &instruments.files;
        let counts = [&files.write_time, &files.block_read_time, &files.read_time];
        assert_eq!(counts.map(|time| time.micros().count()), [1, 1, 1]);
        assert_eq!(instruments.reads.bytes.get(), 1000 + (300 << 10));
    }
}
