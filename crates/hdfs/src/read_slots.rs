//! How many reads one DataNode serves at the same time.
//!
//! Each running read has a connection. Without a limit, many reads of a slow DataNode would use all
//! file descriptors of this process, and all transfer threads of the DataNode
//! (`dfs.datanode.max.transfer.threads`, 4096).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Semaphore;

/// Reads of one DataNode that run at the same time; others wait.
pub(crate) const READS_PER_NODE_MAX: usize = 256;

/// The slots of all DataNodes, by their UUID. A cluster has few DataNodes, so none is removed.
#[derive(Default)]
pub(crate) struct ReadSlots {
    by_node: Mutex<HashMap<String, Arc<Semaphore>>>,
}

impl ReadSlots {
    /// The slots of one DataNode.
    pub(crate) fn of(&self, uuid: &str) -> Arc<Semaphore> {
        let mut by_node = self.by_node.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slots) = by_node.get(uuid) {
            return slots.clone();
        }
        let slots = Arc::new(Semaphore::new(READS_PER_NODE_MAX));
        by_node.insert(uuid.to_owned(), slots.clone());
        slots
    }
}
