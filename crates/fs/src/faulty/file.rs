//! Open files with planned faults.

use std::sync::Arc;

use base::BoxFuture;
use bytes::{Bytes, BytesMut};

use super::plan::{Fault, Operation, Shared};
use super::planned;
use crate::{Error, FilePath, FileReader, FileWriter, IoClass, Result, SyncLevel};

pub(super) struct FaultyReader {
    pub(super) inner: Arc<dyn FileReader>,
    pub(super) shared: Arc<Shared>,
}

impl FileReader for FaultyReader {
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
        Box::pin(async move {
            match self.shared.next_fault(Operation::Read, self.path()).await {
                None => self.inner.read_for(class, offset, len).await,
                Some(Fault::Flip) => Ok(flipped(self.inner.read_for(class, offset, len).await?)),
                Some(_) => Err(planned(Operation::Read, self.path())),
            }
        })
    }

    fn sequential_read_bytes(&self) -> usize {
        self.inner.sequential_read_bytes()
    }
}

// The bytes with one bit flipped, in the middle.
fn flipped(bytes: Bytes) -> Bytes {
    let mut bytes = BytesMut::from(bytes);
    let middle = bytes.len() / 2;
    if let Some(byte) = bytes.get_mut(middle) {
        *byte ^= 0x04;
    }
    bytes.freeze()
}

pub(super) struct FaultyWriter {
    inner: Box<dyn FileWriter>,
    shared: Arc<Shared>,
    missing_replicas: usize,
    // Why the file refuses all calls except `close`.
    broken: Option<&'static str>,
}

impl FaultyWriter {
    pub(super) fn new(inner: Box<dyn FileWriter>, shared: Arc<Shared>) -> FaultyWriter {
        let missing_replicas = shared.plan().missing_replicas;
        FaultyWriter { inner, shared, missing_replicas, broken: None }
    }

    fn usable(&self, operation: Operation) -> Result<()> {
        match self.broken {
            Some(reason) => Err(Error::io(self.path(), operation.name(), reason)),
            None => Ok(()),
        }
    }

    async fn append_planned(&mut self, bytes: Bytes, content_len: usize) -> Result<()> {
        self.usable(Operation::Append)?;
        let path = self.inner.path().clone();
        let fault = self.shared.next_fault(Operation::Append, &path).await;
        match fault {
            None | Some(Fault::Flip | Fault::FailAfter | Fault::Tear) => {
                self.shared.take_space(bytes.len() as u64, &path)?;
                self.shared.grow(&path, self.inner.len() + bytes.len() as u64)?;
            }
            Some(Fault::NoSpace) => return Err(Error::NoSpace { path }),
            Some(Fault::VolumeFull) => return Err(Error::VolumeFull { path }),
            Some(_) => return Err(planned(Operation::Append, &path)),
        }
        match fault {
            Some(Fault::Flip) => return self.inner.append_with_end(flipped(bytes), content_len).await,
            Some(Fault::Tear) => self.inner.append(bytes.slice(..bytes.len() / 2)).await?,
            _ => self.inner.append_with_end(bytes, content_len).await?,
        }
        if fault.is_none() {
            return Ok(());
        }
        // The written bytes cannot be removed, so the next append would follow them.
        self.broken = Some("an earlier append failed half-way");
        Err(planned(Operation::Append, &path))
    }

    async fn sync_planned(&mut self, durability: SyncLevel) -> Result<()> {
        self.usable(Operation::Sync)?;
        let path = self.inner.path().clone();
        let synced = self.shared.guarded(Operation::Sync, &path, self.inner.sync(durability)).await;
        if synced.is_err() {
            self.broken = Some("an earlier sync of this file failed");
        }
        synced
    }
}

impl FileWriter for FaultyWriter {
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
        self.missing_replicas + self.inner.missing_replicas()
    }

    fn append(&mut self, bytes: Bytes) -> BoxFuture<'_, Result<()>> {
        let content_len = bytes.len();
        Box::pin(self.append_planned(bytes, content_len))
    }

    fn append_with_end(&mut self, bytes: Bytes, content_len: usize) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.append_planned(bytes, content_len))
    }

    fn sync(&mut self, durability: SyncLevel) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.sync_planned(durability))
    }

    fn reserve(&mut self, bytes: u64) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            self.usable(Operation::Reserve)?;
            let path = self.inner.path().clone();
            self.shared.grow(&path, self.inner.len() + bytes)?;
            self.shared.guarded(Operation::Reserve, &path, self.inner.reserve(bytes)).await
        })
    }

    fn close(self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        Box::pin(async move {
            let (path, len) = (self.inner.path().clone(), self.inner.len());
            self.shared.guarded(Operation::Close, &path, self.inner.close()).await?;
            self.shared.plan().disk.truncate(&path, len);
            Ok(())
        })
    }
}
