//! A service on another server.

use base::BoxFuture;
use bytes::Bytes;
use prost::Message;

use crate::exception::{Answer, JavaException};
use crate::service::encode;

/// Sends calls to one server. A call that fails on the way gives an exception that says so.
pub trait Caller: Send + Sync + 'static {
    /// Calls a method with the bytes of its message and a cell block; gives the bytes of the answer and its cell block.
    fn call(
        &self,
        service: &'static str,
        method: &'static str,
        param: Bytes,
        cells: Bytes,
    ) -> BoxFuture<'_, Answer<(Bytes, Bytes)>>;
}

/// A server across the network: each of the service traits by way of a [`Caller`].
pub struct Remote<C>(pub C);

/// A call without cells.
pub(super) async fn call<Response: Message + Default>(
    caller: &impl Caller,
    service: &'static str,
    method: &'static str,
    request: impl Message,
) -> Answer<Response> {
    let (response, _) = caller.call(service, method, encode(&request), Bytes::new()).await?;
    decode_response(method, response)
}

/// Reads an answer's message.
pub(super) fn decode_response<M: Message + Default>(method: &str, response: Bytes) -> Answer<M> {
    M::decode(response).map_err(|error| JavaException::io(format!("unreadable answer to {method}: {error}")))
}
