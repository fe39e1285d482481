//! Layer 4: an HBase client: finds regions through `hbase:meta`, tries again as HBase's client does, asks in batches.
//!
//! ```text
//! let client = Client::new(env, Registry::zookeeper(servers, "/hbase"), ClientOptions::default());
//! let table = client.table(TableName::parse("t")?);
//! table.mutate(&put).await?;
//! let mut scanner = table.scan(Scan::default());
//! while let Some(row) = scanner.next().await? { .. }
//! ```
//!
//! * [`Client`], [`Table`], [`Scanner`], [`Admin`]: what one works with;
//! * [`registry`]: how the first servers are found;
//! * [`columns`]: typed columns, grouped and added up by the servers that have them;
//! * [`locations`]: which server has which region, remembered until it proves wrong;
//! * [`connections`]: connections to servers, shared, made anew when lost; also for calls from server to server;
//! * [`retry`]: what is tried again, how often and after which pause;
//! * [`message`]: rows, out of answers.
//!
//! Knows nothing about: files, how a server does what it is asked.

pub mod admin;
pub mod batch;
mod change;
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
pub use connections::{Connections, Peer};
pub use error::{Error, Result};
pub use locations::Location;
pub use message::Row;
pub use registry::Registry;
pub use scanner::{ScanOptions, Scanner};
pub use table::{Endpoint, Table};

use locations::Locations;

/// How a client behaves. The defaults are those of HBase's.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// The user it says it is.
    pub user: String,
    /// Time for one call (`hbase.rpc.timeout`).
    pub rpc_timeout: Duration,
    /// Time for an operation with all its tries (`hbase.client.operation.timeout`).
    pub operation_timeout: Duration,
    /// Time for a procedure of the master (`hbase.client.sync.wait.timeout.msec`).
    pub procedure_timeout: Duration,
    /// Tries after the first (`hbase.client.retries.number`).
    pub retries_max: u32,
    /// The unit of pauses between tries (`hbase.client.pause`).
    pub pause: Duration,
    /// The same, after a server said that it has too much to do (`hbase.client.pause.server.overloaded`).
    pub overloaded_pause: Duration,
    /// Bytes of one answer to a scan (`hbase.client.scanner.max.result.size`).
    pub scan_bytes_max: u64,
    /// The threads that serve the connections; of a client that is asked by tasks of one class, best the same.
    pub class: TaskClass,
}

impl Default for ClientOptions {
    fn default() -> ClientOptions {
        ClientOptions {
            user: "grampus".into(),
            rpc_timeout: Duration::from_secs(60),
            operation_timeout: Duration::from_secs(1200),
            procedure_timeout: Duration::from_secs(600),
            retries_max: 15,
            pause: Duration::from_millis(100),
            overloaded_pause: Duration::from_millis(100),
            scan_bytes_max: 2 << 20,
            class: TaskClass::Service,
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
    /// A client that has not connected yet.
    pub fn new(env: Env, registry: Registry, options: ClientOptions) -> Client {
        let connect = ConnectOptions { class: options.class, ..ConnectOptions::for_user(&options.user) };
        let connections = Connections::with(env.clone(), connect, options.rpc_timeout);
        Client {
            shared: Arc::new(Shared { env, options, registry, connections, locations: Locations::default() }),
        }
    }

    /// A table to read and write; whether it exists shows when it is used.
    pub fn table(&self, name: TableName) -> Table {
        Table::new(self.clone(), name)
    }

    /// Tables and the cluster to be administered.
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

    /// The connections, to talk to servers directly.
    pub fn connections(&self) -> &Connections {
        &self.shared.connections
    }

    /// A name for a change that must not be done twice: nonce group and nonce.
    fn nonce(&self) -> (u64, u64) {
        // 0 stands for none.
        (self.env().random.next_u64().max(1), self.env().random.next_u64().max(1))
    }

    fn env(&self) -> &Env {
        &self.shared.env
    }

    fn options(&self) -> &ClientOptions {
        &self.shared.options
    }
}
