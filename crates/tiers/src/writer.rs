//! A file that is being written on a volume.

use std::sync::Arc;

use base::BoxFuture;
use bytes::Bytes;
use fs::{FilePath, FileWriter, Result, SyncLevel};

use crate::volume::{Announced, Volume};

/// A writer with the name of the link. Errors are remembered for the choice of later volumes.
pub(crate) struct TieredWriter {
    inner: Box<dyn FileWriter>,
    path: FilePath,
    volume: Arc<Volume>,
    // What is still to be written.
    announced: Announced,
}

impl TieredWriter {
    pub(crate) fn new(inner: Box<dyn FileWriter>, path: &FilePath, announced: Announced) -> TieredWriter {
        TieredWriter { inner, path: path.clone(), volume: announced.volume().clone(), announced }
    }

    fn record_written(&mut self, bytes: u64) {
        self.volume.record_written(bytes);
        self.announced.record_written(bytes);
    }
}

impl TieredWriter {
    fn checked<T>(path: &FilePath, volume: &Volume, result: Result<T>) -> Result<T> {
        result.map_err(|error| volume.failed(error, path))
    }
}

impl FileWriter for TieredWriter {
    fn path(&self) -> &FilePath {
        &self.path
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn append(&mut self, bytes: Bytes) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            self.record_written(bytes.len() as u64);
            TieredWriter::checked(&self.path, &self.volume, self.inner.append(bytes).await)
        })
    }

    fn append_with_end(&mut self, bytes: Bytes, content_len: usize) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            self.record_written(content_len as u64);
            let done = self.inner.append_with_end(bytes, content_len).await;
            TieredWriter::checked(&self.path, &self.volume, done)
        })
    }

    fn sync(&mut self, durability: SyncLevel) -> BoxFuture<'_, Result<()>> {
        Box::pin(
            async move { TieredWriter::checked(&self.path, &self.volume, self.inner.sync(durability).await) },
        )
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
            TieredWriter::checked(&self.path, &self.volume, done)
        })
    }

    fn reserve(&mut self, bytes: u64) -> BoxFuture<'_, Result<()>> {
        Box::pin(
            async move { TieredWriter::checked(&self.path, &self.volume, self.inner.reserve(bytes).await) },
        )
    }

    fn close(self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        let TieredWriter { inner, path, volume, announced: _announced } = *self;
        Box::pin(async move { TieredWriter::checked(&path, &volume, inner.close().await) })
    }
}
