//! `grampus repair`: repairs unopenable regions, holes, overlaps and unknown directories.
//!
//! The master performs the repairs. This module requests them with `ExecProcedure` and prints the
//! result. Repairs of a directory whose server cannot start are elsewhere: they read the directory
//! without a server.

use base::env::Env;
use clap::Args;
use client::{Client, ClientOptions, ClusterKey};

/// Retries after the first attempt.
const RETRIES_MAX: u32 = 5;

/// The cluster to repair.
#[derive(Debug, Clone, Args)]
pub struct RepairTarget {
    /// ZooKeeper servers of the cluster, separated by commas; a parent znode other than `/hbase` is
    /// appended as `:/parent`
    #[arg(long, value_name = "HOST:PORT", env = "GRAMPUS_ZOOKEEPER", default_value = "127.0.0.1:2181")]
    pub zookeeper: ClusterKey,
    /// Add N to the ZooKeeper port, for a server that was started with the same option
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub port_offset: u16,
}

/// Options of a repair of one region.
#[derive(Debug, Clone, Args)]
pub struct RegionRepair {
    /// Encoded name of the region: 32 hexadecimal digits
    #[arg(value_name = "REGION")]
    pub region: String,
    /// The cluster to repair.
    #[command(flatten)]
    pub target: RepairTarget,
}

/// A repair that the master performs.
#[derive(Debug, Clone, Copy)]
pub enum OnlineRepair<'a> {
    /// List all faults.
    Status,
    /// Merge overlapping regions.
    Overlaps,
    /// Create empty regions for rows that no region covers.
    Holes,
    /// Recreate a region that lost its directory, empty.
    Region(&'a str),
    /// Add the region of a directory to `hbase:meta`.
    Adopt(&'a str),
}

impl OnlineRepair<'_> {
    fn name(self) -> &'static str {
        match self {
            OnlineRepair::Status => "status",
            OnlineRepair::Overlaps => "overlaps",
            OnlineRepair::Holes => "holes",
            OnlineRepair::Region(_) => "region",
            OnlineRepair::Adopt(_) => "adopt",
        }
    }

    fn region(self) -> Option<String> {
        match self {
            OnlineRepair::Region(region) | OnlineRepair::Adopt(region) => Some(region.to_string()),
            _ => None,
        }
    }
}

/// Performs a repair and prints the result.
///
/// # Errors
/// A one-line message: why the repair was refused or failed.
pub async fn repair(env: Env, target: &RepairTarget, repair: OnlineRepair<'_>) -> Result<(), String> {
    let cluster = target.zookeeper.clone().with_port_offset(target.port_offset)?;
    let options = ClientOptions { retries_max: RETRIES_MAX, ..ClientOptions::default() };
    let client = Client::new(env, cluster.registry(), options);
    let answer = client.admin().repair(repair.name(), repair.region().as_deref()).await;
    println!("{}", answer.map_err(|error| error.to_string())?);
    Ok(())
}
