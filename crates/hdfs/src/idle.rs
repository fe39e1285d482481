//! Connections to DataNodes that wait for the next read.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::env::{Env, Stream, TaskClass};

/// How long a connection is kept. A DataNode closes it after 4 s
/// (`dfs.datanode.socket.reuse.keepalive`).
const KEPT_FOR: Duration = Duration::from_secs(3);
/// Connections that are kept to one DataNode.
const PER_NODE_MAX: usize = 16;

/// The idle connections. Times are on the monotonic clock.
#[derive(Default)]
pub(crate) struct IdleConnections {
    kept: Arc<Mutex<Kept>>,
}

#[derive(Default)]
struct Kept {
    /// By the UUID of their DataNode. Ordered, so that connections are closed in the same order in
    /// each run of a simulation.
    by_node: BTreeMap<String, OfNode>,
    /// Whether a task closes expired connections. It runs while there are connections.
    is_swept: bool,
}

/// The connections to one node and since when they are idle, the oldest first.
type OfNode = Vec<(Duration, Box<dyn Stream>)>;

impl IdleConnections {
    /// Takes the connection to a node that was used last, if one is left.
    pub(crate) fn take(&self, uuid: &str, now: Duration) -> Option<Box<dyn Stream>> {
        let mut kept = lock(&self.kept);
        let idle = kept.by_node.get_mut(uuid)?;
        idle.retain(|(since, _)| *since + KEPT_FOR > now);
        idle.pop().map(|(_, stream)| stream)
    }

    /// Keeps a connection on which no response is outstanding.
    pub(crate) fn put(&self, env: &Env, uuid: &str, stream: Box<dyn Stream>) {
        if !self.add(uuid, stream, env.clock.monotonic()) {
            sweep(env, &self.kept);
        }
    }

    /// Returns whether a task closes expired connections; otherwise the caller starts it.
    fn add(&self, uuid: &str, stream: Box<dyn Stream>, now: Duration) -> bool {
        let mut kept = lock(&self.kept);
        let idle = kept.by_node.entry(uuid.to_owned()).or_default();
        idle.retain(|(since, _)| *since + KEPT_FOR > now);
        if idle.len() < PER_NODE_MAX {
            idle.push((now, stream));
        }
        std::mem::replace(&mut kept.is_swept, true)
    }
}

/// Closes expired connections in the background, until none is left. Without this, connections that
/// the DataNode has closed would keep their descriptors until the next read.
fn sweep(env: &Env, kept: &Arc<Mutex<Kept>>) {
    let (clock, kept) = (env.clock.clone(), kept.clone());
    env.spawn(TaskClass::Service, async move {
        loop {
            clock.sleep(KEPT_FOR).await;
            let now = clock.monotonic();
            let mut kept = lock(&kept);
            kept.by_node.retain(|_, idle| {
                idle.retain(|(since, _)| *since + KEPT_FOR > now);
                !idle.is_empty()
            });
            if kept.by_node.is_empty() {
                kept.is_swept = false;
                return;
            }
        }
    });
}

fn lock(kept: &Mutex<Kept>) -> MutexGuard<'_, Kept> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};

    use super::*;

    fn stream() -> Box<dyn Stream> {
        Box::new(tokio::io::duplex(8).0)
    }

    #[tokio::test(start_paused = true)]
    async fn connections_are_kept_for_a_time_and_in_bounds() {
        let (env, idle) = (base::testing::env(1), IdleConnections::default());
        for _ in 0..PER_NODE_MAX + 3 {
            idle.put(&env, "one", stream());
        }
        let now = env.clock.monotonic();
        assert!(idle.take("two", now).is_none());
        let mut taken = 0;
        while idle.take("one", now).is_some() {
            taken += 1;
        }
        assert_eq!(taken, PER_NODE_MAX);
        idle.put(&env, "one", stream());
        assert!(idle.take("one", now + KEPT_FOR).is_none(), "the DataNode closes it soon");
    }

    /// The reading half of a connection, which records when it is closed.
    struct Recorded {
        uuid: String,
        closed: Arc<Mutex<Vec<String>>>,
    }

    impl AsyncRead for Recorded {
        fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    impl Drop for Recorded {
        fn drop(&mut self) {
            self.closed.lock().unwrap().push(self.uuid.clone());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn connections_are_closed_in_the_same_order_in_each_run() {
        let (env, idle) = (base::testing::env(1), IdleConnections::default());
        let closed: Arc<Mutex<Vec<String>>> = Arc::default();
        let uuids: Vec<String> = (10..30).map(|id| format!("node-{id}")).collect();
        for uuid in uuids.iter().rev() {
            let half = Recorded { uuid: uuid.clone(), closed: closed.clone() };
            idle.put(&env, uuid, Box::new(tokio::io::join(half, tokio::io::sink())));
        }
        env.clock.sleep(KEPT_FOR * 2).await;
        assert_eq!(*closed.lock().unwrap(), uuids);
    }

    #[tokio::test(start_paused = true)]
    async fn connections_are_closed_without_another_read() {
        let (env, idle) = (base::testing::env(1), IdleConnections::default());
        for _ in 0..2 {
            let (near, mut far) = tokio::io::duplex(8);
            idle.put(&env, "one", Box::new(near));
            let closed = env.timeout(KEPT_FOR * 2, async { far.read(&mut [0; 1]).await.unwrap() });
            assert_eq!(closed.await, Some(0));
            assert!(lock(&idle.kept).by_node.is_empty());
        }
    }
}
