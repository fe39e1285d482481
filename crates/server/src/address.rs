//! The host advertised to clients. It must resolve to an address that the server listens on.

use std::net::{IpAddr, Ipv4Addr};

/// Returns the host to advertise, where `wanted` is the option and `listening` the listening
/// address.
///
/// Without `wanted`: `localhost` for the loopback address, this machine's name if the server
/// listens on every address, and otherwise the address itself. (A Debian machine's own name often
/// resolves to 127.0.1.1, where a server on 127.0.0.1 does not answer. So the name is used only in
/// that one case.)
pub fn advertised_host(wanted: Option<&str>, listening: IpAddr) -> String {
    match wanted {
        Some(host) => host.to_lowercase(),
        None if listening == IpAddr::V4(Ipv4Addr::LOCALHOST) => "localhost".to_string(),
        None if listening.is_unspecified() => machine_name(),
        None => listening.to_string(),
    }
}

/// The host name of this machine, in lower case.
pub fn machine_name() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().to_lowercase();
    if name.is_empty() { "localhost".to_string() } else { name }
}

#[cfg(test)]
mod tests {
    use super::advertised_host;

    #[test]
    fn the_advertised_host_is_reachable() {
        assert_eq!(advertised_host(None, "127.0.0.1".parse().unwrap()), "localhost");
        assert_eq!(advertised_host(None, "10.1.2.3".parse().unwrap()), "10.1.2.3");
        assert_eq!(advertised_host(Some("Db1.Example"), "0.0.0.0".parse().unwrap()), "db1.example");
    }
}
