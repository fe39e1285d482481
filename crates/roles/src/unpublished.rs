//! Region servers that registered with the master and have no znode.
//!
//! A region server registers first, and then publishes its znode. If it ends in between, no session
//! of it ever expires, and the master would order it to open regions forever. The znode may also
//! have existed only between two reads of the master.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cell::region::ServerName;

/// A server that has no znode for so long counts as dead. A server publishes its znode at once, but
/// ZooKeeper may be busy. If such a server lives, its logs are fenced, and it ends.
const PATIENCE: Duration = Duration::from_secs(30);

/// The registered servers without a znode, and since when.
#[derive(Default)]
pub(crate) struct Unpublished {
    since: BTreeMap<ServerName, Duration>,
}

impl Unpublished {
    /// The `registered` servers that have not been among the `published` ones for too long. `now`
    /// is monotonic time.
    pub(crate) fn overdue(
        &mut self,
        registered: &[ServerName],
        published: &BTreeSet<ServerName>,
        now: Duration,
    ) -> Vec<ServerName> {
        self.since.retain(|server, _| registered.contains(server) && !published.contains(server));
        for server in registered.iter().filter(|server| !published.contains(server)) {
            self.since.entry(server.clone()).or_insert(now);
        }
        let is_overdue = |since: &Duration| now.saturating_sub(*since) >= PATIENCE;
        self.since.iter().filter(|(_, since)| is_overdue(since)).map(|(server, _)| server.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_without_a_znode_is_overdue_after_a_while() {
        let server = |port| ServerName { host: "h".into(), port, start_code: 1 };
        let mut unpublished = Unpublished::default();
        let mut overdue = |registered: &[ServerName], published: &[ServerName], seconds| {
            let published = published.iter().cloned().collect();
            unpublished.overdue(registered, &published, Duration::from_secs(seconds))
        };
        let both = [server(1), server(2)];
        assert_eq!(overdue(&both, &both[..1], 100), []);
        assert_eq!(overdue(&both, &both[..1], 129), []);
        assert_eq!(overdue(&both, &both[..1], 130), both[1..]);
        // It has published its znode, and later lost it.
        assert_eq!(overdue(&both, &both, 140), []);
        assert_eq!(overdue(&both, &both[..1], 150), []);
        assert_eq!(overdue(&both[..1], &both[..1], 151), [], "it counts as dead");
        assert_eq!(overdue(&both, &both[..1], 180), [], "it has registered again");
    }
}
