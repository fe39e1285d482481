//! A call of an endpoint: what it is given, and what it is answered with.

use std::sync::Arc;
use std::time::Duration;

use base::budget::Budget;
use prost::Message;
use wire::exception::{Answer, JavaException, class};

use crate::background::Background;

/// An answer to a call of an endpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    /// The Java class of the message, which clients are told and do not look at.
    pub class: &'static str,
    /// The message.
    pub message: Vec<u8>,
}

/// A call of an endpoint, and what it is answered with.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    /// The call.
    pub(crate) call: &'a proto::CoprocessorServiceCall,
    /// When the client does not wait for it any more, by the monotonic clock.
    pub(crate) deadline: Option<Duration>,
    /// Where long work runs.
    pub(crate) background: &'a Background,
    /// Bytes of answers that are made or on their way.
    pub(crate) answers: &'a Arc<Budget>,
}

/// As HBase answers where a service has no such method.
pub(crate) fn unknown_method(call: &proto::CoprocessorServiceCall) -> JavaException {
    let message =
        format!("Unknown method {} called on service hbase.pb.{}", call.method_name, call.service_name);
    JavaException::new(class::UNKNOWN_PROTOCOL, message)
}

/// The message of a call.
pub(crate) fn decode<M: Message + Default>(call: &proto::CoprocessorServiceCall) -> Answer<M> {
    M::decode(call.request.clone())
        .map_err(|error| JavaException::do_not_retry(format!("unable to read the call's request; {error}")))
}
