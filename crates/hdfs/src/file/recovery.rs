//! The recovery of a store file's block after the loss of a DataNode.
//!
//! This is HDFS's pipeline recovery: the NameNode gives the block a new generation stamp, the other
//! DataNodes continue their replicas with it, the NameNode is informed of the new set of DataNodes,
//! and the packets that were not acknowledged are sent again. The alternative, to write the whole
//! block again elsewhere, needs the bytes of the block in memory, which is 128 MiB for each file
//! that is written. Recovery needs only the packets that are not acknowledged, a few MiB, and they
//! share the bytes of their first transmission.
//!
//! It differs from Hadoop's client in two points:
//!
//! * The block continues with one connection to each DataNode instead of a pipeline. A pipeline
//!   hides which of its nodes is slow or dead, so the first attempt includes all nodes that are not
//!   known to have failed, and those that do not respond are left out of the next one. The next
//!   block is a pipeline again.
//! * No DataNode is added to the block. The file fails if less than half of the replicas are left
//!   with which the block began. Otherwise the NameNode adds the missing ones when the file is
//!   complete.
//!
//! A replica that was left out keeps an older generation stamp, so HDFS never reads it.

use std::time::Duration;

use fs::{Error, Result};
use tracing::warn;

use super::OpenFile;
use crate::block::{AckLimits, BlockFault};
use crate::failure::Failure;
use crate::generated::{
    Empty, ExtendedBlock, LocatedBlock, UpdateBlockForPipelineRequest, UpdateBlockForPipelineResponse,
    UpdatePipelineRequest,
};
use crate::link::{Node, Target};

/// How long a DataNode may take to stop the old connection and to continue its replica.
const SETUP: Duration = Duration::from_secs(5);

impl OpenFile {
    /// Returns when an operation on the current block is done, with recoveries if it failed.
    pub(super) async fn settle(
        &mut self,
        operation: &'static str,
        mut outcome: std::result::Result<(), BlockFault>,
    ) -> Result<()> {
        while let Err(fault) = outcome {
            outcome = self.recover_block(operation, fault).await?;
        }
        Ok(())
    }

    /// Recovers the current block. Returns the outcome of the operation that had failed.
    async fn recover_block(
        &mut self,
        operation: &'static str,
        mut fault: BlockFault,
    ) -> Result<std::result::Result<(), BlockFault>> {
        let nodes = self.block.as_mut().and_then(|block| block.begin_recovery(&fault));
        let Some(mut nodes) = nodes else { return Err(self.explain(operation, fault).await) };
        loop {
            if !self.block.as_ref().is_some_and(|block| block.can_continue_with(nodes.len())) {
                return Err(self.explain(operation, fault).await);
            }
            if fault.is_certain {
                self.suspect(&fault);
            }
            warn!(path = %self.path, reason = %fault.what, "a DataNode failed; continuing the block on the others");
            let located = self.new_generation().await?;
            let stamp = located.b.generation_stamp;
            match self.reconnect(&located, &nodes).await {
                Ok(()) => {
                    self.update_pipeline(stamp, &nodes).await?;
                    return Ok(self.resume(stamp).await);
                }
                // None of them responds, or this machine cannot connect: none can be left out.
                Err(failed) if failed.nodes.is_empty() => return Err(self.explain(operation, failed).await),
                Err(failed) => {
                    nodes.retain(|node| !node.is_in(&failed.nodes));
                    fault = failed;
                }
            }
        }
    }

    fn acked_block(&self) -> ExtendedBlock {
        self.block.as_ref().expect("a block is recovered").acked_block()
    }

    /// A new generation stamp and token for the block.
    async fn new_generation(&mut self) -> Result<LocatedBlock> {
        let (block, client_name) = (self.acked_block(), self.client_name.clone());
        let request = UpdateBlockForPipelineRequest { block, client_name };
        let updated = self.shared.namenode.call("updateBlockForPipeline", &request).await;
        match updated {
            Ok(UpdateBlockForPipelineResponse { block }) => Ok(block),
            Err(failure) => Err(self.recovery_error(&failure).await),
        }
    }

    async fn reconnect(
        &mut self,
        located: &LocatedBlock,
        nodes: &[Node],
    ) -> std::result::Result<(), BlockFault> {
        let block_bytes = self.block_bytes();
        let block = self.block.as_mut().expect("a block is recovered");
        let target = Target {
            block: &block.acked_block(),
            token: &located.block_token,
            client_name: &self.client_name,
            block_bytes,
            is_lazy: self.is_lazy,
            by_hostname: self.shared.settings.by_hostname,
            stage: block.recovery_stage(located.b.generation_stamp),
        };
        block.reconnect(nodes, &target, SETUP).await
    }

    async fn update_pipeline(&mut self, stamp: u64, nodes: &[Node]) -> Result<()> {
        let old_block = self.acked_block();
        let request = UpdatePipelineRequest {
            client_name: self.client_name.clone(),
            new_block: ExtendedBlock { generation_stamp: stamp, ..old_block.clone() },
            old_block,
            new_nodes: nodes.iter().map(|node| node.encoded_id.clone()).collect(),
            storage_ids: nodes.iter().map(|node| node.storage_id.clone().unwrap_or_default()).collect(),
        };
        let updated = self.shared.namenode.call("updatePipeline", &request).await;
        match updated {
            Ok(Empty {}) => Ok(()),
            Err(failure) => Err(self.recovery_error(&failure).await),
        }
    }

    async fn resume(&mut self, stamp: u64) -> std::result::Result<(), BlockFault> {
        let limits = AckLimits { first: self.shared.limits.data_ack, laggard: None };
        self.block.as_mut().expect("a block is recovered").resume(stamp, limits).await
    }

    /// The error of a call of the recovery. If the file was fenced or removed, the NameNode's
    /// exception about the block may not say so.
    async fn recovery_error(&mut self, failure: &Failure) -> Error {
        match self.lost_lease().await {
            true => Error::TakenOver { path: self.path.clone() },
            false => self.lease_error("recover block", failure),
        }
    }
}
