//! `ClientMetaService`: the first requests of a client, before it knows the cluster.

use crate::service::service;

service! {
    /// The first requests of a client, before it knows the cluster.
    "ClientMetaService" ClientMetaService dispatch_client_meta CLIENT_META_METHODS
    works {
        /// The cluster id.
        "GetClusterId" get_cluster_id(GetClusterIdRequest) -> GetClusterIdResponse;
        /// The active master.
        "GetActiveMaster" get_active_master(GetActiveMasterRequest) -> GetActiveMasterResponse;
        /// All masters.
        "GetMasters" get_masters(GetMastersRequest) -> GetMastersResponse;
        /// The locations of `hbase:meta`.
        "GetMetaRegionLocations" get_meta_region_locations(GetMetaRegionLocationsRequest) -> GetMetaRegionLocationsResponse;
        /// Servers that answer the requests of this service.
        "GetBootstrapNodes" get_bootstrap_nodes(GetBootstrapNodesRequest) -> GetBootstrapNodesResponse;
    }
    refused {
    }
}
