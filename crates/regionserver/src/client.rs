//! `ClientService`: reads and writes of rows, one call a file.
//!
//! The calls work on messages; where the cells of a result go (a cell block behind the message, or into it) is the
//! caller's choice by [`ResultForm`], made from what the client's connection said.

mod charge;
mod endpoints;
mod get;
mod multi;
mod mutate;
mod results;
mod rpc;
mod scan;
mod timed;

use std::sync::Arc;
use std::time::Duration;

use base::BoxFuture;
use cell::codec::Codec;
use prost::Message;
use wire::exception::{Answer, JavaException};
use wire::service::{CellReply, CellRequest, ClientService};

pub use results::ResultForm;
pub use rpc::{ClientRpc, failure};
pub use scan::OpenScanner;

use crate::server::RegionServer;
use crate::users::Caller;

/// Doors for the fuzzer to messages that are taken apart by hand, which nobody else needs.
#[cfg(fuzzing)]
pub mod fuzzing {
    pub use super::get::fuzzing::get;
    pub use super::multi::fuzzing::multi;
}

/// Callers in the same process take cells as ordinary clients do.
const LOCAL_FORM: ResultForm = ResultForm::Block(Codec::KeyValue);

/// What is said of a call whose bytes are not what they should be.
fn malformed(error: prost::DecodeError) -> JavaException {
    JavaException::do_not_retry(format!("unable to read call parameter; {error}"))
}

/// What a call says besides its message.
#[derive(Clone)]
pub struct CallContext {
    /// Where cells of a Get go.
    pub get_form: ResultForm,
    /// Where cells of all other answers go.
    pub form: ResultForm,
    /// How cells lie in the request's cell block.
    pub codec: Codec,
    /// How long the client waits altogether, if it said so.
    pub timeout: Option<Duration>,
    /// When the call was begun, by the monotonic clock, if somebody looked.
    pub begun: Option<Duration>,
    /// Who calls; `None` for callers in the same process, whom no user's quota bounds.
    pub caller: Option<Arc<Caller>>,
}

impl CallContext {
    /// A caller in the same process: newest version, cell blocks, no hurry.
    const LOCAL: CallContext = CallContext {
        get_form: LOCAL_FORM,
        form: LOCAL_FORM,
        codec: Codec::KeyValue,
        timeout: None,
        begun: None,
        caller: None,
    };

    /// The user who calls.
    pub(crate) fn user(&self) -> Option<&str> {
        self.caller.as_ref()?.user()
    }
}

/// The service over a server.
pub struct Client(pub Arc<RegionServer>);

impl ClientService for Client {
    fn get(
        &self,
        request: CellRequest<proto::GetRequest>,
    ) -> BoxFuture<'_, Answer<CellReply<proto::GetResponse>>> {
        Box::pin(async move {
            let request = (&request.message).into();
            let (message, cells) = get::get(&self.0, &request, &CallContext::LOCAL).await?;
            let message = proto::GetResponse::decode(message).expect("just written as this message");
            Ok(into_reply((message, cells)))
        })
    }

    fn mutate(
        &self,
        request: CellRequest<proto::MutateRequest>,
    ) -> BoxFuture<'_, Answer<CellReply<proto::MutateResponse>>> {
        Box::pin(async move {
            Ok(into_reply(
                mutate::mutate(&self.0, &request.message, request.cells, CallContext::LOCAL).await?,
            ))
        })
    }

    fn multi(
        &self,
        request: CellRequest<proto::MultiRequest>,
    ) -> BoxFuture<'_, Answer<CellReply<proto::MultiResponse>>> {
        Box::pin(async move {
            let message = request.message.encode_to_vec().into();
            let (message, cells) = multi::multi(&self.0, message, request.cells, CallContext::LOCAL).await?;
            let message = proto::MultiResponse::decode(message).expect("just written as this message");
            Ok(into_reply((message, cells)))
        })
    }

    fn scan(
        &self,
        request: CellRequest<proto::ScanRequest>,
    ) -> BoxFuture<'_, Answer<CellReply<proto::ScanResponse>>> {
        Box::pin(async move {
            let (message, cells) = scan::scan(&self.0, &request.message, CallContext::LOCAL).await?.finish();
            let message = proto::ScanResponse::decode(message).expect("just written as this message");
            Ok(into_reply((message, cells)))
        })
    }
}

/// An answer before it is one message: what is said, and the cells behind it.
type Answered<M> = (M, ::rpc::CellBlock);

fn into_reply<M>((message, cells): Answered<M>) -> CellReply<M> {
    CellReply { message, cells: cells.into_pieces() }
}
