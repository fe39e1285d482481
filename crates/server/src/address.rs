//! The host that clients are told: it must lead them to an address that is listened on.

use std::net::{IpAddr, Ipv4Addr};

/// The host to tell, where `wanted` is the option and `listening` the address that is listened on.
///
/// With nothing wanted: `localhost` for the loopback address, the address itself for another one; if every address is
/// listened on, this machine's name. (A Debian machine's own name is often 127.0.1.1, which loopback does not answer
/// on, so the name is told only then.)
pub fn advertised_host(wanted: Option<&str>, listening: IpAddr) -> String {
    match wanted {
        Some(host) => host.to_lowercase(),
        None if listening == IpAddr::V4(Ipv4Addr::LOCALHOST) => "localhost".to_string(),
        None if listening.is_unspecified() => machine_name(),
        None => listening.to_string(),
    }
}

/// The name of this machine.
pub fn machine_name() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().to_lowercase();
    if name.is_empty() { "localhost".to_string() } else { name }
}

#[cfg(test)]
mod tests {
    use super::advertised_host;

    #[test]
    fn a_host_that_is_listened_on() {
        assert_eq!(advertised_host(None, "127.0.0.1".parse().unwrap()), "localhost");
        assert_eq!(advertised_host(None, "10.1.2.3".parse().unwrap()), "10.1.2.3");
        assert_eq!(advertised_host(Some("Db1.Example"), "0.0.0.0".parse().unwrap()), "db1.example");
    }
}
