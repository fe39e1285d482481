//! Reports of corrupt replicas.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::env::TaskClass;
use fs::FilePath;
use tracing::debug;

use crate::file::Shared;
use crate::generated::{BadBlocksRequest, Empty, LocatedBlock};
use crate::link::Node;
use crate::located::Replicated;

/// The replicas whose reports wait for the NameNode, by block id and DataNode.
#[derive(Default)]
pub(crate) struct CorruptReplicas {
    reporting: Mutex<HashSet<(u64, String)>>,
}

impl CorruptReplicas {
    fn reporting(&self) -> MutexGuard<'_, HashSet<(u64, String)>> {
        self.reporting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reports a corrupt replica in the background, so that the NameNode replaces it. Does nothing if
/// an earlier report of it still waits.
pub(crate) fn report_corrupt(shared: &Arc<Shared>, path: &FilePath, node: &Node, block: &Replicated) {
    let replica = (block.block.block_id, node.id.datanode_uuid.clone());
    if !shared.corrupt.reporting().insert(replica.clone()) {
        return;
    }
    let bad = LocatedBlock {
        b: block.block.clone(),
        offset: block.offset,
        locs: vec![node.info.clone()],
        corrupt: true,
        block_token: block.token.clone(),
        ..LocatedBlock::default()
    };
    let (shared, path) = (shared.clone(), path.clone());
    shared.env.clone().spawn(TaskClass::Background, async move {
        let request = BadBlocksRequest { blocks: vec![bad] };
        let reported = shared.namenode.call("reportBadBlocks", &request).await;
        if let Err(failure) = reported.map(|Empty {}| ()) {
            debug!(%path, error = failure.message(), "cannot report a corrupt replica");
        }
        shared.corrupt.reporting().remove(&replica);
    });
}
