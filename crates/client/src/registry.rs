//! Locates a cluster, through ZooKeeper's znodes or by calls to configured servers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base::env::Env;
use bytes::Bytes;
use cell::region::ServerName;
use zk::payload;
use zk::{Coordinator, Names};

use crate::connections::{Connections, OutgoingCall};
use crate::error::{Error, Result};

const SERVICE: &str = "ClientMetaService";
/// Timeout for one ZooKeeper server.
const ZOOKEEPER_TIMEOUT: Duration = Duration::from_secs(10);
/// Default ZooKeeper port.
pub(crate) const ZOOKEEPER_PORT: u16 = 2181;
/// Default master port.
const MASTER_PORT: u16 = 16000;

/// The servers of ZooKeeper. The first one to contact is the one that responded last.
pub struct ZooKeeperServers {
    servers: Vec<(String, u16)>,
    last: AtomicUsize,
}

impl ZooKeeperServers {
    async fn data(&self, env: &Env, path: &str) -> Result<Bytes> {
        let first = self.last.load(Ordering::Relaxed);
        let mut servers = self.servers.clone();
        servers.rotate_left(first);
        let mut session =
            zk::client::Client::connect(env, &servers, ZOOKEEPER_TIMEOUT).await.map_err(unusable)?;
        let data = session.get_data(path).await.map_err(unusable);
        self.last.store((first + session.server()) % servers.len(), Ordering::Relaxed);
        session.close().await;
        data
    }
}

/// Source of the first servers' addresses.
#[derive(Clone)]
pub enum Registry {
    /// ZooKeeper's znodes.
    ZooKeeper {
        /// Servers; any of them is sufficient.
        servers: Arc<ZooKeeperServers>,
        /// Names of the znodes.
        names: Names,
    },
    /// ZooKeeper's znodes, through a session that the process has anyway.
    Coordinator {
        /// The session.
        coordinator: Arc<dyn Coordinator>,
        /// Names of the znodes.
        names: Names,
    },
    /// Masters or region servers; any of them is sufficient.
    Rpc {
        /// The servers.
        servers: Vec<(String, u16)>,
    },
}

impl Registry {
    /// ZooKeeper at `quorum` (`host[:port],...`), znodes below `parent`.
    pub fn zookeeper(quorum: &str, parent: &str) -> Registry {
        let servers =
            ZooKeeperServers { servers: servers(quorum, ZOOKEEPER_PORT), last: AtomicUsize::default() };
        Registry::ZooKeeper { servers: Arc::new(servers), names: Names::below(parent) }
    }

    /// The servers of `hbase.client.bootstrap.servers` or `hbase.masters` (`host[:port],...`).
    pub fn rpc(bootstrap: &str) -> Registry {
        Registry::Rpc { servers: servers(bootstrap, MASTER_PORT) }
    }

    /// The cluster's id.
    ///
    /// # Errors
    /// [`Error::Registry`].
    pub async fn cluster_id(&self, env: &Env, connections: &Connections) -> Result<String> {
        match self {
            Registry::ZooKeeper { servers, names } => {
                let data = servers.data(env, &names.hbaseid()).await?;
                payload::read_cluster_id(&data).map_err(unusable)
            }
            Registry::Coordinator { coordinator, names } => {
                payload::read_cluster_id(&data_at(coordinator, &names.hbaseid()).await?).map_err(unusable)
            }
            Registry::Rpc { servers } => {
                let response: proto::GetClusterIdResponse =
                    query(connections, servers, "GetClusterId", &proto::GetClusterIdRequest {}).await?;
                response.cluster_id.ok_or_else(|| unusable("the cluster has no id yet"))
            }
        }
    }

    /// The active master.
    ///
    /// # Errors
    /// [`Error::Registry`].
    pub async fn master(&self, env: &Env, connections: &Connections) -> Result<ServerName> {
        match self {
            Registry::ZooKeeper { servers, names } => {
                let data = servers.data(env, &names.master()).await?;
                payload::read_master(&data).map_err(unusable)
            }
            Registry::Coordinator { coordinator, names } => {
                payload::read_master(&data_at(coordinator, &names.master()).await?).map_err(unusable)
            }
            Registry::Rpc { servers } => {
                let response: proto::GetActiveMasterResponse =
                    query(connections, servers, "GetActiveMaster", &proto::GetActiveMasterRequest {}).await?;
                server_name(response.server_name, "no master is active")
            }
        }
    }

    /// The server of `hbase:meta`.
    ///
    /// # Errors
    /// [`Error::Registry`].
    pub async fn meta(&self, env: &Env, connections: &Connections) -> Result<ServerName> {
        let nowhere = "hbase:meta is not served";
        match self {
            Registry::ZooKeeper { servers, names } => {
                let data = servers.data(env, &names.meta_region_server(0)).await?;
                payload::read_meta_region_server(&data).map_err(unusable)?.ok_or_else(|| unusable(nowhere))
            }
            Registry::Coordinator { coordinator, names } => {
                let data = data_at(coordinator, &names.meta_region_server(0)).await?;
                payload::read_meta_region_server(&data).map_err(unusable)?.ok_or_else(|| unusable(nowhere))
            }
            Registry::Rpc { servers } => {
                let request = proto::GetMetaRegionLocationsRequest {};
                let response: proto::GetMetaRegionLocationsResponse =
                    query(connections, servers, "GetMetaRegionLocations", &request).await?;
                let mut locations = response.meta_locations.into_iter();
                let first = locations.find(|location| location.region_info.replica_id() == 0);
                server_name(first.and_then(|location| location.server_name), nowhere)
            }
        }
    }
}

fn servers(text: &str, default_port: u16) -> Vec<(String, u16)> {
    let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    let parse = |entry: &str| {
        let entry = entry.strip_prefix("tcp://").unwrap_or(entry);
        match entry.rsplit_once(':').map(|(host, port)| (host, port.parse())) {
            Some((host, Ok(port))) => (without_brackets(host), port),
            _ => (without_brackets(entry), default_port),
        }
    };
    entries.map(parse).collect()
}

/// The host without the brackets of an IPv6 address.
fn without_brackets(host: &str) -> String {
    let address = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    address.unwrap_or(host).to_string()
}

fn unusable(error: impl ToString) -> Error {
    Error::Registry(error.to_string())
}

fn server_name(message: Option<proto::ServerName>, otherwise: &str) -> Result<ServerName> {
    let message = message.ok_or_else(|| unusable(otherwise))?;
    ServerName::try_from(&message).map_err(unusable)
}

async fn data_at(coordinator: &Arc<dyn Coordinator>, path: &str) -> Result<Bytes> {
    coordinator.get(path).await.map(|znode| znode.data).map_err(unusable)
}

/// Calls the servers in sequence until one responds.
async fn query<M: prost::Message, R: prost::Message + Default>(
    connections: &Connections,
    servers: &[(String, u16)],
    method: &'static str,
    message: &M,
) -> Result<R> {
    let mut failures = Vec::new();
    for (host, port) in servers {
        match connections.call(host, *port, OutgoingCall::new(SERVICE, method, message)).await {
            Ok((response, _)) => return Ok(response),
            Err(error) => failures.push(error.to_string()),
        }
    }
    Err(unusable(format!("{method}: {}", failures.join("; "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_may_be_omitted() {
        let expected = [("a".to_string(), 2181), ("b".to_string(), 7), ("::1".to_string(), 9)];
        assert_eq!(servers("a, b:7,,::1:9", 2181), expected);
    }

    #[test]
    fn servers_may_have_brackets_and_a_scheme() {
        let server = |host: &str, port| (host.to_string(), port);
        let expected = [server("::1", 7), server("fe80::1", 2181), server("a", 2181), server("::1", 8)];
        assert_eq!(servers("[::1]:7,[fe80::1],tcp://a,tcp://[::1]:8", 2181), expected);
    }
}
