//! Messages between NameNodes and DataNodes.

use bytes::Bytes;

use super::store::ReplicaState;

/// State number of a replica that was deleted.
pub(super) const DELETED: u32 = 9;

/// A replica of a DataNode.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(super) struct ReplicaReport {
    #[prost(uint64, required, tag = "1")]
    pub(super) block_id: u64,
    #[prost(uint64, required, tag = "2")]
    pub(super) stamp: u64,
    #[prost(uint64, required, tag = "3")]
    pub(super) len: u64,
    /// [`ReplicaState::number`] or [`DELETED`].
    #[prost(uint32, required, tag = "4")]
    pub(super) state: u32,
}

impl ReplicaReport {
    pub(super) fn is_final(&self) -> bool {
        self.state == ReplicaState::Finalized.number()
    }
}

/// `sendHeartbeat`: what changed at a DataNode.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Heartbeat {
    /// Its encoded id.
    #[prost(bytes = "bytes", required, tag = "1")]
    pub(super) id: Bytes,
    /// Whether all replicas are reported, after the DataNode or the NameNode started.
    #[prost(bool, required, tag = "2")]
    pub(super) is_full: bool,
    #[prost(message, repeated, tag = "3")]
    pub(super) replicas: Vec<ReplicaReport>,
    /// Whether it is a regular heartbeat, whose response has commands.
    #[prost(bool, required, tag = "4")]
    pub(super) is_regular: bool,
}

/// The response to a heartbeat.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Commands {
    /// Whether the NameNode does not know the DataNode.
    #[prost(bool, required, tag = "1")]
    pub(super) wants_full: bool,
    /// Blocks whose replicas are deleted.
    #[prost(uint64, repeated, tag = "2")]
    pub(super) deletions: Vec<u64>,
    #[prost(message, repeated, tag = "3")]
    pub(super) recoveries: Vec<RecoveryCommand>,
}

/// The command to recover a block.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct RecoveryCommand {
    #[prost(uint64, required, tag = "1")]
    pub(super) block_id: u64,
    #[prost(uint64, required, tag = "2")]
    pub(super) stamp: u64,
    /// The new generation stamp.
    #[prost(uint64, required, tag = "3")]
    pub(super) recovery_id: u64,
    /// The encoded ids of the DataNodes that may have replicas.
    #[prost(bytes = "bytes", repeated, tag = "4")]
    pub(super) nodes: Vec<Bytes>,
}

/// `initReplicaRecovery`.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(super) struct InitRecovery {
    #[prost(uint64, required, tag = "1")]
    pub(super) block_id: u64,
    #[prost(uint64, required, tag = "2")]
    pub(super) stamp: u64,
    #[prost(uint64, required, tag = "3")]
    pub(super) recovery_id: u64,
}

/// The response to `initReplicaRecovery`: the replica, if there is one.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(super) struct ReplicaFound {
    #[prost(message, optional, tag = "1")]
    pub(super) replica: Option<ReplicaReport>,
}

/// `updateReplicaUnderRecovery`.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(super) struct UpdateReplica {
    #[prost(uint64, required, tag = "1")]
    pub(super) block_id: u64,
    #[prost(uint64, required, tag = "2")]
    pub(super) recovery_id: u64,
    #[prost(uint64, required, tag = "3")]
    pub(super) len: u64,
}

/// `commitBlockSynchronization`: the result of a recovery.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct CommitRecovery {
    #[prost(uint64, required, tag = "1")]
    pub(super) block_id: u64,
    #[prost(uint64, required, tag = "2")]
    pub(super) recovery_id: u64,
    #[prost(uint64, required, tag = "3")]
    pub(super) len: u64,
    /// Whether no DataNode has a byte of the block.
    #[prost(bool, required, tag = "4")]
    pub(super) is_deleted: bool,
    /// The ids of the DataNodes that have the recovered replica.
    #[prost(string, repeated, tag = "5")]
    pub(super) nodes: Vec<String>,
}
