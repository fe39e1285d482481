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
    let advertised = advertised_host(host, address.ip());
    // A configured name is intended.
    if host.is_none()
        && let Some(why) = refusal(&advertised, address.ip(), &quorum_hosts(config))
    {
        return Err(config.refused(key, why).to_string());
    }
    Ok(ServerName { host: advertised, port: address.port(), start_code: env.clock.now_ms() })
}

/// Why a process cannot have the name `advertised`, which follows from its listening address.
fn refusal(advertised: &str, listening: IpAddr, zookeepers: &[impl AsRef<str>]) -> Option<String> {
    if !is_loopback(advertised) {
        return None;
    }
    let other = zookeepers.iter().map(|host| host.as_ref()).find(|host| !is_loopback(host))?;
    Some(match listening.is_loopback() {
        true => unreachable(other),
        false => ambiguous(advertised, other),
    })
}

fn is_loopback(host: &str) -> bool {
    ["localhost", "localhost.localdomain"].iter().any(|name| host.eq_ignore_ascii_case(name))
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

fn ambiguous(name: &str, zookeeper: &str) -> String {
    format!(
        "the name of this machine is {name}, which each machine resolves to itself, but hbase.zookeeper.quorum has \
         the server {zookeeper}, which may be on another machine. Set --host NAME to a name or address of this \
         machine that the other machines can use. If all processes are on one machine, set --host localhost"
    )
}

#[cfg(test)]
mod tests {
    use super::{is_loopback, refusal};

    #[test]
    fn a_name_that_each_machine_has_is_refused_with_a_zookeeper_elsewhere() {
        let all = "0.0.0.0".parse().unwrap();
        let refused = refusal("localhost", all, &["localhost", "zk1"]).unwrap();
        assert!(
            refused.contains("the name of this machine is localhost") && refused.contains("zk1"),
            "{refused}"
        );
        let refused = refusal("localhost", "127.0.0.1".parse().unwrap(), &["zk1"]).unwrap();
        assert!(refused.contains("other machines cannot connect to this address"), "{refused}");
        assert_eq!(refusal("localhost", all, &["127.0.0.1"]), None);
        assert_eq!(refusal("rs1", all, &["zk1"]), None);
    }

    #[test]
    fn hosts_of_this_machine_are_recognized() {
        for host in
            ["localhost", "LOCALHOST", "localhost.localdomain", "127.0.0.1", "127.1.2.3", "::1", "[::1]"]
        {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["zk1", "10.0.0.1", "localhost.example.org", "[fe80::1]"] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
