//! How many reads one DataNode serves at the same time.
//!
//! Each running read has a connection. Without a limit, many reads of a slow DataNode would use all
//! file descriptors of this process, and all transfer threads of the DataNode
//! (`dfs.datanode.max.transfer.threads`, 4096).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base::env::Env;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::replica::ReplicaFault;

/// Reads of one DataNode that run at the same time; others wait.
pub(crate) const READS_PER_NODE_MAX: usize = 256;

/// The slots of all DataNodes, by their UUID. A cluster has few DataNodes, so none is removed.
#[derive(Default)]
pub(crate) struct ReadSlots {
    by_node: Mutex<HashMap<String, Arc<Semaphore>>>,
}

impl ReadSlots {
    /// Waits for a slot of one DataNode. Fails if too many other reads run there for `limit`.
    pub(crate) async fn acquire(
        &self,
        env: &Env,
        uuid: &str,
        limit: Duration,
    ) -> Result<OwnedSemaphorePermit, ReplicaFault> {
        match env.timeout(limit, self.of(uuid).acquire_owned()).await {
            Some(Ok(slot)) => Ok(slot),
            _ => Err(ReplicaFault::Local(format!("{READS_PER_NODE_MAX} other reads of it are running"))),
        }
    }

    /// The slots of one DataNode.
    fn of(&self, uuid: &str) -> Arc<Semaphore> {
        let mut by_node = self.by_node.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slots) = by_node.get(uuid) {
            return slots.clone();
        }
        let slots = Arc::new(Semaphore::new(READS_PER_NODE_MAX));
        by_node.insert(uuid.to_owned(), slots.clone());
        slots
    }
}
