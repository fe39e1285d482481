//! Blocks: where they are written, and which DataNodes have replicas.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use prost::Message;

use super::files::{Block, BlockState, IO};
use super::messages::{Commands, DELETED, Heartbeat, RecoveryCommand, ReplicaReport};
use super::namenode::Execution;
use super::store::ReplicaState;
use super::wire::{Exception, Outcome, encode};
use crate::generated::{DatanodeId, DatanodeInfo, ExtendedBlock, LocatedBlock};

const POOL: &str = "pool";
/// After this number of silent heartbeats a DataNode is stale (HDFS:
/// `dfs.namenode.stale.datanode.interval`, 30 s).
const STALE_HEARTBEATS: u32 = 30;
/// A recovery that has not ended after this number of heartbeats may be repeated.
const RECOVERY_HEARTBEATS: u32 = 30;

/// A DataNode that has registered.
pub(super) struct ReportedNode {
    /// Its encoded id.
    id: Bytes,
    heard: Duration,
    replicas: BTreeMap<u64, ReplicaReport>,
}

/// A recovery of a block.
pub(super) struct RecoveryAttempt {
    began: Duration,
    primary: Option<String>,
    /// Not sent yet.
    command: Option<RecoveryCommand>,
    /// The DataNodes that were the primary of earlier attempts.
    tried: BTreeSet<String>,
}

impl Execution<'_> {
    /// The heartbeat of a DataNode.
    pub(super) fn heartbeat(&mut self, heartbeat: Heartbeat, is_active: bool) -> Outcome {
        let id = DatanodeId::decode(heartbeat.id.clone()).map_err(|error| (IO, error.to_string()))?;
        let uuid = id.datanode_uuid;
        if heartbeat.is_full {
            let node = ReportedNode { id: heartbeat.id, heard: self.now, replicas: BTreeMap::new() };
            self.reported.nodes.insert(uuid.clone(), node);
        }
        let Some(node) = self.reported.nodes.get_mut(&uuid) else {
            return encode(Commands { wants_full: true, ..Commands::default() });
        };
        node.heard = self.now;
        for report in heartbeat.replicas {
            match report.state {
                DELETED => drop(node.replicas.remove(&report.block_id)),
                _ => drop(node.replicas.insert(report.block_id, report)),
            }
        }
        let mut commands = Commands::default();
        if is_active && heartbeat.is_regular {
            commands.deletions = self.superfluous(&uuid);
            commands.recoveries = self.recoveries_for(&uuid);
        }
        encode(commands)
    }

    /// The replicas of a DataNode that are deleted: of unknown blocks, and those that differ from a
    /// complete block that has other replicas.
    fn superfluous(&self, uuid: &str) -> Vec<u64> {
        let replicas = self.reported.nodes[uuid].replicas.values();
        let is_superfluous = |replica: &&ReplicaReport| match self.names.files.block(replica.block_id) {
            None => true,
            Some((_, block)) => {
                let is_valid = replica.stamp == block.stamp && replica.len == block.len;
                let is_waiting = replica.state == ReplicaState::Waiting.number();
                block.state == BlockState::Complete
                    && (is_waiting || replica.stamp < block.stamp || (replica.is_final() && !is_valid))
                    && !self.valid_nodes(block).is_empty()
            }
        };
        replicas.filter(is_superfluous).map(|replica| replica.block_id).collect()
    }

    fn recoveries_for(&mut self, uuid: &str) -> Vec<RecoveryCommand> {
        let own = |attempt: &&mut RecoveryAttempt| attempt.primary.as_deref() == Some(uuid);
        self.reported
            .recoveries
            .values_mut()
            .filter(own)
            .filter_map(|attempt| attempt.command.take())
            .collect()
    }

    fn is_live(&self, node: &ReportedNode) -> bool {
        self.now.saturating_sub(node.heard) < self.namenode.options.dead_after
    }

    /// The DataNodes that have a finalized replica of exactly this block. Corrupt replicas count
    /// only if there is no other one.
    pub(super) fn valid_nodes(&self, block: &Block) -> Vec<&String> {
        let is_valid = |node: &ReportedNode| {
            node.replicas.get(&block.id).is_some_and(|replica| {
                replica.is_final() && replica.stamp == block.stamp && replica.len == block.len
            })
        };
        let nodes = self.reported.nodes.iter().filter(|(_, node)| self.is_live(node) && is_valid(node));
        let (corrupt, intact): (Vec<&String>, Vec<&String>) = nodes
            .map(|(uuid, _)| uuid)
            .partition(|uuid| self.reported.corrupt.contains(&(block.id, (*uuid).clone())));
        if intact.is_empty() { corrupt } else { intact }
    }

    /// The DataNodes of an open block, as far as this NameNode knows. The journal does not contain
    /// them, so after a restart or failover they are those that reported a replica.
    pub(super) fn known_nodes(&self, block: &Block) -> Vec<String> {
        if self.reported.placed.contains(&block.id) {
            return block.expected.clone();
        }
        let has_replica = |node: &ReportedNode| {
            node.replicas.get(&block.id).is_some_and(|replica| replica.stamp >= block.stamp)
        };
        let nodes = self.reported.nodes.iter().filter(|(_, node)| has_replica(node));
        nodes.map(|(uuid, _)| uuid.clone()).collect()
    }

    /// Numbers of complete blocks without a known replica, and of complete blocks.
    pub(super) fn unreported_blocks(&self) -> (usize, usize) {
        let is_complete = |block: &&Block| block.state == BlockState::Complete;
        let complete: Vec<&Block> = self.names.files.blocks().filter(is_complete).collect();
        let missing = complete.iter().filter(|block| self.valid_nodes(block).is_empty()).count();
        (missing, complete.len())
    }

    /// Live DataNodes for a new block, in random order.
    ///
    /// # Errors
    /// If there is none.
    pub(super) fn choose_nodes(&self, wanted: usize, excluded: &[Bytes]) -> Result<Vec<String>, Exception> {
        let uuid_of = |info: &Bytes| {
            let id = DatanodeInfo::decode(info.clone()).ok()?.id;
            Some(DatanodeId::decode(id).ok()?.datanode_uuid)
        };
        let excluded: BTreeSet<String> = excluded.iter().filter_map(uuid_of).collect();
        let live = self.reported.nodes.iter().filter(|(_, node)| self.is_live(node));
        let chosen = live.map(|(uuid, _)| uuid.clone()).filter(|uuid| !excluded.contains(uuid));
        let mut chosen = self.shuffled(chosen.collect());
        chosen.truncate(wanted);
        if chosen.is_empty() {
            let known = self.reported.nodes.len();
            let message = format!(
                "File could only be written to 0 of the 1 minReplication nodes. There are {known} \
                 datanode(s) running and {} node(s) are excluded in this operation.",
                excluded.len()
            );
            return Err((IO, message));
        }
        Ok(chosen)
    }

    fn shuffled<T>(&self, mut items: Vec<T>) -> Vec<T> {
        for at in (1..items.len()).rev() {
            let other = self.namenode.env.random.next_u64() % (at as u64 + 1);
            items.swap(at, other as usize);
        }
        items
    }

    /// A block on the given DataNodes, at this position of its file.
    pub(super) fn located(&self, block: &Block, nodes: &[String], offset: u64) -> LocatedBlock {
        let known = |uuid: &String| {
            let id = self.reported.nodes.get(uuid)?.id.clone();
            let info: Bytes = DatanodeInfo { id }.encode_to_vec().into();
            Some((info, (format!("storage-{uuid}"), block.type_on(uuid))))
        };
        let (locs, storages): (Vec<Bytes>, Vec<(String, u32)>) = nodes.iter().filter_map(known).unzip();
        let (storage_ids, storage_types) = storages.into_iter().unzip();
        LocatedBlock {
            b: extended(block),
            offset,
            corrupt: false,
            block_token: Bytes::new(),
            storage_types,
            storage_ids,
            locs,
        }
    }

    /// The complete blocks of a file with their replicas.
    pub(super) fn located_blocks<'b>(&self, blocks: impl Iterator<Item = &'b Block>) -> Vec<LocatedBlock> {
        let mut offset = 0;
        let locate = |block: &Block| {
            let nodes = self.shuffled(self.valid_nodes(block).into_iter().cloned().collect());
            let located = self.located(block, &nodes, offset);
            offset += block.len;
            located
        };
        blocks.map(locate).collect()
    }

    /// Completes the committed blocks of a file that have replicas.
    pub(super) fn complete_blocks(&mut self, file_id: u64) {
        let Some(file) = self.names.files.file(file_id) else { return };
        let committed = file.blocks.iter().filter(|block| block.state == BlockState::Committed);
        let complete = committed.filter(|block| !self.valid_nodes(block).is_empty());
        let complete: Vec<u64> = complete.map(|block| block.id).collect();
        for block_id in complete {
            if let Some(block) = self.names.files.block_mut(block_id) {
                block.state = BlockState::Complete;
            }
        }
    }

    /// Begins the recovery of a block, unless one runs.
    pub(super) fn begin_recovery(&mut self, block_id: u64) {
        let (now, heartbeat) = (self.now, self.namenode.options.heartbeat);
        let previous = self.reported.recoveries.get(&block_id);
        let is_running = |attempt: &RecoveryAttempt| now < attempt.began + heartbeat * RECOVERY_HEARTBEATS;
        if previous.is_some_and(is_running) {
            return;
        }
        let mut tried = previous.map(|attempt| attempt.tried.clone()).unwrap_or_default();
        let recovery_id = self.names.next_stamp();
        let Some(block) = self.names.files.block_mut(block_id) else { return };
        block.recovery_id = Some(recovery_id);
        let block = block.clone();
        let (stamp, expected) = (block.stamp, self.known_nodes(&block));
        let heard = |uuid: &String| self.reported.nodes.get(uuid).map(|node| node.heard);
        let is_fresh =
            |uuid: &&String| heard(uuid).is_some_and(|heard| now < heard + heartbeat * STALE_HEARTBEATS);
        if expected.iter().filter(is_fresh).all(|uuid| tried.contains(uuid)) {
            tried.clear();
        }
        let untried = expected.iter().filter(is_fresh).filter(|uuid| !tried.contains(*uuid));
        let primary = untried.max_by_key(|uuid| heard(uuid)).cloned();
        tried.extend(primary.clone());
        let mut nodes: Vec<&String> = expected.iter().filter(is_fresh).collect();
        if nodes.len() < 2 {
            nodes = expected.iter().collect();
        }
        let ids = nodes.iter().filter_map(|uuid| Some(self.reported.nodes.get(*uuid)?.id.clone()));
        let command = RecoveryCommand { block_id, stamp, recovery_id, nodes: ids.collect() };
        let on = primary.as_deref().unwrap_or("no DataNode");
        let path = self.names.files.block(block_id).map(|(file_id, _)| self.names.files.path_of(file_id));
        let path = path.unwrap_or_default();
        self.record(&format!("recovers {path}: block {block_id}, stamp {stamp} -> {recovery_id}, on {on}"));
        let attempt = RecoveryAttempt { began: now, primary, command: Some(command), tried };
        self.reported.recoveries.insert(block_id, attempt);
    }

    /// Records the replicas that a recovery left.
    pub(super) fn note_recovered(&mut self, report: ReplicaReport, nodes: &[String]) {
        self.reported.recoveries.remove(&report.block_id);
        for uuid in nodes {
            if let Some(node) = self.reported.nodes.get_mut(uuid) {
                node.replicas.insert(report.block_id, report);
            }
        }
    }
}

/// A block as clients know it.
pub(super) fn extended(block: &Block) -> ExtendedBlock {
    ExtendedBlock {
        pool_id: POOL.to_owned(),
        block_id: block.id,
        generation_stamp: block.stamp,
        num_bytes: Some(block.len),
    }
}
