//! Endpoints: calls of services that a table has beside those of every region.
//!
//! One is built in, `MultiRowMutationService`, where the table names its class as a coprocessor, as `hbase:meta` does.
//! Every other is answered as HBase answers for one that is not loaded.
//!
//! Source: HBase `HRegion.execService`, `MultiRowMutationEndpoint`.

use bytes::Bytes;
use cell::codec::Codec;
use cell::condition::Condition;
use cell::coprocessor;
use cell::mutation::Mutation;
use engine::Region;
use prost::Message;
use wire::convert::from_proto;
use wire::exception::{Answer, JavaException, class};
use wire::service::no_endpoint;

use crate::errors::java_exception;
use crate::server::RegionServer;

const MULTI_ROW_SERVICE: &str = "MultiRowMutationService";

/// The class of its answers, which clients are told and do not look at.
const MUTATE_ROWS_RESPONSE: &str =
    "org.apache.hadoop.hbase.protobuf.generated.MultiRowMutationProtos$MutateRowsResponse";

/// Answers an `ExecService`.
pub(super) async fn exec_service(
    server: &RegionServer,
    request: &proto::CoprocessorServiceRequest,
) -> Answer<proto::CoprocessorServiceResponse> {
    let region = server.regions().find(&request.region.value)?;
    let value = call(&region, &request.call).await?;
    let region = proto::RegionSpecifier {
        value: Bytes::copy_from_slice(region.name().as_bytes()),
        ..request.region.clone()
    };
    Ok(proto::CoprocessorServiceResponse { region, value })
}

/// Answers a call of a region's endpoint.
pub(super) async fn call(
    region: &Region,
    call: &proto::CoprocessorServiceCall,
) -> Answer<proto::NameBytesPair> {
    let is_loaded = coprocessor::is_named(region.table(), coprocessor::MULTI_ROW_MUTATION);
    if !is_loaded || call.service_name != MULTI_ROW_SERVICE {
        return Err(no_endpoint(&call.service_name, region.name().as_bytes()));
    }
    if call.method_name != "MutateRows" {
        let message =
            format!("Unknown method {} called on service hbase.pb.{MULTI_ROW_SERVICE}", call.method_name);
        return Err(JavaException::new(class::UNKNOWN_PROTOCOL, message));
    }
    let request = proto::MutateRowsRequest::decode(call.request.clone()).map_err(|error| {
        JavaException::do_not_retry(format!("unable to read the call's request; {error}"))
    })?;
    let response = mutate_rows(region, &request).await?;
    Ok(proto::NameBytesPair {
        name: MUTATE_ROWS_RESPONSE.to_string(),
        value: Some(response.encode_to_vec().into()),
    })
}

/// All changes of several rows of a region, or none.
async fn mutate_rows(
    region: &Region,
    request: &proto::MutateRowsRequest,
) -> Answer<proto::MutateRowsResponse> {
    let mut no_cells = Codec::KeyValue.read(Bytes::new());
    let mut mutations: Vec<Mutation> = Vec::with_capacity(request.mutation_request.len());
    for mutation in &request.mutation_request {
        let mutation = from_proto::mutation(mutation, &mut no_cells, 0)?;
        if mutation.kind.reads() {
            return Err(JavaException::do_not_retry(
                "only puts and deletes of several rows can be made at once",
            ));
        }
        mutations.push(mutation);
    }
    if let Some(first) = mutations.first_mut() {
        first.nonce = (request.nonce_group(), request.nonce());
    }
    let conditions: Vec<Condition> =
        request.condition.iter().map(from_proto::condition).collect::<Result<_, _>>()?;
    let changed = region.change_rows(&conditions, &mutations).await;
    let changed = changed.map_err(|error| java_exception(&error))?;
    Ok(proto::MutateRowsResponse { processed: Some(changed.matched) })
}
