//! `MultiRowMutationService`: atomic changes of several rows of a region. A region has it if its
//! table names the class as a coprocessor, as `hbase:meta` does.
//!
//! Source: HBase `MultiRowMutationEndpoint`.

use bytes::Bytes;
use cell::codec::Codec;
use cell::condition::Condition;
use cell::mutation::Mutation;
use engine::Region;
use prost::Message;
use proto::exception::{Answer, JavaException};
use wire::convert::from_proto;

use crate::call::{Response, decode, unknown_method};
use crate::error::Result;

pub(crate) const SERVICE: &str = "MultiRowMutationService";

const RESPONSE: &str = "org.apache.hadoop.hbase.protobuf.generated.MultiRowMutationProtos$MutateRowsResponse";

/// Handles a call of the service.
pub(crate) async fn call(region: &Region, call: &proto::CoprocessorServiceCall) -> Result<Response> {
    if call.method_name != "MutateRows" {
        return Err(unknown_method(call).into());
    }
    let (conditions, mutations) = changes(&decode(call)?)?;
    let changed = region.change_rows(&conditions, &mutations).await?;
    let response = proto::MutateRowsResponse { processed: Some(changed.matched) };
    Ok(Response { class: RESPONSE, message: response.encode_to_vec() })
}

/// Decodes the conditions and mutations of a request.
fn changes(request: &proto::MutateRowsRequest) -> Answer<(Vec<Condition>, Vec<Mutation>)> {
    let mut no_cells = Codec::KeyValue.read(Bytes::new());
    let mut mutations: Vec<Mutation> = Vec::with_capacity(request.mutation_request.len());
    for mutation in &request.mutation_request {
        let mutation = from_proto::mutation(mutation, &mut no_cells, 0)?;
        if mutation.kind.reads() {
            return Err(JavaException::do_not_retry(
                "atomic changes of several rows support only puts and deletes",
            ));
        }
        mutations.push(mutation);
    }
    if let Some(first) = mutations.first_mut() {
        first.nonce = (request.nonce_group(), request.nonce());
    }
    let conditions =
        request.condition.iter().map(from_proto::condition).collect::<std::result::Result<_, _>>()?;
    Ok((conditions, mutations))
}
