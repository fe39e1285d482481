//! Leases of open files, and their recovery.

use super::files::{BlockState, IO, NOT_FOUND};
use super::messages::{CommitRecovery, ReplicaReport};
use super::namenode::Execution;
use super::store::ReplicaState;
use super::wire::{Exception, Outcome, encode};
use crate::generated::{BoolResponse, Empty, RecoverLeaseRequest};

const EXPIRED: &str = "org.apache.hadoop.hdfs.server.namenode.LeaseExpiredException";
const BEING_CREATED: &str = "org.apache.hadoop.hdfs.protocol.AlreadyBeingCreatedException";
const IN_PROGRESS: &str = "org.apache.hadoop.hdfs.protocol.RecoveryInProgressException";
/// The holder of leases that the NameNode recovers.
const NAMENODE_HOLDER: &str = "HDFS_NameNode";

impl Execution<'_> {
    /// The id of the open file on which `holder` has the lease. The file is given by its id, else
    /// by its path.
    ///
    /// # Errors
    /// If it does not exist, is closed, or has another holder.
    pub(super) fn check_lease(
        &self,
        src: &str,
        file_id: Option<u64>,
        holder: &str,
    ) -> Result<u64, Exception> {
        let id = match file_id {
            Some(id) => id,
            None => self.names.files.get(src)?.id,
        };
        let file = self.names.files.file(id);
        let file = file.ok_or_else(|| (NOT_FOUND, format!("File does not exist: {src} (inode {id})")))?;
        match &file.holder {
            Some(known) if known == holder => Ok(id),
            Some(known) => Err((EXPIRED, format!("{src} (inode {id}) is owned by {known}, not by {holder}"))),
            None => Err((EXPIRED, format!("{src} (inode {id}) is not open for writing"))),
        }
    }

    /// `recoverLease`: whether the file is closed.
    pub(super) fn recover_lease(&mut self, request: RecoverLeaseRequest) -> Outcome {
        let id = self.names.files.get(&request.src)?.id;
        let file = self.names.files.file(id);
        let file = file.ok_or_else(|| (NOT_FOUND, format!("Path is not a file: {}", request.src)))?;
        let result = match &file.holder {
            None => true,
            Some(_) => self.release(id, &request.client_name)?,
        };
        encode(BoolResponse { result })
    }

    /// The creation of a path where a file exists.
    pub(super) fn creation_conflict(&mut self, id: u64, path: &str, holder: &str) -> Exception {
        let exists = (super::files::EXISTS, format!("{path} already exists"));
        let Some(file) = self.names.files.file(id) else { return exists };
        let Some(known) = file.holder.clone() else { return exists };
        let is_recovering = file.blocks.last().is_some_and(|block| block.recovery_id.is_some());
        let renewed = self.reported.renewed(&known);
        if known == holder || self.now < renewed + self.namenode.options.soft_limit {
            return match is_recovering {
                true => (IN_PROGRESS, format!("Recovery in progress, file {path}")),
                false => (BEING_CREATED, format!("{path} is already being created by {known}")),
            };
        }
        match self.release(id, NAMENODE_HOLDER) {
            Ok(true) => exists,
            Ok(false) => (IN_PROGRESS, format!("Recovery in progress, file {path}")),
            Err(exception) => exception,
        }
    }

    /// Recovers the leases that were not renewed within the hard limit.
    pub(super) fn expire_leases(&mut self) {
        let is_expired =
            |holder: &str| self.now >= self.reported.renewed(holder) + self.namenode.options.hard_limit;
        let open = self.names.files.open_files();
        let expired: Vec<u64> =
            open.filter(|(_, holder)| is_expired(holder)).map(|(file_id, _)| file_id).collect();
        for file_id in expired {
            // Repeated in the next period.
            let _ = self.release(file_id, NAMENODE_HOLDER);
        }
    }

    /// Ends the lease of an open file, or begins the recovery of its last block, with `holder` as
    /// the new holder of the lease. Returns whether the file is closed.
    fn release(&mut self, file_id: u64, holder: &str) -> Result<bool, Exception> {
        self.complete_blocks(file_id);
        let path = self.names.files.path_of(file_id);
        let Some(file) = self.names.files.file(file_id) else { return Ok(true) };
        let is_complete = |state: BlockState| state == BlockState::Complete;
        let Some(last) =
            file.blocks.last().filter(|_| !file.blocks.iter().all(|block| is_complete(block.state)))
        else {
            self.close(file_id);
            return Ok(true);
        };
        let earlier = &file.blocks[..file.blocks.len() - 1];
        if last.state == BlockState::Committed && !earlier.iter().all(|block| is_complete(block.state)) {
            let message = format!("{path}: Committed blocks are waiting to be minimally replicated.");
            return Err((BEING_CREATED, message));
        }
        let block_id = last.id;
        if last.len == 0 && last.state == BlockState::Open && self.known_nodes(last).is_empty() {
            self.names.files.remove_last_block(file_id);
            self.close(file_id);
            self.record(&format!("closes {path} without block {block_id}, which has no replica"));
            return Ok(true);
        }
        self.begin_recovery(block_id);
        if let Some(file) = self.names.files.file_mut(file_id) {
            file.holder = Some(holder.to_owned());
        }
        Ok(false)
    }

    /// Closes a file, all of whose blocks are complete.
    pub(super) fn close(&mut self, file_id: u64) {
        if let Some(file) = self.names.files.file_mut(file_id) {
            file.holder = None;
        }
        self.names.files.touch(file_id, self.now_ms);
    }

    /// `commitBlockSynchronization`: a DataNode has recovered the last block of a file.
    pub(super) fn commit_recovery(&mut self, request: CommitRecovery) -> Outcome {
        let CommitRecovery { block_id, recovery_id, len, is_deleted, nodes } = request;
        let Some((file_id, block)) = self.names.files.block(block_id) else {
            return match is_deleted {
                true => encode(Empty {}),
                false => Err((IO, format!("Block {block_id} not found"))),
            };
        };
        let path = self.names.files.path_of(file_id);
        if block.state == BlockState::Complete {
            return encode(Empty {});
        }
        if block.recovery_id != Some(recovery_id) {
            let message = format!("The recovery id {recovery_id} does not match {:?}", block.recovery_id);
            return Err((IO, message));
        }
        if is_deleted {
            self.names.files.remove_last_block(file_id);
            self.reported.recoveries.remove(&block_id);
        } else {
            if let Some(block) = self.names.files.block_mut(block_id) {
                (block.stamp, block.len) = (recovery_id, len);
                (block.state, block.recovery_id) = (BlockState::Committed, None);
                block.expected = nodes.clone();
            }
            let state = ReplicaState::Finalized.number();
            self.note_recovered(ReplicaReport { block_id, stamp: recovery_id, len, state }, &nodes);
        }
        self.complete_blocks(file_id);
        let file = self.names.files.file(file_id);
        if file.is_some_and(|file| file.blocks.iter().all(|block| block.state == BlockState::Complete)) {
            self.close(file_id);
        }
        let what = match is_deleted {
            true => format!("removes block {block_id} without bytes from {path}"),
            false => format!("closes {path}: block {block_id} has {len} bytes on {}", nodes.join(" ")),
        };
        self.record(&what);
        encode(Empty {})
    }
}
