//! Reads of erasure-coded files, through the crate `hdfs-native`, which decodes them.
//!
//! The library's reader is opened for the file's inode, so a reader still works after its file was
//! renamed. It has the locations and access tokens of the time of opening. After any error it is
//! therefore reopened, and the read is repeated.
//!
//! The library reads the units of a stripe in sequence, and does not remember which DataNodes
//! failed. So while a machine is lost, each read that needs it waits for it. The time limit for one
//! unit is short for this reason, and that for a read suffices for the loss of all units that the
//! code tolerates.
//!
//! The library is started when the first erasure-coded file is opened. It waits without a limit for
//! a NameNode that hangs, and uses another one only after an error. So after an open that takes too
//! long it is started again, with the NameNode that this crate has found active.
//!
//! The library fetches whole stripes, 6 MiB with RS-6-3-1024k, also for a read of a few bytes. So
//! the memory of all reads together is limited; others wait.
//!
//! The library panics on a read past the end of the file, so each range is checked first. As in
//! Hadoop, reads of erasure-coded files are not hedged.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base::BoxFuture;
use base::env::{Env, TaskClass};
use bytes::Bytes;
use fs::{Error, FilePath, Result};
use futures_util::FutureExt;
use hdfs_native::file::FileReader as LibraryReader;
use hdfs_native::{Client, ClientBuilder, HdfsError};
use tokio::runtime::Handle;
use tokio::sync::{Mutex as AsyncMutex, Semaphore, oneshot};
use tracing::warn;

use crate::coding::Coding;
use crate::file::Shared;
use crate::options::{HdfsOptions, Limits, Settings, namenode_names};

const ATTEMPTS: u32 = 6;
/// The longest time for a response of one DataNode.
const UNIT_LIMIT: Duration = Duration::from_secs(2);
/// Pause before the second repetition; the first has none, and later ones have longer pauses.
const PAUSE: Duration = Duration::from_millis(50);

/// Memory of all reads that run at the same time.
const MEMORY_BYTES: u64 = 256 << 20;
/// Unit in which it is counted.
const MEMORY_UNIT: u64 = 1 << 10;

/// The client library, started on first use: its tasks need a tokio runtime, which a simulation
/// does not have.
pub(crate) struct Library {
    env: Env,
    service: String,
    user: String,
    values: HashMap<String, String>,
    // None before the start, and after an open that took too long.
    client: AsyncMutex<Option<Client>>,
    // A permit for each MEMORY_UNIT.
    memory: Semaphore,
}

impl Library {
    pub(crate) fn new(env: &Env, options: &HdfsOptions, settings: &Settings) -> Library {
        let mut values = options.settings.clone();
        let unit_limit_ms = settings.read_timeout.min(UNIT_LIMIT).as_millis().to_string();
        values.insert("dfs.client.socket-timeout".to_owned(), unit_limit_ms);
        Library {
            env: env.clone(),
            service: settings.service.clone(),
            user: options.user.clone(),
            values,
            client: AsyncMutex::default(),
            memory: Semaphore::new((MEMORY_BYTES / MEMORY_UNIT) as usize),
        }
    }

    /// The client, for the open of `path`. A new one calls the NameNode with the index `active`
    /// first.
    ///
    /// # Errors
    /// [`Error::Io`] if the library rejects its settings.
    async fn client(&self, active: usize, path: &FilePath) -> Result<Client> {
        let mut client = self.client.lock().await;
        if let Some(started) = &*client {
            return Ok(started.clone());
        }
        let refused = |why: String| {
            Error::io(path, "open", format!("the client library for erasure-coded files: {why}"))
        };
        let started = self.start(active).await.map_err(refused)?;
        Ok(client.insert(started).clone())
    }

    /// Lets the next open start the library again.
    async fn discard(&self) {
        *self.client.lock().await = None;
    }

    /// The settings of the library, which calls the NameNodes in the listed order.
    fn values(&self, active: usize) -> HashMap<String, String> {
        let mut values = self.values.clone();
        let service = self.service.trim_start_matches("hdfs://");
        values.insert(format!("dfs.client.failover.random.order.{service}"), "false".to_owned());
        if let Some(value) = values.get_mut(&format!("dfs.ha.namenodes.{service}")) {
            let mut names: Vec<&str> = namenode_names(value).collect();
            names.rotate_left(active);
            *value = names.join(",");
        }
        values
    }

    /// Starts the library with its tasks on the runtime of service threads.
    async fn start(&self, active: usize) -> std::result::Result<Client, String> {
        let (send, receive) = oneshot::channel();
        self.env.spawn(TaskClass::Service, async move {
            // The caller may have stopped waiting.
            let _ = send.send(Handle::current());
        });
        let runtime = receive.await.map_err(|_| "the service threads ended".to_owned())?;
        ClientBuilder::new()
            .with_url(self.service.clone())
            .with_config(self.values(active))
            .with_user(self.user.clone())
            .with_io_runtime(runtime)
            .build()
            .map_err(|error| error.to_string())
    }
}

/// An open erasure-coded file.
pub(crate) struct StripedReader {
    shared: Arc<Shared>,
    library: Arc<Library>,
    path: FilePath,
    // The path that names the file by its inode: `/.reserved/.inodes/ID`.
    inode: String,
    len: u64,
    coding: Coding,
    reader: Mutex<Arc<LibraryReader>>,
}

/// The time limit for one attempt of a read: at least for the loss of all parity units, and for the
/// units that are read.
fn attempt_limit(limits: &Limits, coding: &Coding) -> Duration {
    limits.read.max(UNIT_LIMIT * coding.parity_units.saturating_add(2))
}

/// The memory that a read of `len` bytes takes, in permits: its stripes, one of which is copied for
/// decoding, and its result. A read with more than the limit runs alone.
fn memory_of(coding: &Coding, offset: u64, len: usize) -> u32 {
    let stripe_bytes = u64::from(coding.data_units) * u64::from(coding.cell_bytes);
    let end = offset.saturating_add(len as u64);
    let stripes = end.div_ceil(stripe_bytes) - offset / stripe_bytes;
    let bytes = stripe_bytes.saturating_mul(stripes + 1).saturating_add(len as u64);
    (bytes.min(MEMORY_BYTES) / MEMORY_UNIT) as u32
}

impl StripedReader {
    /// Opens the file at `inode`, a path of the form `/.reserved/.inodes/ID`.
    pub(crate) async fn open(
        shared: Arc<Shared>,
        library: Arc<Library>,
        path: FilePath,
        inode: String,
        coding: Coding,
    ) -> Result<StripedReader> {
        let reader = open_library(&shared, &library, &path, &inode).await?;
        let len = reader.file_length() as u64;
        let reader = Mutex::new(Arc::new(reader));
        Ok(StripedReader { shared, library, path, inode, len, coding, reader })
    }

    fn current(&self) -> Arc<LibraryReader> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn reopen(&self) -> Result<Arc<LibraryReader>> {
        let reader = open_library(&self.shared, &self.library, &self.path, &self.inode).await?;
        let reader = Arc::new(reader);
        *self.reader.lock().unwrap_or_else(PoisonError::into_inner) = reader.clone();
        Ok(reader)
    }

    async fn read_with_retries(&self, offset: u64, len: usize) -> Result<Bytes> {
        let mut reader = self.current();
        let mut attempt = 1;
        loop {
            let error = match self.attempt(&reader, offset, len).await {
                Ok(bytes) => return Ok(bytes),
                Err(error) => error,
            };
            if attempt == ATTEMPTS {
                return Err(error);
            }
            warn!(path = %self.path, offset, len, %error, attempt, "a read failed; retrying");
            if attempt > 1 {
                self.shared.env.clock.sleep(PAUSE * (1 << attempt)).await;
            }
            attempt += 1;
            match self.reopen().await {
                Ok(reopened) => reader = reopened,
                Err(error @ Error::NotFound { .. }) => return Err(error),
                // The old reader may still work.
                Err(error) => warn!(path = %self.path, %error, "cannot reopen a file for a read"),
            }
        }
    }

    /// Reads once there is memory for it.
    async fn attempt(&self, reader: &LibraryReader, offset: u64, len: usize) -> Result<Bytes> {
        let failed = |what: &str| Error::io(&self.path, "read", what);
        let memory = self.library.memory.acquire_many(memory_of(&self.coding, offset, len));
        let _memory = memory.await.map_err(|_| failed("the client library was stopped"))?;
        let limit = attempt_limit(&self.shared.limits, &self.coding);
        let read = self.shared.env.timeout(limit, self.read_once(reader, offset, len)).await;
        read.unwrap_or_else(|| Err(failed("no DataNode responded in time")))
    }

    async fn read_once(&self, reader: &LibraryReader, offset: u64, len: usize) -> Result<Bytes> {
        let failed = |what: String| Error::io(&self.path, "read", what);
        if offset + len as u64 > reader.file_length() as u64 {
            return Err(failed(format!("the file has only {} bytes now", reader.file_length())));
        }
        let bytes = caught(reader.read_range(offset as usize, len)).await.map_err(failed)?;
        match bytes.len() == len {
            true => Ok(bytes),
            false => Err(failed(format!("received {} instead of {len} bytes", bytes.len()))),
        }
    }
}

/// The result of a read by the library. Its panic is an error: it panics on some invalid packets
/// and responses of DataNodes, and another attempt may use other DataNodes.
async fn caught<T>(
    read: impl Future<Output = std::result::Result<T, HdfsError>>,
) -> std::result::Result<T, String> {
    match AssertUnwindSafe(read).catch_unwind().await {
        Ok(read) => read.map_err(|error| explain(&error)),
        Err(_) => Err("the client library panicked, probably after an invalid response".to_owned()),
    }
}

/// The library decodes only the codec `rs`, which it finds out when a unit is lost.
fn explain(error: &HdfsError) -> String {
    match error {
        HdfsError::UnsupportedErasureCodingPolicy(codec) => format!(
            "a unit of a block cannot be read, and replacing it is supported only for the codec rs ({codec}); restart \
             its DataNode"
        ),
        error => error.to_string(),
    }
}

async fn open_library(
    shared: &Shared,
    library: &Library,
    path: &FilePath,
    inode: &str,
) -> Result<LibraryReader> {
    let client = library.client(shared.namenode.active(), path).await?;
    let opened = shared.env.timeout(shared.limits.read, client.read(inode)).await;
    let Some(opened) = opened else {
        library.discard().await;
        return Err(Error::io(path, "open", "the NameNode did not respond in time"));
    };
    opened.map_err(|error| match error {
        HdfsError::FileNotFound(_) => Error::NotFound { path: path.clone() },
        HdfsError::RPCError(class, _) if class.ends_with("FileNotFoundException") => {
            Error::NotFound { path: path.clone() }
        }
        error => Error::io(path, "open", error.to_string()),
    })
}

impl fs::FileReader for StripedReader {
    fn path(&self) -> &FilePath {
        &self.path
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, len: usize) -> BoxFuture<'_, Result<Bytes>> {
        Box::pin(async move {
            let end = offset.saturating_add(len as u64);
            if end > self.len {
                return Err(Error::PastEnd { path: self.path.clone(), end });
            }
            if len == 0 {
                return Ok(Bytes::new());
            }
            self.read_with_retries(offset, len).await
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IfMissing;

    #[test]
    fn the_library_calls_the_active_namenode_first() {
        let settings = [
            ("dfs.ha.namenodes.ns", "a, b,c"),
            ("dfs.namenode.rpc-address.ns.a", "one:8020"),
            ("dfs.namenode.rpc-address.ns.b", "two:8020"),
            ("dfs.namenode.rpc-address.ns.c", "three:8020"),
        ];
        let options = HdfsOptions {
            url: "hdfs://ns/hbase".to_owned(),
            user: "u".to_owned(),
            settings: settings.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
            limits: Limits::default(),
            if_missing: IfMissing::Create,
        };
        let settings = Settings::parse(&options).unwrap();
        let env = base::testing::env(1);
        let library = Library::new(&env, &options, &settings);
        for (active, names) in [(0, "a,b,c"), (1, "b,c,a"), (2, "c,a,b")] {
            let values = library.values(active);
            assert_eq!(values["dfs.ha.namenodes.ns"], names);
            assert_eq!(values["dfs.client.socket-timeout"], "2000", "for each lost unit");
        }
    }

    #[tokio::test]
    async fn a_panic_of_the_library_is_an_error() {
        let panics = |response: &'static [u8]| async move { Ok::<_, HdfsError>(response[0]) };
        assert_eq!(caught(panics(b"x")).await, Ok(b'x'));
        assert!(caught(panics(b"")).await.unwrap_err().contains("panicked"));
        let fails = async { Err::<u8, _>(HdfsError::ChecksumError) };
        assert!(caught(fails).await.unwrap_err().contains("checksums"));
    }

    #[test]
    fn a_lost_unit_of_another_codec_is_explained() {
        let unsupported = HdfsError::UnsupportedErasureCodingPolicy("codec: xor".to_owned());
        assert!(explain(&unsupported).contains("only for the codec rs (codec: xor)"));
    }

    #[test]
    fn a_read_takes_the_memory_of_its_stripes() {
        let coding = Coding { data_units: 6, parity_units: 3, cell_bytes: 1 << 20 };
        let mib = |offset: u64, len: usize| memory_of(&coding, offset << 10, len << 10) >> 10;
        assert_eq!(mib(0, 1024), 2 * 6 + 1);
        assert_eq!(mib(6 * 1024 - 1, 1), 2 * 6);
        assert_eq!(mib(6 * 1024 - 1, 1024), 3 * 6 + 1, "in two stripes");
        assert_eq!(mib(0, 400 << 10), 256, "it runs alone");
        assert_eq!(memory_of(&coding, u64::MAX, usize::MAX), 256 << 10);
    }

    #[test]
    fn a_read_survives_the_loss_of_all_parity_units() {
        for (data_units, parity_units, limit_s) in [(6, 3, 10), (10, 4, 12), (3, 2, 10)] {
            let coding = Coding { data_units, parity_units, cell_bytes: 1 << 20 };
            let limit = attempt_limit(&Limits::default(), &coding);
            assert_eq!(limit, Duration::from_secs(limit_s));
        }
    }
}
