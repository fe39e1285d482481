//! `ClientMetaService`: what a client asks first.

use crate::service::service;

service! {
    /// What a client asks first.
    "ClientMetaService" ClientMetaService dispatch_client_meta CLIENT_META_METHODS
    works {
        /// The id of the cluster.
        "GetClusterId" get_cluster_id(GetClusterIdRequest) -> GetClusterIdResponse;
        /// The master that serves.
        "GetActiveMaster" get_active_master(GetActiveMasterRequest) -> GetActiveMasterResponse;
        /// All masters.
        "GetMasters" get_masters(GetMastersRequest) -> GetMastersResponse;
        /// Where hbase:meta is.
        "GetMetaRegionLocations" get_meta_region_locations(GetMetaRegionLocationsRequest) -> GetMetaRegionLocationsResponse;
        /// Servers that a client can ask these things.
        "GetBootstrapNodes" get_bootstrap_nodes(GetBootstrapNodesRequest) -> GetBootstrapNodesResponse;
    }
    refused {
    }
}
