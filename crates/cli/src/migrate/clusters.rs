//! The clients of the two clusters.

use std::time::Duration;

use base::env::Env;
use cell::schema::{TableDescriptor, TableName};
use client::{Client, ClientOptions, ClusterKey};

/// Retries of an operation. A step should survive the restart of a server.
const RETRIES: u32 = 40;
/// Unit of the pauses between attempts.
const PAUSE: Duration = Duration::from_millis(50);
/// Maximum pause between two polls for a procedure. Small, because during the switch clients wait
/// for its end.
const POLL_MAX: Duration = Duration::from_millis(10);

/// HBase, from which tables move, and Grampus.
pub(super) struct Clusters {
    pub(super) source: Client,
    pub(super) target: Client,
    pub(super) from: ClusterKey,
    pub(super) to: ClusterKey,
}

impl Clusters {
    /// Does not connect yet.
    pub(super) fn new(env: &Env, from: &ClusterKey, to: &ClusterKey) -> Clusters {
        let options = ClientOptions {
            retries_max: RETRIES,
            pause: PAUSE,
            procedure_poll_max: POLL_MAX,
            with_tags: true,
            ..ClientOptions::default()
        };
        let client = |key: &ClusterKey| Client::new(env.clone(), key.registry(), options.clone());
        Clusters { source: client(from), target: client(to), from: from.clone(), to: to.clone() }
    }

    /// The descriptor of a table of HBase; `None`, with a message, if it was dropped.
    ///
    /// # Errors
    /// HBase's.
    pub(super) async fn describe_if_present(
        &self,
        table: &TableName,
    ) -> Result<Option<TableDescriptor>, String> {
        match self.source.admin().describe(table).await {
            Ok(descriptor) => Ok(Some(descriptor)),
            Err(client::Error::TableNotFound(_)) => {
                println!("{table}: HBase does not have this table any more, so it is not changed");
                Ok(None)
            }
            Err(error) => Err(self.at_source(&error)),
        }
    }

    /// Describes a failure of HBase.
    pub(super) fn at_source(&self, error: &client::Error) -> String {
        format!("HBase at {}: {error}", self.from)
    }

    /// Describes a failure of Grampus.
    pub(super) fn at_target(&self, error: &client::Error) -> String {
        format!("Grampus at {}: {error}", self.to)
    }
}
