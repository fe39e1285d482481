//! `Get`: one row.

use cell::query::Get;
use engine::Region;
use engine::scanner::Aim;
use prost::Message;
use rpc::CellBlock;
use wire::convert::from_proto;
use wire::exception::Answer;

use super::results::{ResultForm, Results, RowResult};
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
    let get = from_proto::get(&request.get)?;
    let result = read(server, &region, &get, &Aim::default(), context.get_form, &mut cells).await?;
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
    get: &Get,
    aim: &Aim,
    form: ResultForm,
    block: &mut CellBlock,
) -> Answer<proto::Result> {
    let before = block.len();
    let result = match form {
        ResultForm::Block(codec) => {
            let mut result = RowResult::admitted(codec, block, server.answers());
            region.get_aimed(get, aim, &mut result).await.map(|()| result.finish())
        }
        ResultForm::Inline => {
            let mut results = Results::admitted(form, block, server.answers());
            region.get_aimed(get, aim, &mut results).await.map(|()| results.into_single())
        }
    };
    if result.is_err() || get.existence_only {
        block.truncate(before);
    }
    let result = result.map_err(|error| java_exception(&error))?;
    if !get.existence_only {
        return Ok(result);
    }
    let exists = result.associated_cell_count() > 0 || !result.cell.is_empty();
    Ok(wire::convert::result::existence(exists))
}
