//! A file that is being written on a volume.

use std::sync::Arc;

use base::BoxFuture;
use bytes::Bytes;
use fs::{Error, FilePath, FileWriter, Result, SyncLevel};

use crate::volume::{Announced, Health, Volume};

/// A volume with less free space than this is no alternative to a full one.
const ALTERNATIVE_FREE_BYTES_MIN: u64 = 64 << 10;

/// A writer with the name of the link. Errors are remembered for the choice of later volumes. A
/// full disk is [`Error::VolumeFull`] if another volume has space.
pub(crate) struct TieredWriter {
    inner: Box<dyn FileWriter>,
    path: FilePath,
    volume: Arc<Volume>,
    // What is still to be written.
    announced: Announced,
    // All volumes that could have got the file.
    candidates: Arc<[Arc<Volume>]>,
}

impl TieredWriter {
    /// `candidates` are all volumes that could have got the file.
    pub(crate) fn new(
        inner: Box<dyn FileWriter>,
        path: &FilePath,
        announced: Announced,
        candidates: Arc<[Arc<Volume>]>,
    ) -> TieredWriter {
        TieredWriter { inner, path: path.clone(), volume: announced.volume().clone(), announced, candidates }
    }

    fn record_written(&mut self, bytes: u64) {
        self.volume.record_written(bytes);
        self.announced.record_written(bytes);
    }
}

impl TieredWriter {
    fn checked<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| match self.volume.failed(error, &self.path) {
            Error::NoSpace { path } if self.has_alternative() => Error::VolumeFull { path },
            error => error,
        })
    }

    /// Whether another volume can take a new file. The home gives even the space that it keeps for
    /// names, as [`TieredFs`](crate::TieredFs) does when all other disks are full.
    fn has_alternative(&self) -> bool {
        self.candidates
            .iter()
            .any(|volume| volume.health() == Health::Good && volume.has_free(ALTERNATIVE_FREE_BYTES_MIN))
    }
}

impl FileWriter for TieredWriter {
    fn path(&self) -> &FilePath {
        &self.path
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
            self.record_written(bytes.len() as u64);
            let done = self.inner.append(bytes).await;
            self.checked(done)
        })
    }

    fn append_with_end(&mut self, bytes: Bytes, content_len: usize) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            self.record_written(content_len as u64);
            let done = self.inner.append_with_end(bytes, content_len).await;
            self.checked(done)
        })
    }

    fn sync(&mut self, durability: SyncLevel) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let done = self.inner.sync(durability).await;
            self.checked(done)
        })
    }

    fn append_and_sync(
        &mut self,
        bytes: Bytes,
        content_len: usize,
        durability: SyncLevel,
    ) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            self.record_written(content_len as u64);
            let done = self.inner.append_and_sync(bytes, content_len, durability).await;
            self.checked(done)
        })
    }

    fn reserve(&mut self, bytes: u64) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let done = self.inner.reserve(bytes).await;
            self.checked(done)
        })
    }

    fn close(self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        let TieredWriter { inner, path, volume, announced: _announced, candidates: _ } = *self;
        Box::pin(async move { inner.close().await.map_err(|error| volume.failed(error, &path)) })
    }
}
