//! Which services a region has, and who answers a call of one.
//!
//! Source: HBase `HRegion.execService`.

use std::sync::Arc;

use cell::coprocessor;
use engine::Region;
use prost::Message;
use wire::exception::{Answer, JavaException, class};
use wire::service::no_endpoint;

use crate::columns;
use crate::error::Result;
use crate::multi_row;

/// An answer to a call of an endpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    /// The Java class of the message, which clients are told and do not look at.
    pub class: &'static str,
    /// The message.
    pub message: Vec<u8>,
}

/// The endpoints of a server's regions.
#[derive(Default)]
pub struct Endpoints {}

impl Endpoints {
    /// Answers a call of one of `region`'s services.
    ///
    /// # Errors
    /// Of a service that the region does not have, of a method that the service does not have, of a request that is not
    /// what it should be: by HBase's exceptions. All that the service fails with.
    pub async fn call(&self, region: &Arc<Region>, call: &proto::CoprocessorServiceCall) -> Result<Response> {
        match &call.service_name[..] {
            multi_row::SERVICE if coprocessor::is_named(region.table(), coprocessor::MULTI_ROW_MUTATION) => {
                multi_row::call(region, call).await
            }
            columns::SERVICE => columns::call(region, call).await,
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
pub(crate) fn request<M: Message + Default>(call: &proto::CoprocessorServiceCall) -> Answer<M> {
    M::decode(call.request.clone())
        .map_err(|error| JavaException::do_not_retry(format!("unable to read the call's request; {error}")))
}
