//! Open files of a scheduled device.

use std::sync::Arc;

use base::BoxFuture;
use bytes::Bytes;

use super::queue::DeviceQueue;
use super::request::{Action, Request};
use crate::{FilePath, FileReader, FileWriter, IoClass, Result, SyncLevel};

pub(super) struct ScheduledReader {
    pub(super) inner: Arc<dyn FileReader>,
    pub(super) queue: Arc<DeviceQueue>,
    pub(super) file: u64,
}

impl FileReader for ScheduledReader {
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
        let position = Some((self.file, offset));
        // A read past the end fails.
        let bytes = (len as u64).min(self.len().saturating_sub(offset));
        let request = Request { class, action: Action::Read, position, bytes, unsynced: 0 };
        Box::pin(async move { self.queue.run(request, self.inner.read_for(class, offset, len)).await.0 })
    }

    fn read_overhead_bytes(&self) -> usize {
        self.inner.read_overhead_bytes()
    }

    fn sequential_read_bytes(&self) -> usize {
        self.inner.sequential_read_bytes()
    }
}

pub(super) struct ScheduledWriter {
    inner: Box<dyn FileWriter>,
    class: IoClass,
    file: u64,
    unsynced: Unsynced,
}

/// Estimated bytes of a file that are only in the page cache.
struct Unsynced {
    queue: Arc<DeviceQueue>,
    bytes: u64,
}

impl Drop for Unsynced {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.queue.forget_unsynced(self.bytes);
        }
    }
}

impl ScheduledWriter {
    pub(super) fn new(
        inner: Box<dyn FileWriter>,
        queue: Arc<DeviceQueue>,
        class: IoClass,
    ) -> ScheduledWriter {
        let file = queue.open_file();
        ScheduledWriter { inner, class, file, unsynced: Unsynced { queue, bytes: 0 } }
    }

    fn request(&self, action: Action, bytes: usize) -> Request {
        let position = (action != Action::Sync).then(|| (self.file, self.inner.len()));
        let unsynced = self.unsynced.bytes;
        Request { class: self.class, action, position, bytes: bytes as u64, unsynced }
    }

    /// Does `call` on the file as a request.
    async fn run<'a, F>(&'a mut self, request: Request, call: F) -> Result<()>
    where
        F: FnOnce(&'a mut dyn FileWriter) -> BoxFuture<'a, Result<()>>,
    {
        let ScheduledWriter { inner, unsynced, .. } = self;
        let (result, in_page_cache) = unsynced.queue.run(request, call(&mut **inner)).await;
        unsynced.bytes = if request.syncs() { 0 } else { unsynced.bytes + in_page_cache };
        result
    }
}

impl FileWriter for ScheduledWriter {
    fn path(&self) -> &FilePath {
        self.inner.path()
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn transfer_bytes(&self) -> usize {
        self.unsynced.queue.limits().transfer_bytes
    }

    fn missing_replicas(&self) -> usize {
        self.inner.missing_replicas()
    }

    fn append(&mut self, bytes: Bytes) -> BoxFuture<'_, Result<()>> {
        let request = self.request(Action::Write, bytes.len());
        Box::pin(self.run(request, move |file| file.append(bytes)))
    }

    fn append_with_end(&mut self, bytes: Bytes, content_len: usize) -> BoxFuture<'_, Result<()>> {
        let request = self.request(Action::Write, content_len);
        Box::pin(self.run(request, move |file| file.append_with_end(bytes, content_len)))
    }

    fn sync(&mut self, durability: SyncLevel) -> BoxFuture<'_, Result<()>> {
        if durability == SyncLevel::Visible {
            return self.inner.sync(durability);
        }
        let request = self.request(Action::Sync, 0);
        Box::pin(self.run(request, move |file| file.sync(durability)))
    }

    fn append_and_sync(
        &mut self,
        bytes: Bytes,
        content_len: usize,
        durability: SyncLevel,
    ) -> BoxFuture<'_, Result<()>> {
        let action = match durability {
            SyncLevel::Visible => Action::Write,
            SyncLevel::Disk => Action::WriteAndSync,
        };
        let request = self.request(action, content_len);
        Box::pin(self.run(request, move |file| file.append_and_sync(bytes, content_len, durability)))
    }

    fn reserve(&mut self, bytes: u64) -> BoxFuture<'_, Result<()>> {
        // Whether the storage writes the zeros is unknown here; most calls have nothing to do.
        let request = Request::without_bytes(self.class, Action::Names);
        Box::pin(self.run(request, move |file| file.reserve(bytes)))
    }

    fn close(self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        Box::pin(async move {
            let ScheduledWriter { inner, unsynced, class, .. } = *self;
            let request = Request::without_bytes(class, Action::Names);
            unsynced.queue.run(request, inner.close()).await.0
        })
    }
}
