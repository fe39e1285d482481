//! Calls of endpoints: their input and their response.

use std::sync::Arc;
use std::time::Duration;

use base::budget::Budget;
use prost::Message;
use proto::exception::{Answer, JavaException, class};

use crate::background::Background;

/// Response to a call of an endpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    /// Java class of the message. It is sent to clients, which ignore it.
    pub class: &'static str,
    /// The message.
    pub message: Vec<u8>,
}

/// A call of an endpoint and its context.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    /// The call.
    pub(crate) call: &'a proto::CoprocessorServiceCall,
    /// Time on the monotonic clock after which the client no longer waits.
    pub(crate) deadline: Option<Duration>,
    /// Executor for long-running work.
    pub(crate) background: &'a Background,
    /// Budget for responses that are being built or sent.
    pub(crate) response_budget: &'a Arc<Budget>,
}

/// HBase's exception for an unknown method of a service.
pub(crate) fn unknown_method(call: &proto::CoprocessorServiceCall) -> JavaException {
    let message =
        format!("Unknown method {} called on service hbase.pb.{}", call.method_name, call.service_name);
    JavaException::new(class::UNKNOWN_PROTOCOL, message)
}

/// Decodes the request message of a call.
pub(crate) fn decode<M: Message + Default>(call: &proto::CoprocessorServiceCall) -> Answer<M> {
    M::decode(call.request.clone())
        .map_err(|error| JavaException::do_not_retry(format!("unable to read the call's request; {error}")))
}
