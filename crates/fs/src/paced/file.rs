//! Open files of a paced device.

use std::sync::Arc;

use base::BoxFuture;
use base::env::Clock;
use bytes::Bytes;

use super::device::{Action, Extent, PacedDevice};
use crate::{AccessPattern, FilePath, FileReader, FileWriter, IoClass, Result, SyncLevel};

pub(super) struct PacedReader {
    pub(super) inner: Arc<dyn FileReader>,
    pub(super) device: Arc<PacedDevice>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) file: u64,
}

impl FileReader for PacedReader {
    fn path(&self) -> &FilePath {
        self.inner.path()
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn read_at(&self, offset: u64, len: usize) -> BoxFuture<'_, Result<Bytes>> {
        self.read_for(IoClass::Read, offset, len)
    }

    fn read_for(&self, class: IoClass, offset: u64, len: usize) -> BoxFuture<'_, Result<Bytes>> {
        // A read past the end fails; it does not take the time of its bytes.
        let bytes = (len as u64).min(self.len().saturating_sub(offset));
        let extent = Extent { file: self.file, offset, bytes };
        let work = self.inner.read_for(class, offset, len);
        Box::pin(self.device.serve(&*self.clock, class, Action::Read(extent), work))
    }

    fn read_overhead_bytes(&self) -> usize {
        self.inner.read_overhead_bytes()
    }

    fn sequential_read_bytes(&self) -> usize {
        self.inner.sequential_read_bytes()
    }
}

pub(super) struct PacedWriter {
    pub(super) inner: Box<dyn FileWriter>,
    pub(super) device: Arc<PacedDevice>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) file: u64,
    pub(super) class: IoClass,
    pub(super) access: AccessPattern,
    // End of the appended bytes, end marks and reserved zeros.
    pub(super) written_to: u64,
}

impl PacedWriter {
    /// The extent of an append at the end of the file.
    fn extent(&mut self, bytes: usize) -> Extent {
        let offset = self.inner.len();
        self.written_to = self.written_to.max(offset + bytes as u64);
        Extent { file: self.file, offset, bytes: bytes as u64 }
    }
}

impl FileWriter for PacedWriter {
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
        let action = Action::Write(self.extent(bytes.len()));
        let work = self.inner.append(bytes);
        Box::pin(self.device.serve(&*self.clock, self.class, action, work))
    }

    fn append_with_end(&mut self, bytes: Bytes, content_len: usize) -> BoxFuture<'_, Result<()>> {
        let action = Action::Write(self.extent(bytes.len()));
        let work = self.inner.append_with_end(bytes, content_len);
        Box::pin(self.device.serve(&*self.clock, self.class, action, work))
    }

    fn sync(&mut self, durability: SyncLevel) -> BoxFuture<'_, Result<()>> {
        let work = self.inner.sync(durability);
        match durability {
            SyncLevel::Visible => work,
            SyncLevel::Disk => Box::pin(self.device.serve(&*self.clock, self.class, Action::Sync, work)),
        }
    }

    fn append_and_sync(
        &mut self,
        bytes: Bytes,
        content_len: usize,
        durability: SyncLevel,
    ) -> BoxFuture<'_, Result<()>> {
        let extent = self.extent(bytes.len());
        let action = match durability {
            SyncLevel::Visible => Action::Write(extent),
            SyncLevel::Disk => Action::WriteAndSync(extent),
        };
        let work = self.inner.append_and_sync(bytes, content_len, durability);
        Box::pin(self.device.serve(&*self.clock, self.class, action, work))
    }

    fn reserve(&mut self, bytes: u64) -> BoxFuture<'_, Result<()>> {
        let (from, to) = (self.written_to, self.inner.len() + bytes);
        let work = self.inner.reserve(bytes);
        // Only a log has reserved zeros, and only the missing ones are written.
        if self.access != AccessPattern::Log || to <= from {
            return work;
        }
        self.written_to = to;
        let action = Action::Write(Extent { file: self.file, offset: from, bytes: to - from });
        Box::pin(self.device.serve(&*self.clock, self.class, action, work))
    }

    fn close(self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        self.inner.close()
    }
}
