//! A service on another server.

use base::BoxFuture;
use bytes::Bytes;
use prost::Message;

use crate::service::encode;
use proto::exception::{Answer, JavaException};

/// Sends calls to one server. A call that fails in transit returns an exception that states so.
pub trait Caller: Send + Sync + 'static {
    /// Calls a method with an encoded message and a cell block. Returns the encoded response and
    /// its cell block.
    fn call(
        &self,
        service: &'static str,
        method: &'static str,
        param: Bytes,
        cells: Bytes,
    ) -> BoxFuture<'_, Answer<(Bytes, Bytes)>>;
}

/// A server across the network: implements each of the service traits through a [`Caller`].
pub struct Remote<C>(pub C);

/// Makes a call without cells.
pub(super) async fn call<Response: Message + Default>(
    caller: &impl Caller,
    service: &'static str,
    method: &'static str,
    request: impl Message,
) -> Answer<Response> {
    let (response, _) = caller.call(service, method, encode(&request), Bytes::new()).await?;
    decode_response(method, response)
}

/// Decodes a response message.
pub(super) fn decode_response<M: Message + Default>(method: &str, response: Bytes) -> Answer<M> {
    M::decode(response)
        .map_err(|error| JavaException::io(format!("cannot decode response of {method}: {error}")))
}
