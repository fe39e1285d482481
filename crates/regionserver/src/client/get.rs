//! `Get`: one row.

#[cfg(fuzzing)]
pub(super) mod fuzzing;
mod request;

use bytes::Bytes;
use cell::codec::Codec;
use cell::query::Get;
use engine::region::RowReader;
use prost::Message;
use proto::exception::Answer;
use rpc::CellBlock;
use wire::convert::result::{get_response, get_response_in_block};

use super::CallContext;
use super::call_timer::CallTimer;
use super::results::{ResultForm, Results, RowResult};
use crate::errors::java_exception;
use crate::quotas::PlannedWork;
use crate::server::RegionServer;
pub(super) use request::GetRequest;

/// Serves a `Get`. Returns the encoded `GetResponse` and the row's cells.
pub(super) async fn get(
    server: &RegionServer,
    request: &GetRequest,
    context: &CallContext,
) -> Answer<(Bytes, CellBlock)> {
    let region = server.regions().find(&request.region)?;
    let timer = CallTimer::of_call(server, &region, context);
    let quota = server
        .admit(context.client.as_deref(), &region, || PlannedWork { gets: 1, ..PlannedWork::default() });
    let mut quota = quota.inspect_err(|_| timer.end_failed_get())?;
    let get = request.get()?;
    server.hotspots().record(&region, &get.row);
    let (mut reader, mut cells) = (region.row_reader(&get.selection), CellBlock::new());
    let outcome = match try_read(server, &mut reader, &get, context.get_form, &mut cells) {
        Ok(Some(count)) => Ok((get_response_in_block(count), cells.len())),
        // Boxed, so that the future of a Get that does not wait stays small.
        Ok(None) => {
            let read = Box::pin(read(server, &mut reader, &get, context.get_form, &mut cells)).await;
            read.map(|result| {
                let bytes = cells.len() + result_bytes(&result);
                (get_response(result), bytes)
            })
        }
        Err(exception) => Err(exception),
    };
    drop(reader);
    let (message, bytes_read) = outcome.inspect_err(|_| timer.end_failed_get())?;
    quota.record_read(bytes_read);
    timer.end_get(&quota);
    Ok((message, cells))
}

/// Reads the row of `get` if that needs no wait and its cells go into the cell block. Appends them
/// to `cell_block` and returns their number. `None`: the caller must use [`read`].
fn try_read(
    server: &RegionServer,
    reader: &mut RowReader<'_>,
    get: &Get,
    form: ResultForm,
    cell_block: &mut CellBlock,
) -> Answer<Option<usize>> {
    let Some(codec) = cell_block_codec(get, form) else { return Ok(None) };
    let mut result = RowResult::with_budget(codec, cell_block, server.response_budget());
    let is_read = reader.try_read(&get.row, &mut result).map_err(|error| java_exception(&error))?;
    Ok(is_read.then(|| result.cells()))
}

/// The codec of the cells of `get`, if they go into the cell block.
fn cell_block_codec(get: &Get, form: ResultForm) -> Option<Codec> {
    match form {
        ResultForm::Block(codec) if !get.existence_only => Some(codec),
        _ => None,
    }
}

/// Bytes of the cells within a result's message.
pub(super) fn result_bytes(result: &proto::Result) -> usize {
    result.cell.iter().map(Message::encoded_len).sum()
}

/// Reads the row of `get`, and waits for file blocks that are not cached. The cells are appended to
/// `cell_block`, or are part of the result if `form` is `Inline`. After an error, `cell_block` is
/// unchanged.
pub(super) async fn read(
    server: &RegionServer,
    reader: &mut RowReader<'_>,
    get: &Get,
    form: ResultForm,
    cell_block: &mut CellBlock,
) -> Answer<proto::Result> {
    let before = cell_block.len();
    let result = match form {
        ResultForm::Block(codec) => {
            let mut result = RowResult::with_budget(codec, cell_block, server.response_budget());
            reader.read(get, &mut result).await.map(|()| result.finish())
        }
        ResultForm::Inline => {
            let mut results = Results::with_budget(form, cell_block, server.response_budget());
            reader.read(get, &mut results).await.map(|()| results.into_single())
        }
    };
    if result.is_err() || get.existence_only {
        cell_block.truncate(before);
    }
    let result = result.map_err(|error| java_exception(&error))?;
    if !get.existence_only {
        return Ok(result);
    }
    let exists = result.associated_cell_count() > 0 || !result.cell.is_empty();
    Ok(wire::convert::result::existence(exists))
}
