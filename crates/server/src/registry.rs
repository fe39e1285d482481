//! `ClientMetaService`: a client's first calls, answered from the znodes, so every server can
//! answer them.

use std::sync::Arc;

use base::BoxFuture;
use cell::region::{RegionInfo, ServerName};
use proto::exception::{Answer, JavaException};
use wire::service::ClientMetaService;
use zk::Coordinator;
use zk::coordinator::Error;
use zk::names::Names;

/// The sequence number of a location that was not read from `hbase:meta`.
const NO_SEQ_NUM: i64 = -1;

/// The service over the znodes.
pub struct Registry {
    coordinator: Arc<dyn Coordinator>,
    names: Names,
}

impl Registry {
    /// A registry that reads the znodes named by `names`.
    pub fn new(coordinator: Arc<dyn Coordinator>, names: Names) -> Registry {
        Registry { coordinator, names }
    }

    /// Reads the value at a path; `None` if there is no such znode yet.
    async fn read(&self, path: &str) -> Answer<Option<bytes::Bytes>> {
        match self.coordinator.get(path).await {
            Ok(znode) => Ok(Some(znode.data)),
            Err(Error::NoNode { .. }) => Ok(None),
            Err(error) => Err(JavaException::io(error.to_string())),
        }
    }

    async fn master(&self) -> Answer<Option<ServerName>> {
        let data = self.read(&self.names.master()).await?;
        data.map(|data| zk::payload::read_master(&data)).transpose().map_err(unreadable)
    }

    async fn cluster_id(&self) -> Answer<proto::GetClusterIdResponse> {
        let data = self.read(&self.names.hbaseid()).await?;
        let cluster_id =
            data.map(|data| zk::payload::read_cluster_id(&data)).transpose().map_err(unreadable)?;
        Ok(proto::GetClusterIdResponse { cluster_id })
    }

    async fn active_master(&self) -> Answer<proto::GetActiveMasterResponse> {
        let server_name = self.master().await?.as_ref().map(Into::into);
        Ok(proto::GetActiveMasterResponse { server_name })
    }

    async fn masters(&self) -> Answer<proto::GetMastersResponse> {
        let entry = |master: &ServerName| proto::GetMastersResponseEntry {
            server_name: master.into(),
            is_active: true,
        };
        Ok(proto::GetMastersResponse { master_servers: self.master().await?.iter().map(entry).collect() })
    }

    async fn meta_locations(&self) -> Answer<proto::GetMetaRegionLocationsResponse> {
        let data = self.read(&self.names.meta_region_server(0)).await?;
        let server =
            data.map(|data| zk::payload::read_meta_region_server(&data)).transpose().map_err(unreadable)?;
        let location = |server: &ServerName| proto::RegionLocation {
            region_info: (&RegionInfo::meta()).into(),
            server_name: Some(server.into()),
            seq_num: NO_SEQ_NUM,
        };
        Ok(proto::GetMetaRegionLocationsResponse {
            meta_locations: server.flatten().iter().map(location).collect(),
        })
    }

    async fn bootstrap_nodes(&self) -> Answer<proto::GetBootstrapNodesResponse> {
        let children = match self.coordinator.children(&self.names.rs()).await {
            Ok((children, _)) => children,
            Err(Error::NoNode { .. }) => Vec::new(),
            Err(error) => return Err(JavaException::io(error.to_string())),
        };
        let servers = children.iter().filter_map(|name| ServerName::parse(name));
        Ok(proto::GetBootstrapNodesResponse { server_name: servers.map(|server| (&server).into()).collect() })
    }
}

fn unreadable(error: impl std::fmt::Display) -> JavaException {
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
