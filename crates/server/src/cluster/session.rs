//! The session of this process with ZooKeeper. If it expires, the process ends: another process may
//! have taken over its work.

use std::sync::Arc;
use std::time::Duration;

use base::config::Config;
use base::env::Env;
use roles::member::end_with_session;
use tracing::warn;
use zk::Names;
use zk::ensemble::{ConnectError, Ensemble, EnsembleOptions};

use crate::host::end_process;

/// The pause before another attempt to connect.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// The ZooKeeper servers of the configuration, `host:port` separated by commas, and the path of the
/// znode below which all others are; empty for the root.
pub(crate) fn servers_and_root(config: &Config) -> (String, &str) {
    let (servers, root) = split_root(&config.zookeeper_quorum);
    (with_ports(servers, config.zookeeper_port), root)
}

/// The hosts of the ZooKeeper servers of the configuration.
pub(super) fn quorum_hosts(config: &Config) -> Vec<&str> {
    each_server(split_root(&config.zookeeper_quorum).0).map(host).collect()
}

/// Splits off the path that may follow the servers. The slashes of `tcp://` are not its start.
fn split_root(quorum: &str) -> (&str, &str) {
    let is_start = |at: &usize| !quorum[..*at].ends_with(':') && !quorum[..*at].ends_with(":/");
    let start = quorum.match_indices('/').map(|(at, _)| at).find(is_start).unwrap_or(quorum.len());
    (&quorum[..start], quorum[start..].trim().trim_end_matches('/'))
}

/// Each with or without a port.
fn each_server(servers: &str) -> impl Iterator<Item = &str> {
    servers.split(',').map(str::trim).filter(|server| !server.is_empty())
}

fn with_ports(servers: &str, default_port: u16) -> String {
    let with_port = |server: &str| match host_end(server) == server.len() {
        true => format!("{server}:{default_port}"),
        false => server.to_string(),
    };
    each_server(servers).map(with_port).collect::<Vec<_>>().join(",")
}

/// The host, without a port. Brackets of an IPv6 address are retained.
fn host(server: &str) -> &str {
    &server[host_start(server)..host_end(server)]
}

fn host_start(server: &str) -> usize {
    server.find("://").map_or(0, |at| at + "://".len())
}

/// Where the port begins, with its colon. An IPv6 address is in brackets.
fn host_end(server: &str) -> usize {
    let start = host_start(server);
    let address = &server[start..];
    let end = match address.rfind(']') {
        Some(bracket) if address.starts_with('[') => bracket + 1,
        _ => address.rfind(':').unwrap_or(address.len()),
    };
    start + end
}

/// The options of the session, from the configuration.
pub(super) fn options(config: &Config) -> EnsembleOptions {
    let session_timeout = Duration::from_millis(config.zookeeper_session_ms);
    let (servers, root) = servers_and_root(config);
    EnsembleOptions { quorum: servers + root, session_timeout }
}

/// Opens the session. Waits until ZooKeeper is available.
///
/// # Errors
/// One line that states which option is invalid.
pub(super) async fn open(env: &Env, config: &Config) -> Result<Arc<Ensemble>, String> {
    let options = options(config);
    loop {
        match Ensemble::connect(&options, env).await {
            Ok(ensemble) => {
                end_with_session(env, &*ensemble, Arc::new(end_process));
                return Ok(ensemble);
            }
            Err(error @ ConnectError::Options { .. }) => {
                return Err(config.refused("hbase.zookeeper.quorum", error.to_string()).to_string());
            }
            Err(error) => warn!(%error, "waiting for ZooKeeper"),
        }
        env.clock.sleep(RETRY_PAUSE).await;
    }
}

/// The names of the cluster's znodes.
pub(super) fn names(config: &Config) -> Names {
    Names::below(&config.zookeeper_parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_get_the_default_port_and_the_path_stays_last() {
        let quorum = |text: &str| {
            let (servers, root) = split_root(text);
            with_ports(servers, 2281) + root
        };
        for (text, expected) in [
            ("zk1", "zk1:2281"),
            ("zk1,zk2:2182", "zk1:2281,zk2:2182"),
            (" zk1 , zk2/chroot ", "zk1:2281,zk2:2281/chroot"),
            ("zk1:2181/a/b", "zk1:2181/a/b"),
            ("zk1:2181/", "zk1:2181"),
            ("zk1/a/", "zk1:2281/a"),
            ("[::1]", "[::1]:2281"),
            ("[::1]:2181,[fe80::1]/a", "[::1]:2181,[fe80::1]:2281/a"),
            ("tcp://zk1,tcp://zk2:2181/a", "tcp://zk1:2281,tcp://zk2:2181/a"),
        ] {
            assert_eq!(quorum(text), expected, "{text}");
        }
    }

    #[test]
    fn hosts_have_no_port_and_no_path() {
        let text = "zk1,zk2:2181,[::1],[::1]:2181,tcp://zk3:2181/chroot:1";
        let hosts: Vec<_> = each_server(split_root(text).0).map(host).collect();
        assert_eq!(hosts, ["zk1", "zk2", "[::1]", "[::1]", "zk3"]);
    }
}
