//! `Mutate`: a change of one row.

use bytes::Bytes;
use cell::codec::Codec;
use rpc::CellBlock;
use wire::convert::from_proto;
use wire::exception::Answer;

use super::Answered;
use crate::errors::java_exception;
use crate::server::RegionServer;

/// Answers a `Mutate`.
pub(super) async fn mutate(
    server: &RegionServer,
    request: &proto::MutateRequest,
    cells: Bytes,
    codec: Codec,
) -> Answer<Answered<proto::MutateResponse>> {
    let region = server.regions().find(&request.region.value)?;
    from_proto::refuse_condition(request.condition.as_ref())?;
    let mut cells = codec.read(cells);
    let mutation = from_proto::mutation(&request.mutation, &mut cells, request.nonce_group())?;
    region.batch_atomic(vec![mutation]).await.map_err(|error| java_exception(&error))?;
    Ok((
        proto::MutateResponse { processed: Some(true), ..proto::MutateResponse::default() },
        CellBlock::new(),
    ))
}
