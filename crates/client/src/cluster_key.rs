//! The address of a cluster: its ZooKeeper servers, and the parent of its znodes.

use std::fmt;
use std::str::FromStr;

use crate::registry::{Registry, ZOOKEEPER_PORT};

/// HBase's default of `zookeeper.znode.parent`.
const DEFAULT_PARENT: &str = "/hbase";

/// The address of a cluster, as text `host[:port],...[:/parent]` (HBase's `ClusterKey`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterKey {
    servers: Vec<(String, u16)>,
    parent: String,
}

impl ClusterKey {
    /// Adds `offset` to each port.
    ///
    /// # Errors
    /// A message that names a port that becomes too large.
    pub fn with_port_offset(mut self, offset: u16) -> Result<ClusterKey, String> {
        for (_, port) in &mut self.servers {
            let sum = port.checked_add(offset);
            *port =
                sum.ok_or_else(|| format!("--port-offset {offset}: port {port} + {offset} is out of range"))?;
        }
        Ok(self)
    }

    /// The ZooKeeper servers, `host:port` separated by commas.
    pub fn quorum(&self) -> String {
        let servers: Vec<String> = self.servers.iter().map(|(host, port)| format!("{host}:{port}")).collect();
        servers.join(",")
    }

    /// The ZooKeeper servers, host and port.
    pub fn servers(&self) -> &[(String, u16)] {
        &self.servers
    }

    /// The parent of the cluster's znodes.
    pub fn parent(&self) -> &str {
        &self.parent
    }

    /// The key as HBase's replication peers state it: `host,host:port:/parent`, or
    /// `host:port,host:port:/parent` if the ports differ.
    pub fn peer_key(&self) -> String {
        let (first, rest) = self.servers.split_first().expect("a key has a server");
        match rest.iter().all(|(_, port)| *port == first.1) {
            true => {
                let hosts: Vec<&str> = self.servers.iter().map(|(host, _)| host.as_str()).collect();
                format!("{}:{}:{}", hosts.join(","), first.1, self.parent)
            }
            false => self.to_string(),
        }
    }

    /// The registry of the cluster.
    pub fn registry(&self) -> Registry {
        Registry::zookeeper(&self.quorum(), &self.parent)
    }
}

/// The key in the form that [`FromStr`] parses, with all ports and the parent.
impl fmt::Display for ClusterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.quorum(), self.parent)
    }
}

impl FromStr for ClusterKey {
    type Err = String;

    fn from_str(text: &str) -> Result<ClusterKey, String> {
        let (quorum, parent) = match text.find(":/") {
            Some(at) => (&text[..at], &text[at + 1..]),
            None => (text, DEFAULT_PARENT),
        };
        let entries = quorum.split(',').map(str::trim).filter(|entry| !entry.is_empty());
        let entries: Vec<(&str, Option<&str>)> = entries
            .map(|entry| entry.rsplit_once(':').map_or((entry, None), |(host, port)| (host, Some(port))))
            .collect();
        let number = |port: &str| port.parse().map_err(|_| format!("{text}: invalid port {port}"));
        // As in HBase, a port at the end is that of all servers without a port.
        let last = match entries.last() {
            None => return Err(format!("{text:?} contains no ZooKeeper server")),
            Some((_, port)) => port.map_or(Ok(ZOOKEEPER_PORT), number)?,
        };
        let servers = entries
            .into_iter()
            .map(|(host, port)| Ok((host.to_string(), port.map_or(Ok(last), number)?)))
            .collect::<Result<_, String>>()?;
        Ok(ClusterKey { servers, parent: parent.to_string() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_parsed() {
        let check = |text: &str, quorum: &str, parent: &str| {
            let key: ClusterKey = text.parse().unwrap();
            assert_eq!((key.quorum().as_str(), key.parent.as_str()), (quorum, parent), "{text}");
        };
        check("127.0.0.1:2181", "127.0.0.1:2181", "/hbase");
        check("a, b,", "a:2181,b:2181", "/hbase");
        check("a,b:7", "a:7,b:7", "/hbase");
        check("a:6,b:7:/other", "a:6,b:7", "/other");
        check("a,b:/other/x", "a:2181,b:2181", "/other/x");
        assert!("a:x".parse::<ClusterKey>().unwrap_err().contains("invalid port x"));
        assert!(" ,".parse::<ClusterKey>().unwrap_err().contains("no ZooKeeper server"));
    }

    #[test]
    fn a_displayed_key_has_the_parent_and_is_parsed_back() {
        for (text, shown) in [("a, b:7", "a:7,b:7:/hbase"), ("a:6,b:7:/other", "a:6,b:7:/other")] {
            let key: ClusterKey = text.parse().unwrap();
            assert_eq!(key.to_string(), shown);
            assert_eq!(shown.parse(), Ok(key));
        }
    }

    #[test]
    fn peers_state_a_common_port_once() {
        let check = |text: &str, peer: &str| assert_eq!(text.parse::<ClusterKey>().unwrap().peer_key(), peer);
        check("a:7", "a:7:/hbase");
        check("a,b:7:/other", "a,b:7:/other");
        check("a:6,b:7", "a:6,b:7:/hbase");
    }

    #[test]
    fn an_offset_moves_every_port() {
        let moved = |text: &str, offset| text.parse::<ClusterKey>().unwrap().with_port_offset(offset);
        assert_eq!(moved("a:2181,b:7", 100).unwrap().quorum(), "a:2281,b:107");
        assert!(moved("a:65535", 1).unwrap_err().contains("out of range"));
    }
}
