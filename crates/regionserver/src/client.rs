//! `ClientService`: reads and mutations of rows, one file per call.
//!
//! The calls work on messages. The caller chooses with [`ResultForm`] whether the cells of a result
//! go into the message or into a cell block after it. The header of the connection determines that
//! choice.

mod bulk_load;
mod call_timer;
mod charge;
mod endpoints;
mod get;
mod multi;
mod mutate;
mod results;
mod rpc;
mod scan;

use std::sync::Arc;
use std::time::Duration;

use base::BoxFuture;
use bytes::Bytes;
use cell::codec::Codec;
use proto::exception::{Answer, JavaException};
use wire::service::Caller;

pub use results::ResultForm;
pub use rpc::ClientRpc;

use crate::server::RegionServer;
use crate::users::ClientIdentity;

/// Entry points for the fuzzer to the hand-written message decoders. Nothing else uses them.
#[cfg(fuzzing)]
pub mod fuzzing {
    pub use super::get::fuzzing::get;
    pub use super::multi::fuzzing::multi;
}

/// Callers in the same process get cells in cell blocks, as ordinary clients do.
const LOCAL_FORM: ResultForm = ResultForm::Block(Codec::KeyValue);

/// The exception for a request that cannot be decoded.
fn malformed(error: prost::DecodeError) -> JavaException {
    JavaException::do_not_retry(format!("unable to read call parameter; {error}"))
}

/// Parameters of a call that are not in its message.
#[derive(Clone)]
pub struct CallContext {
    /// Where the cells of a Get's result go.
    pub get_form: ResultForm,
    /// Where the cells of all other results go.
    pub form: ResultForm,
    /// The encoding of the request's cell block.
    pub codec: Codec,
    /// The client's timeout for the call, if it sent one.
    pub timeout: Option<Duration>,
    /// When the call began, on the monotonic clock, if that was measured.
    pub begun: Option<Duration>,
    /// The client; `None` for callers in the same process, to which no user quota applies.
    pub client: Option<Arc<ClientIdentity>>,
}

impl CallContext {
    /// The context of a caller in the same process: newest version, cell blocks, no timeout.
    const LOCAL: CallContext = CallContext {
        get_form: LOCAL_FORM,
        form: LOCAL_FORM,
        codec: Codec::KeyValue,
        timeout: None,
        begun: None,
        client: None,
    };
}

/// Calls the service within the process. Other roles of the process use it through
/// [`Remote`](wire::service::Remote), so that the same code serves them and clients.
pub struct LocalCaller(pub Arc<RegionServer>);

impl Caller for LocalCaller {
    fn call(
        &self,
        service: &'static str,
        method: &'static str,
        param: Bytes,
        cells: Bytes,
    ) -> BoxFuture<'_, Answer<(Bytes, Bytes)>> {
        debug_assert_eq!(service, rpc::SERVICE);
        let answer = rpc::answer(self.0.clone(), method.as_bytes(), param, cells, CallContext::LOCAL);
        Box::pin(async move { answer.await.map(|reply| (reply.message, reply.cells.into_bytes())) })
    }
}

/// A response before it is encoded: the message and the cells that follow it.
type ReplyParts<M> = (M, ::rpc::CellBlock);
