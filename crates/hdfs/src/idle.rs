//! Connections to DataNodes that wait for the next read.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::env::Stream;

/// How long a connection is kept. A DataNode closes it after 4 s
/// (`dfs.datanode.socket.reuse.keepalive`).
const KEPT_FOR: Duration = Duration::from_secs(3);
/// Connections that are kept to one DataNode.
const PER_NODE_MAX: usize = 16;

/// The idle connections, by the UUID of their DataNode. Times are on the monotonic clock.
#[derive(Default)]
pub(crate) struct IdleConnections {
    by_node: Mutex<HashMap<String, OfNode>>,
}

/// The connections to one node and since when they are idle, the oldest first.
type OfNode = Vec<(Duration, Box<dyn Stream>)>;

impl IdleConnections {
    /// Takes the connection to a node that was used last, if one is left.
    pub(crate) fn take(&self, uuid: &str, now: Duration) -> Option<Box<dyn Stream>> {
        let mut by_node = self.lock();
        let idle = by_node.get_mut(uuid)?;
        idle.retain(|(since, _)| *since + KEPT_FOR > now);
        idle.pop().map(|(_, stream)| stream)
    }

    /// Keeps a connection on which no response is outstanding.
    pub(crate) fn put(&self, uuid: &str, stream: Box<dyn Stream>, now: Duration) {
        let mut by_node = self.lock();
        // Connections of nodes that are not read any more must not stay open.
        by_node.retain(|_, idle| {
            idle.retain(|(since, _)| *since + KEPT_FOR > now);
            !idle.is_empty()
        });
        let idle = by_node.entry(uuid.to_owned()).or_default();
        if idle.len() < PER_NODE_MAX {
            idle.push((now, stream));
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, OfNode>> {
        self.by_node.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream() -> Box<dyn Stream> {
        Box::new(tokio::io::duplex(8).0)
    }

    #[test]
    fn connections_are_kept_for_a_time_and_in_bounds() {
        let idle = IdleConnections::default();
        let at = Duration::from_secs(100);
        for _ in 0..PER_NODE_MAX + 3 {
            idle.put("one", stream(), at);
        }
        assert!(idle.take("two", at).is_none());
        let mut taken = 0;
        while idle.take("one", at).is_some() {
            taken += 1;
        }
        assert_eq!(taken, PER_NODE_MAX);
        idle.put("one", stream(), at);
        assert!(idle.take("one", at + KEPT_FOR).is_none(), "the DataNode closes it soon");
    }
}
