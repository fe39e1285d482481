//! `grampus tiers`: the storage tiers of a running server, as its region servers last reported
//! them to the master (every three seconds).
//!
//! * `table`: the table.

mod table;

use std::io::{self, IsTerminal};
use std::time::Duration;

use base::env::Env;
use clap::Args;
use client::{Client, ClientOptions, ClusterKey};
use proto::GrampusVolume;

pub(crate) use table::lines;

/// Time limit for the response. The user is waiting.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Options of `grampus tiers`.
#[derive(Debug, Clone, Args)]
pub struct TiersArguments {
    /// ZooKeeper servers of the cluster, separated by commas; a parent znode other than `/hbase` is
    /// appended as `:/parent`
    #[arg(long, value_name = "HOST:PORT", env = "GRAMPUS_ZOOKEEPER", default_value = "127.0.0.1:2181")]
    pub zookeeper: ClusterKey,
    /// Add N to the ZooKeeper port, for a server that was started with the same option
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub port_offset: u16,
}

/// Prints the volumes of all tiers.
///
/// # Errors
/// A one-line message: no server answers.
pub async fn tiers(env: Env, arguments: &TiersArguments) -> Result<(), String> {
    let cluster = arguments.zookeeper.clone().with_port_offset(arguments.port_offset)?;
    let options = ClientOptions {
        rpc_timeout: TIMEOUT,
        operation_timeout: TIMEOUT,
        retries_max: 0,
        ..ClientOptions::default()
    };
    let client = Client::new(env.clone(), cluster.registry(), options);
    let failed = |reason: String| format!("no server answers at {cluster}: {reason}");
    let response = env.timeout(TIMEOUT, volumes(&client)).await;
    let response = response.ok_or_else(|| failed(format!("no response within {} s", TIMEOUT.as_secs())))?;
    let volumes = response.map_err(|error| failed(error.to_string()))?;
    for line in lines(&volumes, io::stdout().is_terminal()) {
        println!("{line}");
    }
    Ok(())
}

/// The volumes of all servers, tier by tier.
///
/// # Errors
/// [`client::Error`].
pub(crate) async fn volumes(client: &Client) -> client::Result<Vec<GrampusVolume>> {
    let request = proto::GetClusterStatusRequest::default();
    let response: proto::GetClusterStatusResponse =
        client.admin().call_master("GetClusterStatus", &request).await?;
    let servers = response.cluster_status.live_servers.into_iter();
    Ok(servers.flat_map(|server| server.server_load.grampus_volumes).collect())
}
