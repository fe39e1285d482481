//! `ExecService`: calls of coprocessor endpoints of regions.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use coprocessor::Error;
use engine::Region;
use proto::exception::Answer;

use crate::errors::java_exception;
use crate::server::RegionServer;

/// Serves an `ExecService` call.
pub(super) async fn exec_service(
    server: &RegionServer,
    request: &proto::CoprocessorServiceRequest,
    timeout: Option<Duration>,
) -> Answer<proto::CoprocessorServiceResponse> {
    let region = server.regions().find(&request.region.value)?;
    let value = call(server, &region, &request.call, timeout).await?;
    let region = proto::RegionSpecifier {
        value: Bytes::copy_from_slice(region.name().as_bytes()),
        ..request.region.clone()
    };
    Ok(proto::CoprocessorServiceResponse { region, value })
}

/// Calls an endpoint of a region; `timeout` is the client's.
pub(super) async fn call(
    server: &RegionServer,
    region: &Arc<Region>,
    call: &proto::CoprocessorServiceCall,
    timeout: Option<Duration>,
) -> Answer<proto::NameBytesPair> {
    let response = server.endpoints().call(region, call, timeout).await.map_err(|error| match error {
        Error::Region(error) => java_exception(&error),
        Error::Refused(exception) => exception,
    })?;
    Ok(proto::NameBytesPair { name: response.class.to_string(), value: Some(response.message.into()) })
}
