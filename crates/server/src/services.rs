//! Services of `wire` behind the RPC server.

use std::sync::Arc;

use base::BoxFuture;
use bytes::Bytes;
use regionserver::client::failure;
use rpc::{Call, Failure, Reply, Service};
use wire::exception::{Answer, JavaException, class};

/// Answers a call of a service by its method's name and the bytes of its message (`wire::service::dispatch_…`).
pub type Dispatch<T> = for<'a> fn(&'a T, &str, Bytes) -> BoxFuture<'a, Answer<Bytes>>;

/// A service whose calls carry no cells.
pub struct Dispatched<T: ?Sized> {
    name: &'static str,
    service: Arc<T>,
    dispatch: Dispatch<T>,
    internal: Internal,
}

/// Methods of a service that only servers of the cluster call. Master and region server are one process and call each
/// other without a network, so such a call from the network has no honest sender.
#[derive(Clone, Copy)]
pub enum Internal {
    /// None.
    None,
    /// These.
    Methods(&'static [&'static str]),
    /// All of them.
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

/// Methods of `AdminService` by which the master opens and closes regions.
pub const OF_MASTER: Internal =
    Internal::Methods(&["OpenRegion", "CloseRegion", "WarmupRegion", "ExecuteProcedures"]);

impl<T: ?Sized> Dispatched<T> {
    /// The service of this name, of which calls to `internal` methods are refused.
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

    fn call(&self, call: Call) -> BoxFuture<'static, Result<Reply, Failure>> {
        if self.internal.has(&call.method) {
            let message = format!(
                "{}.{} is a call of the cluster's own servers, not of clients",
                self.name, call.method
            );
            let refused = failure(JavaException::new(class::ACCESS_DENIED, message));
            return Box::pin(std::future::ready(Err(refused)));
        }
        let (service, dispatch) = (self.service.clone(), self.dispatch);
        Box::pin(async move {
            dispatch(&service, &call.method, call.param).await.map(Reply::message).map_err(failure)
        })
    }
}
