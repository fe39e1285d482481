//! The services of the RPC servers, adapted from those of `wire`.

use std::sync::Arc;

use base::BoxFuture;
use bytes::Bytes;
use cell::codec::Codec;
use master::Master;
use master::service::MasterAdmin;
use prost::Message;
use proto::exception::{Answer, JavaException, class};
use regionserver::{Admin, ClientRpc, RegionServer, replication_sink};
use rpc::{Call, Reply, Service};
use wire::service::{
    AdminService, ClientMetaService, MasterService, RegionServerStatusService, dispatch_admin,
    dispatch_client_meta, dispatch_master, dispatch_region_server_status,
};
use zk::{Coordinator, Names};

use crate::registry::Registry;

/// The service for a client's first calls.
pub fn client_meta(coordinator: &Arc<dyn Coordinator>, names: &Names) -> Arc<dyn Service> {
    let registry: Arc<dyn ClientMetaService> = Arc::new(Registry::new(coordinator.clone(), names.clone()));
    Dispatched::new("ClientMetaService", registry, dispatch_client_meta, Internal::None)
}

/// The services of a master, except [`client_meta`]. Calls of `status` methods of
/// `RegionServerStatusService` and `admin` methods of `AdminService` are rejected.
pub fn master_services(master: &Arc<Master>, status: Internal, admin: Internal) -> Vec<Arc<dyn Service>> {
    let service: Arc<dyn MasterService> = master.clone();
    let reports: Arc<dyn RegionServerStatusService> = master.clone();
    let server: Arc<dyn AdminService> = Arc::new(MasterAdmin(master.clone()));
    vec![
        Dispatched::new("MasterService", service, dispatch_master, Internal::None),
        Dispatched::new("RegionServerStatusService", reports, dispatch_region_server_status, status),
        Dispatched::new("AdminService", server, dispatch_admin, admin),
    ]
}

/// The services of a region server, except [`client_meta`]. Calls of `admin` methods of
/// `AdminService` are rejected.
pub fn region_server_services(server: &Arc<RegionServer>, admin: Internal) -> Vec<Arc<dyn Service>> {
    let service: Arc<dyn AdminService> = Arc::new(Admin(server.clone()));
    let others = Dispatched::new("AdminService", service, dispatch_admin, admin);
    vec![
        Arc::new(ClientRpc::new(server.clone())),
        Arc::new(RegionServerAdmin { server: server.clone(), others }),
    ]
}

/// `AdminService` of a region server. One of its calls has cells.
struct RegionServerAdmin {
    server: Arc<RegionServer>,
    others: Arc<Dispatched<dyn AdminService>>,
}

impl Service for RegionServerAdmin {
    fn name(&self) -> &'static str {
        self.others.name
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Answer<Reply>> {
        if call.method.as_bytes() != b"ReplicateWALEntry" {
            return self.others.call(call);
        }
        let server = self.server.clone();
        Box::pin(async move {
            let request = proto::ReplicateWalEntryRequest::decode(call.param).map_err(|error| {
                JavaException::do_not_retry(format!("unable to read call parameter; {error}"))
            })?;
            let codec = match call.connection.codec {
                Some(rpc::Codec::KeyValueWithTags) => Codec::KeyValueWithTags,
                Some(rpc::Codec::KeyValue) | None => Codec::KeyValue,
            };
            let response = replication_sink::replicate(&server, &request, call.cells, codec).await?;
            Ok(Reply::message(Bytes::from(response.encode_to_vec())))
        })
    }
}

/// Answers a call from its method's name and the bytes of its message
/// (`wire::service::dispatch_…`).
pub type Dispatch<T> = for<'a> fn(&'a T, &str, Bytes) -> BoxFuture<'a, Answer<Bytes>>;

/// A service whose calls carry no cells.
pub struct Dispatched<T: ?Sized> {
    name: &'static str,
    service: Arc<T>,
    dispatch: Dispatch<T>,
    internal: Internal,
}

/// The methods of a service that only the cluster's own servers call. Master and region server
/// share one process and call each other without a network, so such a call from the network is
/// never legitimate.
#[derive(Clone, Copy)]
pub enum Internal {
    /// No methods.
    None,
    /// These methods.
    Methods(&'static [&'static str]),
    /// All methods.
    All,
}

impl Internal {
    fn has(self, method: &str) -> bool {
        match self {
            Internal::None => false,
            Internal::Methods(methods) => methods.contains(&method),
            Internal::All => true,
        }
    }
}

/// Methods of `AdminService` with which the master opens and closes regions.
pub const INTERNAL_ADMIN_METHODS: Internal =
    Internal::Methods(&["OpenRegion", "CloseRegion", "WarmupRegion", "ExecuteProcedures"]);

impl<T: ?Sized> Dispatched<T> {
    /// A service of this name that rejects calls of `internal` methods.
    pub fn new(
        name: &'static str,
        service: Arc<T>,
        dispatch: Dispatch<T>,
        internal: Internal,
    ) -> Arc<Dispatched<T>> {
        Arc::new(Dispatched { name, service, dispatch, internal })
    }
}

impl<T: ?Sized + Send + Sync + 'static> Service for Dispatched<T> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Result<Reply, JavaException>> {
        if self.internal.has(&call.method) {
            let message = format!(
                "{}.{} is a call of the cluster's own servers, not of clients",
                self.name, call.method
            );
            let refused = JavaException::new(class::ACCESS_DENIED, message);
            return Box::pin(std::future::ready(Err(refused)));
        }
        let (service, dispatch) = (self.service.clone(), self.dispatch);
        Box::pin(async move { dispatch(&service, &call.method, call.param).await.map(Reply::message) })
    }
}
