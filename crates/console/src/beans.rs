//! The beans of both roles: the mapping from metrics to HBase's bean names.
//!
//! Code that counts while it works has its instruments in its own crate. This module has the
//! metrics that are read on demand, and HBase attributes that are not measured here ([`absent`]).

mod absent;
mod connections;
#[cfg(test)]
mod document;
pub mod master;
mod platform;
mod process;
pub mod region_server;
mod regions;
mod sample;
mod sums;
mod tables;
mod users;
mod volumes;

use std::sync::Arc;

use base::config::MemoryParts;
use rpc::server::Shared;

/// Properties that all servers of this process share.
#[derive(Clone)]
pub struct Identity {
    /// The cluster's id.
    pub cluster_id: String,
    /// Host and port of the ZooKeeper endpoint for clients.
    pub zookeeper_quorum: String,
    /// The memory limit of the process (`grampus.memory`), and its parts.
    pub memory: MemoryParts,
    /// The limits that the RPC servers share, with their current use.
    pub shared: Arc<Shared>,
    /// Number of metrics sinks.
    pub sinks: u64,
    /// Metrics of the process's file operations.
    pub files: Arc<fs::measured::Instruments>,
}
