//! `grampus repair`: what an operator does about regions that cannot be opened, holes, overlaps and unknown directories.
//!
//! The master carries repairs out; this asks it by `ExecProcedure` and prints its answer. Repairs of a directory whose
//! server cannot start are not here: they read the directory itself.

use base::env::Env;
use clap::Args;
use client::{Client, ClientOptions, Registry};

use crate::quorum;

/// Attempts after the first one.
const RETRIES_MAX: u32 = 5;

/// Which cluster to repair.
#[derive(Debug, Clone, Args)]
pub struct RepairTarget {
    /// ZooKeeper servers of the cluster, separated by commas
    #[arg(long, value_name = "HOST:PORT", env = "GRAMPUS_ZOOKEEPER", default_value = "127.0.0.1:2181")]
    pub zookeeper: String,
    /// Add N to ZooKeeper's port, for a server that was started with the same option
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub port_offset: u16,
}

/// A repair of one region.
#[derive(Debug, Clone, Args)]
pub struct RegionRepair {
    /// The encoded name of the region: 32 hexadecimal digits
    #[arg(value_name = "REGION")]
    pub region: String,
    /// The cluster
    #[command(flatten)]
    pub target: RepairTarget,
}

/// A repair that the master carries out.
#[derive(Debug, Clone, Copy)]
pub enum OnlineRepair<'a> {
    /// List what is wrong.
    Status,
    /// Merge regions that overlap.
    Overlaps,
    /// Create empty regions where no region is.
    Holes,
    /// Give a region that lost its directory an empty one.
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

/// Carries a repair out and prints what was done.
///
/// # Errors
/// One line: why it was refused or failed.
pub async fn repair(env: Env, target: &RepairTarget, repair: OnlineRepair<'_>) -> Result<(), String> {
    let quorum = quorum::with_offset(&target.zookeeper, target.port_offset)?;
    let options = ClientOptions { retries_max: RETRIES_MAX, ..ClientOptions::default() };
    let client = Client::new(env, Registry::zookeeper(&quorum, "/hbase"), options);
    let answer = client.admin().repair(repair.name(), repair.region().as_deref()).await;
    println!("{}", answer.map_err(|error| error.to_string())?);
    Ok(())
}
