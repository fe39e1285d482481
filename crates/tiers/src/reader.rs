//! An open file on a volume.

use std::sync::Arc;

use base::BoxFuture;
use base::env::Clock;
use bytes::Bytes;
use fs::{FilePath, FileReader, IoClass, Result};

use crate::heat::FileHeat;
use crate::volume::Volume;

/// A reader with the name of the link at the time of opening. Counts the reads. Errors are
/// remembered for the choice of later volumes.
pub(crate) struct TieredReader {
    inner: Arc<dyn FileReader>,
    path: FilePath,
    volume: Arc<Volume>,
    heat: Arc<FileHeat>,
    clock: Arc<dyn Clock>,
}

impl TieredReader {
    pub(crate) fn new(
        inner: Arc<dyn FileReader>,
        path: &FilePath,
        volume: &Arc<Volume>,
        (heat, clock): (Arc<FileHeat>, Arc<dyn Clock>),
    ) -> TieredReader {
        TieredReader { inner, path: path.clone(), volume: volume.clone(), heat, clock }
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
            if class == IoClass::Read {
                self.heat.record(len as u64, self.clock.monotonic());
            }
            read.map_err(|error| self.volume.failed(error, &self.path))
        })
    }

    fn read_overhead_bytes(&self) -> usize {
        self.inner.read_overhead_bytes()
    }

    fn sequential_read_bytes(&self) -> usize {
        self.inner.sequential_read_bytes()
    }
}
