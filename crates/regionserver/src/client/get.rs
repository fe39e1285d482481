//! `Get`: one row.

use engine::Region;
use engine::scanner::ResultSink;
use prost::Message;
use rpc::CellBlock;
use wire::exception::Answer;

use super::results::{ResultForm, Results};
use super::{Answered, CallContext};
use crate::errors::java_exception;
use crate::quotas::Planned;
use crate::server::RegionServer;

/// Answers a `Get`.
pub(super) async fn get(
    server: &RegionServer,
    request: &proto::GetRequest,
    context: CallContext,
) -> Answer<Answered<proto::GetResponse>> {
    let region = server.regions().find(&request.region.value)?;
    let mut quota = server.admit(&context, &region, || Planned { gets: 1, ..Planned::default() })?;
    let mut cells = CellBlock::new();
    let result = read(server, &region, &request.get, context.get_form, &mut cells).await?;
    quota.has_read(cells.len() + result_bytes(&result));
    Ok((proto::GetResponse { result: Some(result) }, cells))
}

/// Bytes of cells within a result's message.
pub(super) fn result_bytes(result: &proto::Result) -> usize {
    result.cell.iter().map(Message::encoded_len).sum()
}

/// Reads a row; its cells go behind what `block` has. If it fails, `block` is as it was.
pub(super) async fn read(
    server: &RegionServer,
    region: &Region,
    get: &proto::Get,
    form: ResultForm,
    block: &mut CellBlock,
) -> Answer<proto::Result> {
    let get = wire::convert::from_proto::get(get)?;
    let before = block.len();
    let mut results = Results::admitted(form, block, server.answers());
    if let Err(error) = region.get_into(&get, &mut results).await {
        block.truncate(before);
        return Err(java_exception(&error));
    }
    if !get.existence_only {
        return Ok(results.into_single());
    }
    let exists = results.bytes() > 0;
    block.truncate(before);
    Ok(wire::convert::result::existence(exists))
}
