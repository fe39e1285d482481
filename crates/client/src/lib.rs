//! An HBase client. It locates regions through `hbase:meta`, retries as HBase's client
//! does, and supports batches.
//!
//! ```text
//! let client = Client::new(env, Registry::zookeeper(servers, "/hbase"), ClientOptions::default());
//! let table = client.table(TableName::parse("t")?);
//! table.mutate(&put).await?;
//! let mut scanner = table.scan(Scan::default());
//! while let Some(row) = scanner.next().await? { .. }
//! ```
//!
//! * [`Client`], [`Table`], [`Scanner`], [`Admin`]: the main types;
//! * [`registry`]: locating the first servers;
//! * [`columns`]: typed columns, grouped and aggregated by the servers;
//! * [`Table::bulk_load`]: adding HFiles to regions;
//! * [`locations`]: cached locations of regions;
//! * [`connections`]: shared connections to servers, reopened when lost; also used for calls
//!   between servers;
//! * [`retry`]: which failures are retried, how often, and after which pause;
//! * [`message`]: decoding of rows from responses.
//!
//! Not here: files, and the servers' side of calls.

pub mod admin;
pub mod batch;
mod bulk_load;
mod change;
mod cluster_key;
pub mod columns;
pub mod connections;
pub mod error;
pub mod locations;
pub mod message;
pub mod registry;
pub mod retry;
pub mod scanner;
pub mod table;

use std::sync::Arc;
use std::time::Duration;

use base::env::{Env, TaskClass};
use cell::schema::TableName;
use rpc::client::ConnectOptions;

pub use admin::Admin;
pub use batch::Action;
pub use bulk_load::FileToLoad;
pub use cluster_key::ClusterKey;
pub use connections::{Connections, Peer};
pub use error::{Error, Result};
pub use locations::Location;
pub use message::Row;
pub use registry::Registry;
pub use scanner::{ScanOptions, Scanner};
pub use table::{Endpoint, Table};

use locations::Locations;

/// Options of a client. The defaults are HBase's.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// User name sent to servers.
    pub user: String,
    /// Timeout of one call (`hbase.rpc.timeout`).
    pub rpc_timeout: Duration,
    /// Timeout of an operation including retries (`hbase.client.operation.timeout`).
    pub operation_timeout: Duration,
    /// Timeout of a master procedure (`hbase.client.sync.wait.timeout.msec`).
    pub procedure_timeout: Duration,
    /// Maximum pause between two polls for a master procedure.
    pub procedure_poll_max: Duration,
    /// Maximum number of retries (`hbase.client.retries.number`).
    pub retries_max: u32,
    /// Unit of the pauses between attempts (`hbase.client.pause`).
    pub pause: Duration,
    /// Unit of the pauses after a server reported that it is overloaded
    /// (`hbase.client.pause.server.overloaded`).
    pub overloaded_pause: Duration,
    /// Maximum bytes of one scan response (`hbase.client.scanner.max.result.size`).
    pub scan_bytes_max: u64,
    /// Task class of the connections. If all callers run in one class, use the same one.
    pub class: TaskClass,
    /// Whether scans and batches transfer the tags of cells, such as a cell's own time to live.
    /// HBase's servers send them only to clients that request this codec.
    pub with_tags: bool,
}

impl Default for ClientOptions {
    fn default() -> ClientOptions {
        ClientOptions {
            user: "grampus".into(),
            rpc_timeout: Duration::from_secs(60),
            operation_timeout: Duration::from_secs(1200),
            procedure_timeout: Duration::from_secs(600),
            procedure_poll_max: Duration::from_secs(2),
            retries_max: 15,
            pause: Duration::from_millis(100),
            overloaded_pause: Duration::from_millis(100),
            scan_bytes_max: 2 << 20,
            class: TaskClass::Service,
            with_tags: false,
        }
    }
}

/// A client of one cluster. Cheap to clone; clones share connections and locations.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
}

struct Shared {
    env: Env,
    options: ClientOptions,
    registry: Registry,
    connections: Connections,
    locations: Locations,
}

impl Client {
    /// Creates a client without connecting.
    pub fn new(env: Env, registry: Registry, options: ClientOptions) -> Client {
        let codec = if options.with_tags { rpc::Codec::KeyValueWithTags } else { rpc::Codec::KeyValue };
        let connect =
            ConnectOptions { class: options.class, codec, ..ConnectOptions::for_user(&options.user) };
        let connections = Connections::with_options(env.clone(), connect, options.rpc_timeout);
        Client {
            shared: Arc::new(Shared { env, options, registry, connections, locations: Locations::default() }),
        }
    }

    /// A handle for reads and writes of a table. Does not check whether the table exists.
    pub fn table(&self, name: TableName) -> Table {
        Table::new(self.clone(), name)
    }

    /// A handle for administration.
    pub fn admin(&self) -> Admin {
        Admin::new(self.clone())
    }

    /// The cluster's id, from the registry.
    ///
    /// # Errors
    /// [`Error::Registry`].
    pub async fn cluster_id(&self) -> Result<String> {
        self.shared.registry.cluster_id(&self.shared.env, self.connections()).await
    }

    /// The connections, for direct calls to servers.
    pub fn connections(&self) -> &Connections {
        &self.shared.connections
    }

    /// A nonce group and nonce for a change that must not be applied twice.
    fn nonce(&self) -> (u64, u64) {
        // 0 means no nonce.
        (self.env().random.next_u64().max(1), self.env().random.next_u64().max(1))
    }

    /// The codec of cells in scans and batches.
    fn codec(&self) -> cell::codec::Codec {
        match self.options().with_tags {
            true => cell::codec::Codec::KeyValueWithTags,
            false => cell::codec::Codec::KeyValue,
        }
    }

    fn env(&self) -> &Env {
        &self.shared.env
    }

    fn options(&self) -> &ClientOptions {
        &self.shared.options
    }
}
