//! `ClientService` behind the RPC server: messages in, messages out, cells where the connection wants them.

use std::sync::Arc;

use ::rpc::{Call, CellBlock, ConnectionInfo, Failure, Reply, Service};
use base::{BoxFuture, turns};
use bytes::Bytes;
use cell::codec::Codec;
use futures_util::TryFutureExt;
use prost::Message;
use wire::exception::{Answer, JavaException};
use wire::service::refuse_client;

use super::results::ResultForm;
use super::{CallContext, endpoints, get, malformed, multi, mutate, scan};
use crate::server::RegionServer;
use crate::users::Caller;

/// The service of a server for connections.
pub struct ClientRpc {
    server: Arc<RegionServer>,
    // Of its connection, once there is one.
    caller: Option<Arc<Caller>>,
}

impl ClientRpc {
    /// That of `server`.
    pub fn new(server: Arc<RegionServer>) -> ClientRpc {
        ClientRpc { server, caller: None }
    }
}

impl Service for ClientRpc {
    fn name(&self) -> &'static str {
        "ClientService"
    }

    fn of_connection(&self, connection: &Arc<ConnectionInfo>) -> Option<Arc<dyn Service>> {
        let caller = Arc::new(self.server.users().caller(connection));
        Some(Arc::new(ClientRpc { server: self.server.clone(), caller: Some(caller) }))
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Result<Reply, Failure>> {
        let server = self.server.clone();
        let context = context(&call, self.caller.clone());
        let Call { method, param, cells, .. } = call;
        let requests = self.server.requests();
        let is_long_read = param.len() > LONG_READ_BYTES && matches!(method.as_bytes(), b"Get" | b"Scan");
        // A future for each method, so that a small call does not pay for the largest one's.
        let answer = match method.as_bytes() {
            b"Get" => {
                requests.gets.increment();
                boxed(async move {
                    let (message, cells) = get::get(&server, &get::GetRequest::of(param)?, &context).await?;
                    Ok(Reply { message, cells })
                })
            }
            b"Mutate" => {
                requests.mutates.increment();
                boxed(async move {
                    let request = decode(param)?;
                    reply(mutate::mutate(&server, &request, cells, context).await?)
                })
            }
            b"Multi" => {
                requests.multis.increment();
                boxed(async move {
                    let (message, cells) = multi::multi(&server, param, cells, context).await?;
                    Ok(Reply { message, cells })
                })
            }
            b"Scan" => {
                requests.scans.increment();
                boxed(async move {
                    let request = scan_request(param)?;
                    let (message, cells) = scan::scan(&server, &request, context).await?.finish();
                    Ok(Reply { message, cells })
                })
            }
            b"ExecService" => boxed(async move {
                let response = endpoints::exec_service(&server, &decode(param)?, context.timeout).await?;
                reply((response, CellBlock::new()))
            }),
            _ => {
                let refused = refuse_client(&method, &param);
                boxed(async move { Err(refused) })
            }
        };
        if is_long_read { away(answer) } else { answer }
    }
}

/// Bytes of a read's message from which it is decoded on a thread of low priority: it has a large filter, or very many columns.
const LONG_READ_BYTES: usize = 64 << 10;

/// The answer to a long message, made on a thread of low priority.
fn away(answer: BoxFuture<'static, Result<Reply, Failure>>) -> BoxFuture<'static, Result<Reply, Failure>> {
    Box::pin(async move {
        turns::leave_thread().await;
        answer.await
    })
}

fn boxed(
    answer: impl Future<Output = Answer<Reply>> + Send + 'static,
) -> BoxFuture<'static, Result<Reply, Failure>> {
    // Not by an async block, which would have room for the answer's future twice.
    Box::pin(answer.map_err(failure))
}

/// Where results go: behind the message if the client has a codec. The result of a Get only for clients that tell a
/// version of at least 1.3, as HBase does it.
fn context(call: &Call, caller: Option<Arc<Caller>>) -> CallContext {
    let connection: &ConnectionInfo = &call.connection;
    let codec = connection.codec.map(cell_codec);
    let form = codec.map_or(ResultForm::Inline, ResultForm::Block);
    let get_form = if connection.version_at_least(1, 3) { form } else { ResultForm::Inline };
    CallContext {
        get_form,
        form,
        codec: codec.unwrap_or(Codec::KeyValue),
        timeout: call.timeout(),
        begun: Some(call.begun),
        caller,
    }
}

fn cell_codec(codec: ::rpc::Codec) -> Codec {
    match codec {
        ::rpc::Codec::KeyValue => Codec::KeyValue,
        ::rpc::Codec::KeyValueWithTags => Codec::KeyValueWithTags,
    }
}

/// A scanner that stays open keeps parts of its request, which is copied so that it keeps no other request of the same read.
fn scan_request(param: Bytes) -> Answer<proto::ScanRequest> {
    let request: proto::ScanRequest = decode(param.clone())?;
    match request.scan.is_some() && !request.close_scanner() && param.len() < LONG_READ_BYTES {
        true => decode(Bytes::copy_from_slice(&param)),
        false => Ok(request),
    }
}

fn decode<M: Message + Default>(param: Bytes) -> Answer<M> {
    M::decode(param).map_err(malformed)
}

fn reply((message, cells): (impl Message, CellBlock)) -> Answer<Reply> {
    Ok(Reply { message: message.encode_to_vec().into(), cells })
}

/// An exception as the RPC server sends it.
pub fn failure(exception: JavaException) -> Failure {
    Failure {
        class: exception.class,
        message: exception.message,
        do_not_retry: exception.do_not_retry,
        location: exception.location,
        server_overloaded: exception.server_overloaded,
    }
}
