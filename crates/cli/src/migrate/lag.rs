//! What a replication peer of HBase has not received yet, as its servers report it.

use std::time::Duration;

use cell::region::ServerName;
use client::admin::ServerStatus;
use proto::ReplicationLoadSource;

use super::queues::is_of;

/// The lag of one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServerLag {
    pub(super) server: ServerName,
    /// The largest age of an edit that was not sent, in milliseconds; 0 if all were sent.
    pub(super) lag_ms: u64,
    /// Logs that were not sent completely, including the current one.
    pub(super) logs: u64,
    /// Queues that the server took over from a dead one.
    pub(super) recovered_queues: u64,
    /// Entries sent since the server started.
    pub(super) sent: u64,
}

/// The lag of all servers with a queue of the peer.
pub(super) fn of_servers(servers: &[ServerStatus], peer: &str) -> Vec<ServerLag> {
    let of_server = |server: &ServerStatus| {
        let own: Vec<&ReplicationLoadSource> =
            server.replication_sources.iter().filter(|source| is_of(&source.peer_id, peer)).collect();
        (!own.is_empty()).then(|| ServerLag {
            server: server.server.clone(),
            lag_ms: own.iter().map(|source| source.replication_lag).max().unwrap_or(0),
            logs: own.iter().map(|source| u64::from(source.size_of_log_queue)).sum(),
            recovered_queues: own.iter().filter(|source| source.recovered()).count() as u64,
            sent: own.iter().map(|source| source.o_ps_shipped()).sum(),
        })
    };
    servers.iter().filter_map(of_server).collect()
}

/// The largest lag in milliseconds.
pub(super) fn largest_ms(servers: &[ServerLag]) -> u64 {
    servers.iter().map(|server| server.lag_ms).max().unwrap_or(0)
}

/// Entries per second that were sent between two samples. Servers that restarted count from 0.
pub(super) fn sent_per_s(before: &[ServerLag], after: &[ServerLag], elapsed: Duration) -> f64 {
    let sent = after.iter().map(|now| {
        let earlier = before.iter().find(|earlier| earlier.server == now.server);
        now.sent.saturating_sub(earlier.map_or(0, |earlier| earlier.sent))
    });
    sent.sum::<u64>() as f64 / elapsed.as_secs_f64().max(0.001)
}

/// The time until everything is sent, if the lag continues to shrink as it did between two samples;
/// `None` if it does not shrink.
pub(super) fn time_left(before_ms: u64, after_ms: u64, elapsed: Duration) -> Option<Duration> {
    if after_ms == 0 {
        return Some(Duration::ZERO);
    }
    let shrunk_ms = before_ms.checked_sub(after_ms).filter(|shrunk| *shrunk > 0)?;
    Some(elapsed.mul_f64(after_ms as f64 / shrunk_ms as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(peer_id: &str, lag_ms: u64, logs: u32, sent: u64) -> ReplicationLoadSource {
        ReplicationLoadSource {
            peer_id: peer_id.into(),
            replication_lag: lag_ms,
            size_of_log_queue: logs,
            recovered: Some(peer_id.contains('-')),
            o_ps_shipped: Some(sent),
            ..Default::default()
        }
    }

    fn server(port: u16, replication_sources: Vec<ReplicationLoadSource>) -> ServerStatus {
        ServerStatus {
            server: ServerName { host: "h".into(), port, start_code: 1 },
            requests_per_second: 0,
            requests: 0,
            used_heap_mb: 0,
            max_heap_mb: 0,
            regions: Vec::new(),
            replication_sources,
        }
    }

    #[test]
    fn queues_of_a_server_are_combined() {
        let queues = vec![source("p", 5, 2, 10), source("p-h,1,1", 70, 1, 3), source("p2", 900, 9, 9)];
        let found = of_servers(&[server(1, queues), server(2, vec![source("q", 1, 1, 1)])], "p");
        assert_eq!(found.len(), 1);
        let expected = ServerLag { lag_ms: 70, logs: 3, recovered_queues: 1, sent: 13, ..found[0].clone() };
        assert_eq!((found[0].server.port, &found[0]), (1, &expected));
        assert_eq!((largest_ms(&found), largest_ms(&[])), (70, 0));
    }

    #[test]
    fn the_time_left_follows_from_the_shrinking_lag() {
        let second = Duration::from_secs(1);
        assert_eq!(time_left(100, 80, 2 * second), Some(8 * second));
        assert_eq!(time_left(100, 100, second), None);
        assert_eq!(time_left(100, 101, second), None);
        assert_eq!(time_left(5, 0, second), Some(Duration::ZERO));
    }

    #[test]
    fn a_restarted_server_counts_from_zero() {
        let lag = |port, sent| of_servers(&[server(port, vec![source("p", 0, 1, sent)])], "p");
        let both = [lag(1, 30), lag(2, 6)].concat();
        assert_eq!(sent_per_s(&lag(1, 10), &both, Duration::from_secs(2)), 13.0);
        assert_eq!(sent_per_s(&lag(1, 50), &lag(1, 30), Duration::from_secs(2)), 0.0);
    }
}
