//! The beans of both roles: which figures stand under which of HBase's names.
//!
//! What counts while it works has its instruments beside it, in the crates that do the work; here is what is asked of them
//! when somebody looks, and what HBase has and nobody here counts ([`absent`]).

mod absent;
mod connections;
#[cfg(test)]
mod document;
mod look;
pub(crate) mod master;
mod platform;
mod process;
pub(crate) mod region_server;
mod regions;
mod sums;
mod tables;
mod users;

use std::sync::Arc;

/// What is the same of all servers of this process.
#[derive(Clone)]
pub(crate) struct Identity {
    pub(crate) cluster_id: String,
    /// Host and port where clients find the cluster by ZooKeeper's protocol.
    pub(crate) zookeeper_quorum: String,
    /// What the process may take (`grampus.memory`).
    pub(crate) memory_bytes: u64,
    /// Sinks that metrics are sent to.
    pub(crate) sinks: u64,
    /// What is counted of its files.
    pub(crate) files: Arc<fs::measured::Instruments>,
}
