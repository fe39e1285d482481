//! The name under which the other processes of the cluster, and clients, call this one.

use std::net::IpAddr;

use base::config::Config;
use base::env::{Env, Listener};
use cell::region::ServerName;

use super::session::quorum_hosts;
use crate::address::advertised_host;

/// The name of the process that listens on `listener`. `host` is the configured host name, and
/// `key` the option of the listening address.
///
/// # Errors
/// One line, if no process on another machine could call this one, although ZooKeeper is on another
/// machine. All such processes would have the same name.
pub(super) fn server_name(
    env: &Env,
    config: &Config,
    host: Option<&str>,
    listener: &dyn Listener,
    key: &str,
) -> Result<ServerName, String> {
    let address = listener.local_addr();
    if host.is_none() && address.ip().is_loopback() {
        let hosts = quorum_hosts(config);
        if let Some(other) = hosts.iter().find(|host| !is_loopback(host)) {
            return Err(config.refused(key, unreachable(other)).to_string());
        }
    }
    Ok(ServerName {
        host: advertised_host(host, address.ip()),
        port: address.port(),
        start_code: env.clock.now_ms(),
    })
}

fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

fn unreachable(zookeeper: &str) -> String {
    format!(
        "other machines cannot connect to this address, but hbase.zookeeper.quorum has the server {zookeeper}, which \
         may be on another machine. Listen on all addresses with --bind 0.0.0.0 (there is no authentication), and set \
         --host NAME if other machines do not resolve the name of this one. If all processes are on one machine, \
         set --host localhost"
    )
}

#[cfg(test)]
mod tests {
    use super::is_loopback;

    #[test]
    fn hosts_of_this_machine_are_recognized() {
        for host in ["localhost", "LOCALHOST", "127.0.0.1", "127.1.2.3", "::1", "[::1]"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["zk1", "10.0.0.1", "localhost.example.org", "[fe80::1]"] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
