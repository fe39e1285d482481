//! `ClientService`: reads and writes of rows.

use base::BoxFuture;
use bytes::Bytes;
use prost::Message;

use crate::service::encode;
use crate::service::method::{Method, Support, refuse};
use crate::service::remote::{Caller, Remote, decode_response};
use proto::exception::{Answer, JavaException, class};

/// A request and its cell block.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CellRequest<M> {
    /// The message.
    pub message: M,
    /// Its cells, encoded with KeyValueCodec.
    pub cells: Bytes,
}

impl<M> From<M> for CellRequest<M> {
    fn from(message: M) -> CellRequest<M> {
        CellRequest { message, cells: Bytes::new() }
    }
}

/// A response and its cell block.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CellReply<M> {
    /// The message.
    pub message: M,
    /// Its cells, encoded with KeyValueCodec.
    pub cells: Bytes,
}

impl<M> From<M> for CellReply<M> {
    fn from(message: M) -> CellReply<M> {
        CellReply { message, cells: Bytes::new() }
    }
}

/// Reads and writes of rows, for callers that accept cells in cell blocks.
///
/// The responses have the form that HBase's newest client gets with KeyValueCodec. The code that
/// answers frames converts them for older clients (cells inside the messages).
pub trait ClientService: Send + Sync + 'static {
    /// Reads one row.
    fn get(
        &self,
        request: CellRequest<proto::GetRequest>,
    ) -> BoxFuture<'_, Answer<CellReply<proto::GetResponse>>>;
    /// Changes one row.
    fn mutate(
        &self,
        request: CellRequest<proto::MutateRequest>,
    ) -> BoxFuture<'_, Answer<CellReply<proto::MutateResponse>>>;
    /// Reads and changes rows of several regions. Each action succeeds or fails separately.
    fn multi(
        &self,
        request: CellRequest<proto::MultiRequest>,
    ) -> BoxFuture<'_, Answer<CellReply<proto::MultiResponse>>>;
    /// Opens, continues or closes a scanner.
    fn scan(
        &self,
        request: CellRequest<proto::ScanRequest>,
    ) -> BoxFuture<'_, Answer<CellReply<proto::ScanResponse>>>;
}

/// Every method of ClientService in HBase 2.6, and its support here.
pub const CLIENT_METHODS: &[Method] = &[
    works("Get", "GetRequest", "GetResponse"),
    works("Mutate", "MutateRequest", "MutateResponse"),
    works("Scan", "ScanRequest", "ScanResponse"),
    works("Multi", "MultiRequest", "MultiResponse"),
    works("BulkLoadHFile", "BulkLoadHFileRequest", "BulkLoadHFileResponse"),
    works("PrepareBulkLoad", "PrepareBulkLoadRequest", "PrepareBulkLoadResponse"),
    works("CleanupBulkLoad", "CleanupBulkLoadRequest", "CleanupBulkLoadResponse"),
    works("ExecService", "CoprocessorServiceRequest", "CoprocessorServiceResponse"),
    Method {
        name: "ExecRegionServerService",
        request: "CoprocessorServiceRequest",
        response: "CoprocessorServiceResponse",
        support: Support::Refused(class::UNKNOWN_PROTOCOL),
    },
];

const fn works(name: &'static str, request: &'static str, response: &'static str) -> Method {
    Method { name, request, response, support: Support::Works }
}

/// The exception for an unsupported method of ClientService.
pub fn refuse_client(method: &str, param: &Bytes) -> JavaException {
    match (method, proto::CoprocessorServiceRequest::decode(param.clone())) {
        ("ExecRegionServerService", Ok(request)) => no_endpoint(&request.call.service_name, b""),
        _ => refuse(CLIENT_METHODS, method),
    }
}

/// HBase's exception for a call of an endpoint that is not loaded.
pub fn no_endpoint(service: &str, region: &[u8]) -> JavaException {
    let place =
        if region.is_empty() { String::new() } else { format!(" in region {}", region.escape_ascii()) };
    JavaException::new(
        class::UNKNOWN_PROTOCOL,
        format!("No registered coprocessor service found for {service}{place}"),
    )
}

async fn call<Request: Message, Response: Message + Default>(
    caller: &impl Caller,
    method: &'static str,
    request: CellRequest<Request>,
) -> Answer<CellReply<Response>> {
    let (response, cells) =
        caller.call("ClientService", method, encode(&request.message), request.cells).await?;
    Ok(CellReply { message: decode_response(method, response)?, cells })
}

impl<C: Caller> ClientService for Remote<C> {
    fn get(
        &self,
        request: CellRequest<proto::GetRequest>,
    ) -> BoxFuture<'_, Answer<CellReply<proto::GetResponse>>> {
        Box::pin(call(&self.0, "Get", request))
    }
    fn mutate(
        &self,
        request: CellRequest<proto::MutateRequest>,
    ) -> BoxFuture<'_, Answer<CellReply<proto::MutateResponse>>> {
        Box::pin(call(&self.0, "Mutate", request))
    }
    fn multi(
        &self,
        request: CellRequest<proto::MultiRequest>,
    ) -> BoxFuture<'_, Answer<CellReply<proto::MultiResponse>>> {
        Box::pin(call(&self.0, "Multi", request))
    }
    fn scan(
        &self,
        request: CellRequest<proto::ScanRequest>,
    ) -> BoxFuture<'_, Answer<CellReply<proto::ScanResponse>>> {
        Box::pin(call(&self.0, "Scan", request))
    }
}
