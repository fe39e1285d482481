//! An open file on a volume.

use std::sync::Arc;

use base::BoxFuture;
use bytes::Bytes;
use fs::{FilePath, FileReader, IoClass, Result};

use crate::volume::Volume;

/// A reader with the name of the link at the time of opening. Errors are remembered for the choice
/// of later volumes.
pub(crate) struct TieredReader {
    inner: Arc<dyn FileReader>,
    path: FilePath,
    volume: Arc<Volume>,
}

impl TieredReader {
    pub(crate) fn new(inner: Arc<dyn FileReader>, path: &FilePath, volume: &Arc<Volume>) -> TieredReader {
        TieredReader { inner, path: path.clone(), volume: volume.clone() }
    }
}

impl FileReader for TieredReader {
    fn path(&self) -> &FilePath {
        &self.path
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn read_at(&self, offset: u64, len: usize) -> BoxFuture<'_, Result<Bytes>> {
        self.read_for(IoClass::Read, offset, len)
    }

    fn read_for(&self, class: IoClass, offset: u64, len: usize) -> BoxFuture<'_, Result<Bytes>> {
        Box::pin(async move {
            let read = self.inner.read_for(class, offset, len).await;
            read.map_err(|error| self.volume.failed(error, &self.path))
        })
    }

    fn read_overhead_bytes(&self) -> usize {
        self.inner.read_overhead_bytes()
    }
}
