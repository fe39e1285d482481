//! Which services a region has, and who answers a call of one.
//!
//! Source: HBase `HRegion.execService`.

use std::sync::Arc;
use std::time::Duration;

use base::env::Env;
use cell::coprocessor;
use engine::Region;
use prost::Message;
use wire::exception::{Answer, JavaException, class};
use wire::service::no_endpoint;

use crate::background::Background;
use crate::error::Result;
use crate::{aggregate, multi_row, row_count};

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
}

/// The endpoints of a server's regions.
pub struct Endpoints {
    env: Env,
    background: Background,
}

impl Endpoints {
    /// Those of a server in `env`.
    pub fn new(env: Env) -> Endpoints {
        Endpoints { background: Background::new(env.clone()), env }
    }

    /// Answers a call of one of `region`'s services, for which the client waits as long as `timeout` from now, if it said so. Dropped,
    /// the call ends.
    ///
    /// # Errors
    /// Of a service that the region does not have, of a method that the service does not have, of a request that is not
    /// what it should be: by HBase's exceptions. All that the service fails with.
    pub async fn call(
        &self,
        region: &Arc<Region>,
        call: &proto::CoprocessorServiceCall,
        timeout: Option<Duration>,
    ) -> Result<Response> {
        let deadline = timeout.map(|timeout| self.env.clock.monotonic().saturating_add(timeout));
        let call = Call { call, deadline, background: &self.background };
        match &call.call.service_name[..] {
            aggregate::SERVICE => aggregate::call(region, call).await,
            row_count::SERVICE => row_count::call(region, call).await,
            multi_row::SERVICE if coprocessor::is_named(region.table(), coprocessor::MULTI_ROW_MUTATION) => {
                multi_row::call(region, call.call).await
            }
            service => Err(no_endpoint(service, region.name().as_bytes()).into()),
        }
    }
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
