//! A file that one life of a process writes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::BoxFuture;
use bytes::Bytes;
use fs::{Error, FilePath, FileWriter, Result, SyncLevel};

use super::handle::{DiskCall, DiskHandle};
use super::{CallKind, Fate};
use crate::ready::now;

pub(super) struct DiskWriter {
    handle: DiskHandle,
    path: FilePath,
    // Shared with the calls that have not taken effect yet. `None` once closed.
    inner: Arc<Mutex<Option<Box<dyn FileWriter>>>>,
    // Calls take effect in the order in which they were made, even if a caller gave one up.
    last_effect: Duration,
    // A failed write or sync is never retried.
    broken: Arc<Mutex<bool>>,
}

impl DiskWriter {
    pub(super) fn new(handle: DiskHandle, inner: Box<dyn FileWriter>) -> DiskWriter {
        DiskWriter {
            path: inner.path().clone(),
            handle,
            inner: Arc::new(Mutex::new(Some(inner))),
            last_effect: Duration::ZERO,
            broken: Arc::default(),
        }
    }

    fn call<'a>(
        &'a mut self,
        kind: CallKind,
        operation: &'static str,
        effect: impl FnOnce(&mut Box<dyn FileWriter>, Fate) -> Result<()> + Send + 'static,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            if *lock(&self.broken) {
                return Err(Error::io(&self.path, operation, "an earlier call failed"));
            }
            let (inner, path) = (self.inner.clone(), self.path.clone());
            let call = DiskCall { kind, operation, path: &path, not_before: self.last_effect };
            let (at, result) = self.handle.call(call, move |_, fate| match &mut *lock(&inner) {
                Some(writer) => effect(writer, fate),
                None => unreachable!("no call follows close"),
            });
            self.last_effect = at;
            let result = result.await;
            if result.is_err() {
                *lock(&self.broken) = true;
            }
            result
        })
    }
}

impl FileWriter for DiskWriter {
    fn path(&self) -> &FilePath {
        &self.path
    }

    fn len(&self) -> u64 {
        lock(&self.inner).as_ref().map_or(0, |writer| writer.len())
    }

    fn append(&mut self, bytes: Bytes) -> BoxFuture<'_, Result<()>> {
        self.call(CallKind::Quick, "append", move |writer, fate| {
            let len = if fate == Fate::Partial { bytes.len() / 2 } else { bytes.len() };
            now(writer.append(bytes.slice(..len)))
        })
    }

    fn append_with_end(&mut self, bytes: Bytes, content_len: usize) -> BoxFuture<'_, Result<()>> {
        // The contract excludes a partial effect.
        self.call(CallKind::Quick, "append", move |writer, _| now(writer.append_with_end(bytes, content_len)))
    }

    fn sync(&mut self, durability: SyncLevel) -> BoxFuture<'_, Result<()>> {
        self.call(CallKind::Sync, "sync", move |writer, fate| match fate {
            Fate::Ignored => Ok(()),
            _ => now(writer.sync(durability)),
        })
    }

    fn reserve(&mut self, bytes: u64) -> BoxFuture<'_, Result<()>> {
        self.call(CallKind::Quick, "reserve", move |writer, _| now(writer.reserve(bytes)))
    }

    fn close(self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        Box::pin(async move {
            let (inner, path) = (self.inner.clone(), self.path.clone());
            let (kind, not_before) = (CallKind::Quick, self.last_effect);
            let call = DiskCall { kind, operation: "close", path: &path, not_before };
            let close = move |_: &_, _| match lock(&inner).take() {
                Some(writer) => now(writer.close()),
                None => unreachable!("a writer is closed once"),
            };
            self.handle.call(call, close).1.await
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
