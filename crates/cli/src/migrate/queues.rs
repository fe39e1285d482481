//! The replication queues of HBase in ZooKeeper, and the proof that Grampus has all edits.
//!
//! A queue of a server lists the logs that were not sent completely. HBase adds a log to the queues
//! before it writes to the log, and removes it when the peer has acknowledged all its edits and the
//! server has begun another log. So after the writers stopped, the steps are: list the logs of all
//! queues, begin new logs, and wait until none of the listed logs is in a queue. This holds for
//! several logs of a server and for queues of dead servers too.
//!
//! Source: HBase `ZKReplicationQueueStorage`.

use std::collections::BTreeSet;
use std::time::Duration;

use base::env::Env;
use client::ClusterKey;

/// Timeout of a call to ZooKeeper.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Listings after which a queue that moves between servers is an error.
const LISTINGS_MAX: usize = 20;

/// A session with HBase's ZooKeeper.
pub(super) struct Queues {
    zookeeper: zk::client::Client,
    parent: String,
    peer: String,
}

/// Server, queue and log of each entry.
type Entries = BTreeSet<(String, String, String)>;

impl Queues {
    /// Opens a session.
    ///
    /// # Errors
    /// If no server of ZooKeeper answers.
    pub(super) async fn connect(env: &Env, source: &ClusterKey, peer: &str) -> Result<Queues, String> {
        let connected = zk::client::Client::connect(env, source.servers(), TIMEOUT).await;
        let zookeeper = connected.map_err(|error| format!("ZooKeeper of HBase: {error}"))?;
        let parent = format!("{}/replication/rs", source.parent());
        Ok(Queues { zookeeper, parent, peer: peer.to_owned() })
    }

    /// The names of all logs in the queues of the peer. A queue that moves to another server during
    /// a listing can be missed, so two equal listings are required.
    ///
    /// # Errors
    /// If the znodes cannot be read.
    pub(super) async fn logs(&mut self) -> Result<BTreeSet<String>, String> {
        let mut last = self.list().await?;
        for _ in 0..LISTINGS_MAX {
            let next = self.list().await?;
            if next == last {
                return Ok(next.into_iter().map(|(_, _, log)| log).collect());
            }
            last = next;
        }
        Err("the replication queues of HBase do not settle: a server takes over queues".into())
    }

    /// Whether none of these logs is in the queues.
    ///
    /// # Errors
    /// If the znodes cannot be read.
    pub(super) async fn are_sent(&mut self, pending: &BTreeSet<String>) -> Result<bool, String> {
        // One listing proves that a log is left. That none is left needs two equal ones.
        if self.list().await?.iter().any(|(_, _, log)| pending.contains(log)) {
            return Ok(false);
        }
        Ok(self.logs().await?.is_disjoint(pending))
    }

    async fn list(&mut self) -> Result<Entries, String> {
        let mut entries = Entries::new();
        let parent = self.parent.clone();
        for server in self.children(&parent).await? {
            let of_server = format!("{parent}/{server}");
            let mut queues = self.children(&of_server).await?;
            queues.retain(|queue| is_of(queue, &self.peer));
            for queue in queues {
                for log in self.children(&format!("{of_server}/{queue}")).await? {
                    entries.insert((server.clone(), queue.clone(), log));
                }
            }
        }
        Ok(entries)
    }

    /// The children of a znode; none if it was removed.
    async fn children(&mut self, path: &str) -> Result<Vec<String>, String> {
        match self.zookeeper.get_children(path).await {
            Ok(names) => Ok(names),
            Err(zk::client::Error::NoNode(_)) => Ok(Vec::new()),
            Err(error) => Err(format!("cannot read the replication queues of HBase: {error}")),
        }
    }

    /// Ends the session.
    pub(super) async fn close(self) {
        self.zookeeper.close().await;
    }
}

/// Whether a queue is that of the peer, or one that was taken over: `peer-host,port,startcode`.
pub(super) fn is_of(queue: &str, peer: &str) -> bool {
    queue.strip_prefix(peer).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_of_dead_servers_belong_to_the_peer() {
        assert!(is_of("p", "p") && is_of("p-h,1,2-h,1,3", "p"));
        assert!(!is_of("p2", "p") && !is_of("q-p", "p"));
    }
}
