//! Adapts the services of `wire` to the RPC server.

use std::sync::Arc;

use base::BoxFuture;
use bytes::Bytes;
use proto::exception::{Answer, JavaException, class};
use rpc::{Call, Reply, Service};

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
