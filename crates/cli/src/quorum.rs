//! ZooKeeper addresses from the command line.

/// ZooKeeper's default port.
const ZOOKEEPER_PORT: u16 = 2181;

/// Adds `offset` to each port of `host:port,..`.
///
/// # Errors
/// A message for the user, if the text is invalid.
pub fn with_offset(quorum: &str, offset: u16) -> Result<String, String> {
    let add = |server: &str| {
        let (host, port) = match server.rsplit_once(':') {
            Some((host, port)) => {
                let port = port.parse().map_err(|_| format!("--zookeeper {quorum}: invalid port {port}"))?;
                (host, port)
            }
            None => (server, ZOOKEEPER_PORT),
        };
        let sum = port.checked_add(offset);
        let sum =
            sum.ok_or_else(|| format!("--port-offset {offset}: port {port} + {offset} is out of range"))?;
        Ok(format!("{host}:{sum}"))
    };
    let servers = quorum.split(',').map(str::trim).filter(|server| !server.is_empty());
    let servers = servers.map(add).collect::<Result<Vec<String>, String>>()?;
    match servers.is_empty() {
        true => Err("--zookeeper contains no server".to_string()),
        false => Ok(servers.join(",")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_moves_every_port() {
        assert_eq!(with_offset("127.0.0.1:2181", 0).unwrap(), "127.0.0.1:2181");
        assert_eq!(with_offset("a, b:7,", 100).unwrap(), "a:2281,b:107");
        assert!(with_offset("a:65535", 1).unwrap_err().contains("out of range"));
        assert!(with_offset("a:x", 0).unwrap_err().contains("invalid port x"));
        assert!(with_offset(" ,", 0).unwrap_err().contains("no server"));
    }
}
