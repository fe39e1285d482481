//! Services of `wire` behind the RPC server.

use std::sync::Arc;

use base::BoxFuture;
use bytes::Bytes;
use regionserver::client::failure;
use rpc::{Call, Failure, Reply, Service};
use wire::exception::Answer;

/// Answers a call of a service by its method's name and the bytes of its message (`wire::service::dispatch_…`).
pub type Dispatch<T> = for<'a> fn(&'a T, &str, Bytes) -> BoxFuture<'a, Answer<Bytes>>;

/// A service whose calls carry no cells.
pub struct Dispatched<T: ?Sized> {
    name: &'static str,
    service: Arc<T>,
    dispatch: Dispatch<T>,
}

impl<T: ?Sized> Dispatched<T> {
    /// The service of this name.
    pub fn new(name: &'static str, service: Arc<T>, dispatch: Dispatch<T>) -> Arc<Dispatched<T>> {
        Arc::new(Dispatched { name, service, dispatch })
    }
}

impl<T: ?Sized + Send + Sync + 'static> Service for Dispatched<T> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Result<Reply, Failure>> {
        let (service, dispatch) = (self.service.clone(), self.dispatch);
        Box::pin(async move {
            dispatch(&service, &call.method, call.param).await.map(Reply::message).map_err(failure)
        })
    }
}
