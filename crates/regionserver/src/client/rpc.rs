//! `ClientService` for the RPC server: decodes requests, encodes responses, and puts cells where
//! the connection expects them.

use std::sync::Arc;

use ::rpc::{Call, CellBlock, ConnectionInfo, Reply, Service};
use base::{BoxFuture, turns};
use bytes::Bytes;
use cell::codec::Codec;
use prost::Message;
use proto::exception::Answer;
use wire::service::refuse_client;

use super::results::ResultForm;
use super::{CallContext, bulk_load, endpoints, get, malformed, multi, mutate, scan};
use crate::instruments::RequestInstruments;
use crate::server::RegionServer;
use crate::users::ClientIdentity;

/// The name of the service.
pub(super) const SERVICE: &str = "ClientService";

/// The service of a region server for its connections.
pub struct ClientRpc {
    server: Arc<RegionServer>,
    // The client; None in the instance that is not bound to a connection.
    client: Option<Arc<ClientIdentity>>,
}

impl ClientRpc {
    /// The service of `server`.
    pub fn new(server: Arc<RegionServer>) -> ClientRpc {
        ClientRpc { server, client: None }
    }
}

impl Service for ClientRpc {
    fn name(&self) -> &'static str {
        SERVICE
    }

    fn of_connection(&self, connection: &Arc<ConnectionInfo>) -> Option<Arc<dyn Service>> {
        let client = Arc::new(self.server.users().identify(connection));
        Some(Arc::new(ClientRpc { server: self.server.clone(), client: Some(client) }))
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Answer<Reply>> {
        let context = context(&call, self.client.clone());
        count(self.server.requests(), call.method.as_bytes());
        let answer = answer(self.server.clone(), call.method.as_bytes(), call.param, call.cells, context);
        if !self.server.lease().is_limited() {
            return answer;
        }
        let server = self.server.clone();
        Box::pin(async move {
            let answer = answer.await;
            server.lease().check()?;
            answer
        })
    }
}

/// Counts a call of a client.
fn count(requests: &RequestInstruments, method: &[u8]) {
    match method {
        b"Get" => requests.gets.increment(),
        b"Mutate" => requests.mutates.increment(),
        b"Multi" => requests.multis.increment(),
        b"Scan" => requests.scans.increment(),
        _ => {}
    }
}

/// Answers a call of a client, or of another role in this process.
pub(super) fn answer(
    server: Arc<RegionServer>,
    method: &[u8],
    param: Bytes,
    cells: Bytes,
    context: CallContext,
) -> BoxFuture<'static, Answer<Reply>> {
    let is_long_read = param.len() > LONG_READ_BYTES && matches!(method, b"Get" | b"Scan");
    // Each method has its own future, so that small calls do not pay for the largest one.
    let answer: BoxFuture<'static, Answer<Reply>> =
        match method {
            b"Get" => Box::pin(async move {
                let (message, cells) = get::get(&server, &get::GetRequest::decode(param)?, &context).await?;
                Ok(Reply { message, cells })
            }),
            b"Mutate" => Box::pin(async move {
                let request = decode(param)?;
                reply(mutate::mutate(&server, &request, cells, context).await?)
            }),
            b"Multi" => Box::pin(async move {
                let (message, cells) = multi::multi(&server, param, cells, context).await?;
                Ok(Reply { message, cells })
            }),
            b"Scan" => Box::pin(async move {
                let request = scan_request(param)?;
                let (message, cells) = scan::scan(&server, &request, context).await?.finish();
                Ok(Reply { message, cells })
            }),
            b"ExecService" => Box::pin(async move {
                let response = endpoints::exec_service(&server, &decode(param)?, context.timeout).await?;
                reply((response, CellBlock::new()))
            }),
            b"PrepareBulkLoad" => Box::pin(async move {
                reply((bulk_load::prepare(&server, &decode(param)?, &context).await?, CellBlock::new()))
            }),
            b"BulkLoadHFile" => Box::pin(async move {
                reply((bulk_load::load(&server, &decode(param)?).await?, CellBlock::new()))
            }),
            b"CleanupBulkLoad" => Box::pin(async move {
                reply((bulk_load::clean_up(&server, &decode(param)?).await?, CellBlock::new()))
            }),
            other => {
                let refused = refuse_client(&String::from_utf8_lossy(other), &param);
                Box::pin(std::future::ready(Err(refused)))
            }
        };
    if is_long_read { offload(answer) } else { answer }
}

/// Length of a read's message above which it is decoded on a low-priority thread. Such a read has a
/// large filter or very many columns.
const LONG_READ_BYTES: usize = 64 << 10;

/// Runs a call with a long message on a low-priority thread.
fn offload(answer: BoxFuture<'static, Answer<Reply>>) -> BoxFuture<'static, Answer<Reply>> {
    Box::pin(async move {
        turns::leave_thread().await;
        answer.await
    })
}

/// Results go into a cell block if the client has a codec. As in HBase, this applies to the result
/// of a Get only if the client reports a version of at least 1.3.
fn context(call: &Call, client: Option<Arc<ClientIdentity>>) -> CallContext {
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
        client,
    }
}

fn cell_codec(codec: ::rpc::Codec) -> Codec {
    match codec {
        ::rpc::Codec::KeyValue => Codec::KeyValue,
        ::rpc::Codec::KeyValueWithTags => Codec::KeyValueWithTags,
    }
}

/// Decodes a request. A scanner that stays open keeps parts of its request, so that request is
/// copied first. Otherwise the scanner would pin other requests in the same read buffer.
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
