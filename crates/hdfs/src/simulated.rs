//! A model of HDFS: NameNodes and DataNodes that speak its protocols over an [`Env`]'s network.
//!
//! Only for tests and simulations, with the Cargo feature `simulated`.
//!
//! * [`Journal`]: what survives the end of a NameNode: the namespace, the blocks of its files, and
//!   the results of calls, as in a shared edit log;
//! * [`NameNode`]: a NameNode, active or in standby; `calls`, `blocks`, `leases`: the calls of
//!   clients and DataNodes;
//! * `policies`: storage policies;
//! * [`ReplicaStore`]: what survives the end of a DataNode: its replicas, synced or not;
//! * [`DataNode`]: a DataNode; `writing`, `reading`, `recovery`: its operations;
//! * `ipc`, `wire`, `messages`: the server side of the protocols, and the messages between
//!   NameNodes and DataNodes, which have the same frames as Hadoop's and simpler contents.
//!
//! # What is modelled
//!
//! * **High availability.** One NameNode is active. A call to the other one fails with a
//!   StandbyException. A NameNode that was replaced executes no call any more: the journal refuses
//!   it, as a quorum of JournalNodes does. DataNodes report to both, and a NameNode that started is
//!   in safe mode until the replicas of all complete blocks were reported.
//! * **At most once.** A repeated call of `create`, `rename2`, `delete` or `updatePipeline` has its
//!   first result, also after a failover.
//! * **Leases.** Their holder is a client's name. After the soft limit, the `create` of another
//!   client begins the recovery; after the hard limit the NameNode does. `recoverLease` begins it
//!   at any time. A last block without a known length or replica is removed.
//! * **Locations of open blocks.** A NameNode forgets them when it ends. Later it knows the
//!   DataNodes that have reported a replica.
//! * **Block recovery.** The primary DataNode is the one that was heard most recently, and gets the
//!   command with its next heartbeat. It stops the writers of all replicas, truncates the best ones
//!   to their shortest length, and gives them the recovery id as generation stamp. An attempt
//!   that does not succeed is repeated only after 30 heartbeats.
//! * **Generation stamps.** A DataNode refuses packets and setups that do not belong to the current
//!   stamp and writer of its replica.
//! * **Storage policies.** Each replica has a type of storage, which the policy of its directory
//!   names when the block is allocated. `satisfyStoragePolicy` changes it without delay, or is
//!   refused. DataNodes have all types, and unlimited space of each.
//! * **hflush and hsync.** The end of a DataNode's process loses no byte that it received. The loss
//!   of its machine's power loses bytes that were not synced; a replica that never was may vanish.
//!
//! # What is not modelled
//!
//! Erasure coding, encryption, tokens, quotas, snapshots, permissions, append, and the replication
//! of blocks that have too few replicas. [`DataNodeOptions::syncs_on_close`] also applies to
//! replicas that are finalized by a recovery; in HDFS it does not.

mod blocks;
mod calls;
mod datanode;
mod files;
mod ipc;
mod journal;
mod leases;
mod messages;
mod namenode;
mod policies;
mod reading;
mod recovery;
mod store;
pub(crate) mod wire;
mod writing;

use std::io;
use std::sync::Arc;

use base::BoxFuture;
#[cfg(doc)]
use base::env::Env;

pub use self::datanode::{DataNode, DataNodeOptions};
pub use self::journal::{FileFacts, Journal};
pub use self::namenode::{NameNode, NameNodeOptions};
pub use self::store::ReplicaStore;

/// Receives one line for each notable event of a NameNode or DataNode.
pub type Record = Arc<dyn Fn(&str) + Send + Sync>;

/// An access of a DataNode to its disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskAccess {
    /// A read of a replica.
    Read,
    /// A write to the page cache.
    Write,
    /// A sync of a replica.
    Sync,
}

/// How long the accesses of a DataNode's disk take, and whether they fail.
pub trait DataDisk: Send + Sync + 'static {
    /// Completes when an access is done.
    ///
    /// # Errors
    /// The access failed.
    fn access(&self, access: DiskAccess) -> BoxFuture<'_, io::Result<()>>;
}

#[cfg(test)]
mod tests;
