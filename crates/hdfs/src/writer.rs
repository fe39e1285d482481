//! The [`FileWriter`] of a file in HDFS, and the tasks that keep the file open.

use std::sync::{Arc, Weak};
use std::time::Duration;

use base::BoxFuture;
use base::env::TaskClass;
use bytes::Bytes;
use fs::{AccessPattern, FilePath, FileWriter, Result, SyncLevel};
use tokio::sync::Mutex;
use tracing::warn;

use crate::file::{OpenFile, Shared};
use crate::generated::{Empty, RenewLeaseRequest};

/// DataNodes close a connection that is idle for a minute.
const HEARTBEAT_PERIOD: Duration = Duration::from_secs(10);
/// The NameNode lets other clients take a lease that was not renewed for a minute, and recovers it
/// itself after 20 minutes. HDFS's own client renews as often.
const RENEWAL_PERIOD: Duration = Duration::from_secs(30);

/// A writer. If it is dropped without [`FileWriter::close`], the file is closed in the background.
pub(crate) struct HdfsWriter {
    shared: Arc<Shared>,
    file: Arc<Mutex<OpenFile>>,
    path: FilePath,
    len: u64,
    // Those of the block that was open after the last append or sync.
    missing_replicas: usize,
    // Whether the file was closed, successfully or not.
    is_closed: bool,
}

impl HdfsWriter {
    pub(crate) async fn create(
        shared: &Arc<Shared>,
        path: &FilePath,
        access: AccessPattern,
    ) -> Result<HdfsWriter> {
        let file = OpenFile::create(shared.clone(), path.clone(), access).await?;
        let client_name = file.client_name().to_owned();
        let file = Arc::new(Mutex::new(file));
        let renewal = renew_lease(shared.clone(), Arc::downgrade(&file), client_name, path.clone());
        shared.env.spawn(TaskClass::Service, renewal);
        shared.env.spawn(TaskClass::Service, send_heartbeats(shared.clone(), Arc::downgrade(&file)));
        let (shared, path) = (shared.clone(), path.clone());
        Ok(HdfsWriter { shared, file, path, len: 0, missing_replicas: 0, is_closed: false })
    }
}

/// Sends heartbeats until the file is closed or has failed.
async fn send_heartbeats(shared: Arc<Shared>, file: Weak<Mutex<OpenFile>>) {
    loop {
        shared.env.clock.sleep(HEARTBEAT_PERIOD).await;
        let Some(file) = file.upgrade() else { return };
        // A locked file is in use, and so needs no heartbeat.
        if let Ok(mut file) = file.try_lock() {
            if !file.is_open() {
                return;
            }
            file.beat().await;
        }
    }
}

/// Renews the lease until the file is closed or has failed. It is a task of its own, because a call
/// waits for minutes while no NameNode is active, and heartbeats must not wait that long.
async fn renew_lease(shared: Arc<Shared>, file: Weak<Mutex<OpenFile>>, client_name: String, path: FilePath) {
    let mut pause = RENEWAL_PERIOD;
    loop {
        shared.env.clock.sleep(pause).await;
        let Some(file) = file.upgrade() else { return };
        if file.try_lock().is_ok_and(|file| !file.is_open()) {
            return;
        }
        // The call must not keep a file in memory that its writer has dropped.
        drop(file);
        let request = RenewLeaseRequest { client_name: client_name.clone() };
        pause = match shared.namenode.call("renewLease", &request).await {
            Ok(Empty {}) => RENEWAL_PERIOD,
            Err(failure) => {
                warn!(%path, reason = failure.message(), "cannot renew the lease of a file");
                HEARTBEAT_PERIOD
            }
        };
    }
}

impl Drop for HdfsWriter {
    fn drop(&mut self) {
        if self.is_closed {
            return;
        }
        let file = self.file.clone();
        self.shared.env.spawn(TaskClass::Service, async move { file.lock().await.abandon().await });
    }
}

impl FileWriter for HdfsWriter {
    fn path(&self) -> &FilePath {
        &self.path
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn missing_replicas(&self) -> usize {
        self.missing_replicas
    }

    fn append(&mut self, bytes: Bytes) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let len = bytes.len() as u64;
            let mut file = self.file.lock().await;
            file.append(bytes).await?;
            self.missing_replicas = file.missing_replicas();
            self.len += len;
            Ok(())
        })
    }

    fn append_and_sync(
        &mut self,
        bytes: Bytes,
        content_len: usize,
        durability: SyncLevel,
    ) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let content = bytes.slice(..content_len);
            let mut file = self.file.lock().await;
            file.append_and_sync(content, durability).await?;
            self.missing_replicas = file.missing_replicas();
            self.len += content_len as u64;
            Ok(())
        })
    }

    fn sync(&mut self, durability: SyncLevel) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let mut file = self.file.lock().await;
            file.sync(durability).await?;
            self.missing_replicas = file.missing_replicas();
            Ok(())
        })
    }

    fn reserve(&mut self, _bytes: u64) -> BoxFuture<'_, Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn close(mut self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        Box::pin(async move {
            let closed = self.file.lock().await.close().await;
            self.is_closed = true;
            closed
        })
    }
}
