//! The recovery of a block, by its primary DataNode.

use super::DiskAccess;
use super::datanode::{DataNode, exception};
use super::ipc::Peer;
use super::messages::{
    CommitRecovery, InitRecovery, RecoveryCommand, ReplicaFound, ReplicaReport, UpdateReplica,
};
use super::store::ReplicaState;
use super::wire::Exception;
use crate::failure::Failure;
use crate::generated::{DatanodeId, Empty};
use prost::Message;

/// A replica that takes part in a recovery.
struct Found {
    node: DatanodeId,
    replica: ReplicaReport,
}

fn failure((class, message): Exception) -> Failure {
    Failure::Remote { class: class.to_owned(), message }
}

impl DataNode {
    /// Recovers a block, and reports the result to the NameNode.
    ///
    /// # Errors
    /// Why it was not recovered. The NameNode repeats the command later.
    pub(super) async fn recover(&self, namenode: &Peer, command: RecoveryCommand) -> Result<(), String> {
        let RecoveryCommand { block_id, stamp, recovery_id, nodes } = command;
        let nodes: Vec<DatanodeId> =
            nodes.iter().filter_map(|id| DatanodeId::decode(id.clone()).ok()).collect();
        let (mut found, mut failed) = (Vec::new(), Vec::new());
        for node in &nodes {
            match self.init_on(node, InitRecovery { block_id, stamp, recovery_id }).await {
                Ok(Some(replica)) if replica.len > 0 => found.push(Found { node: node.clone(), replica }),
                // A replica without bytes takes no part.
                Ok(_) => {}
                Err(failure) if failure.is("RecoveryInProgressException") => return Err(failure.message()),
                Err(failure) => failed.push(format!("{}: {}", node.datanode_uuid, failure.message())),
            }
        }
        if failed.len() == nodes.len() {
            return Err(format!("all DataNodes failed: {}", failed.join(", ")));
        }
        let (len, recovered) = match best(&found) {
            Some((len, chosen)) => (len, self.update_all(&chosen, block_id, recovery_id, len).await?),
            None => (0, Vec::new()),
        };
        let is_deleted = recovered.is_empty();
        let result = CommitRecovery { block_id, recovery_id, len, is_deleted, nodes: recovered };
        let committed = namenode.call("commitBlockSynchronization", &result).await;
        committed.map(|Empty {}| ()).map_err(|failure| failure.message())
    }

    /// The ids of the DataNodes whose replicas have now `len` bytes.
    ///
    /// # Errors
    /// If all of them failed.
    async fn update_all(
        &self,
        chosen: &[&Found],
        block_id: u64,
        recovery_id: u64,
        len: u64,
    ) -> Result<Vec<String>, String> {
        let (mut updated, mut last) = (Vec::new(), String::new());
        for Found { node, .. } in chosen {
            match self.update_on(node, UpdateReplica { block_id, recovery_id, len }).await {
                Ok(()) => updated.push(node.datanode_uuid.clone()),
                Err(failure) => last = failure.message(),
            }
        }
        if updated.is_empty() { Err(last) } else { Ok(updated) }
    }

    async fn init_on(
        &self,
        node: &DatanodeId,
        request: InitRecovery,
    ) -> Result<Option<ReplicaReport>, Failure> {
        if node.datanode_uuid == self.id.datanode_uuid {
            let InitRecovery { block_id, stamp, recovery_id } = request;
            let begun = self.store.begin_recovery(block_id, stamp, recovery_id);
            return begun.map_err(|refused| failure(exception(refused)));
        }
        let found: ReplicaFound = self.peer(node).call("initReplicaRecovery", &request).await?;
        Ok(found.replica)
    }

    async fn update_on(&self, node: &DatanodeId, request: UpdateReplica) -> Result<(), Failure> {
        if node.datanode_uuid == self.id.datanode_uuid {
            let UpdateReplica { block_id, recovery_id, len } = request;
            return self.end_recovery(block_id, recovery_id, len).await.map_err(failure);
        }
        let Empty {} = self.peer(node).call("updateReplicaUnderRecovery", &request).await?;
        Ok(())
    }

    fn peer(&self, node: &DatanodeId) -> Peer {
        Peer::new(&self.env, &node.ip_addr, node.xfer_port as u16 + 1)
    }

    /// Truncates and finalizes a replica of this DataNode.
    pub(super) async fn end_recovery(
        &self,
        block_id: u64,
        recovery_id: u64,
        len: u64,
    ) -> Result<(), Exception> {
        let access = if self.options.syncs_on_close { DiskAccess::Sync } else { DiskAccess::Write };
        let io = |error: std::io::Error| (super::files::IO, error.to_string());
        self.disk.access(access).await.map_err(io)?;
        let syncs = self.options.syncs_on_close;
        self.store.end_recovery(block_id, recovery_id, len, syncs).map_err(exception)
    }
}

/// The length of the recovered block, and the replicas that take part: finalized ones, and open
/// ones of the same length; else those in the best state, of which the shortest counts.
fn best(found: &[Found]) -> Option<(u64, Vec<&Found>)> {
    let state = |found: &Found| found.replica.state;
    let best = found.iter().map(state).min()?;
    if best == ReplicaState::Finalized.number() {
        let len = found.iter().find(|found| state(found) == best)?.replica.len;
        let takes_part = |found: &&Found| {
            state(found) == best || (state(found) == ReplicaState::Open.number() && found.replica.len == len)
        };
        return Some((len, found.iter().filter(takes_part).collect()));
    }
    let chosen: Vec<&Found> = found.iter().filter(|found| state(found) == best).collect();
    let len = chosen.iter().map(|found| found.replica.len).min()?;
    Some((len, chosen))
}
