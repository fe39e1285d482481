//! `ClientMetaService`: a client's first calls, answered from the znodes, so every server can
//! answer them.
//!
//! Each client calls it when it starts, and again when it cannot find `hbase:meta`, for example
//! while many clients wait for the end of a crash recovery. Therefore the content of each znode is
//! cached, and read again by the first call after a watch has reported a change. While the session
//! with ZooKeeper is suspended, changes are not reported. Then calls read the znode, which fails,
//! and clients call another server.
//!
//! The reads of a znode are sequential, and a session never reads an older state than before. So
//! no response is older than an earlier one.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use base::BoxFuture;
use bytes::Bytes;
use cell::region::{RegionInfo, ServerName};
use proto::exception::{Answer, JavaException};
use tokio::sync::Mutex;
use wire::service::ClientMetaService;
use zk::names::Names;
use zk::payload::Undecodable;
use zk::servers::server_names;
use zk::{Coordinator, ZnodeTracker};

/// The sequence number of a location that was not read from `hbase:meta`.
const NO_SEQ_NUM: i64 = -1;

/// The service over the znodes.
pub struct Registry {
    cluster_id: CachedValue<String>,
    active_master: CachedValue<ServerName>,
    backup_masters: CachedServers,
    // `None` while `hbase:meta` is not open.
    meta: CachedValue<Option<ServerName>>,
    region_servers: CachedServers,
}

impl Registry {
    /// A registry that reads the znodes named by `names`.
    pub fn new(coordinator: Arc<dyn Coordinator>, names: Names) -> Registry {
        let tracker = |path| ZnodeTracker::new(Arc::clone(&coordinator), path);
        Registry {
            cluster_id: CachedValue::new(tracker(names.hbaseid()), zk::payload::read_cluster_id),
            active_master: CachedValue::new(tracker(names.master()), zk::payload::read_master),
            backup_masters: CachedServers::new(tracker(names.backup_masters())),
            meta: CachedValue::new(
                tracker(names.meta_region_server(0)),
                zk::payload::read_meta_region_server,
            ),
            region_servers: CachedServers::new(tracker(names.rs())),
        }
    }

    async fn cluster_id(&self) -> Answer<proto::GetClusterIdResponse> {
        Ok(proto::GetClusterIdResponse { cluster_id: self.cluster_id.get().await? })
    }

    async fn active_master(&self) -> Answer<proto::GetActiveMasterResponse> {
        let server_name = self.active_master.get().await?.as_ref().map(Into::into);
        Ok(proto::GetActiveMasterResponse { server_name })
    }

    async fn masters(&self) -> Answer<proto::GetMastersResponse> {
        let active = self.active_master.get().await?;
        let mut backups = self.backup_masters.get().await?;
        // A master that has just won is still listed as a backup master.
        backups.retain(|backup| Some(backup) != active.as_ref());
        let entry = |master: &ServerName, is_active| proto::GetMastersResponseEntry {
            server_name: master.into(),
            is_active,
        };
        let active = active.iter().map(|master| entry(master, true));
        let backups = backups.iter().map(|master| entry(master, false));
        Ok(proto::GetMastersResponse { master_servers: active.chain(backups).collect() })
    }

    async fn meta_locations(&self) -> Answer<proto::GetMetaRegionLocationsResponse> {
        let location = |server: &ServerName| proto::RegionLocation {
            region_info: (&RegionInfo::meta()).into(),
            server_name: Some(server.into()),
            seq_num: NO_SEQ_NUM,
        };
        let server = self.meta.get().await?.flatten();
        Ok(proto::GetMetaRegionLocationsResponse { meta_locations: server.iter().map(location).collect() })
    }

    async fn bootstrap_nodes(&self) -> Answer<proto::GetBootstrapNodesResponse> {
        let servers = self.region_servers.get().await?;
        Ok(proto::GetBootstrapNodesResponse { server_name: servers.iter().map(Into::into).collect() })
    }
}

/// A znode, and what was read last. It is used while the tracker reports it as current.
struct Cached<T> {
    znode: ZnodeTracker,
    content: T,
}

/// The decoded value of a znode.
struct CachedValue<T> {
    decode: fn(&Bytes) -> Result<T, Undecodable>,
    cached: Mutex<Cached<Result<Option<T>, Undecodable>>>,
}

impl<T: Clone> CachedValue<T> {
    fn new(znode: ZnodeTracker, decode: fn(&Bytes) -> Result<T, Undecodable>) -> CachedValue<T> {
        CachedValue { decode, cached: Mutex::new(Cached { znode, content: Ok(None) }) }
    }

    /// The value; `None` if there is no such znode yet.
    async fn get(&self) -> Answer<Option<T>> {
        let mut cached = self.cached.lock().await;
        if !cached.znode.is_current() {
            let data = cached.znode.value().await.map_err(unavailable)?;
            cached.content = data.map(|data| (self.decode)(&data)).transpose();
        }
        cached.content.clone().map_err(unreadable)
    }
}

/// The servers that are children of a znode.
struct CachedServers(Mutex<Cached<Vec<ServerName>>>);

impl CachedServers {
    fn new(znode: ZnodeTracker) -> CachedServers {
        CachedServers(Mutex::new(Cached { znode, content: Vec::new() }))
    }

    /// The servers; none if there is no such znode yet.
    async fn get(&self) -> Answer<Vec<ServerName>> {
        let mut cached = self.0.lock().await;
        if !cached.znode.is_current() {
            let children = cached.znode.children().await.map_err(unavailable)?;
            cached.content = server_names(children).collect();
        }
        Ok(cached.content.clone())
    }
}

fn unavailable(error: zk::Error) -> JavaException {
    JavaException::io(error.to_string())
}

fn unreadable(error: Undecodable) -> JavaException {
    JavaException::io(format!("unreadable znode: {error}"))
}

impl ClientMetaService for Registry {
    fn get_cluster_id(
        &self,
        _: proto::GetClusterIdRequest,
    ) -> BoxFuture<'_, Answer<proto::GetClusterIdResponse>> {
        Box::pin(self.cluster_id())
    }

    fn get_active_master(
        &self,
        _: proto::GetActiveMasterRequest,
    ) -> BoxFuture<'_, Answer<proto::GetActiveMasterResponse>> {
        Box::pin(self.active_master())
    }

    fn get_masters(&self, _: proto::GetMastersRequest) -> BoxFuture<'_, Answer<proto::GetMastersResponse>> {
        Box::pin(self.masters())
    }

    fn get_meta_region_locations(
        &self,
        _: proto::GetMetaRegionLocationsRequest,
    ) -> BoxFuture<'_, Answer<proto::GetMetaRegionLocationsResponse>> {
        Box::pin(self.meta_locations())
    }

    fn get_bootstrap_nodes(
        &self,
        _: proto::GetBootstrapNodesRequest,
    ) -> BoxFuture<'_, Answer<proto::GetBootstrapNodesResponse>> {
        Box::pin(self.bootstrap_nodes())
    }
}
