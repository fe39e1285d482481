//! `Get`: one row.

#[cfg(fuzzing)]
pub(super) mod fuzzing;
mod request;

use std::mem::ManuallyDrop;
use std::time::Duration;

use base::metrics::{COUNTING, OwnArea, Took};
use base::spent::{self, End, Use};
use bytes::Bytes;
use cell::codec::Codec;
use cell::query::Get;
use engine::Region;
use engine::instruments::EndedGet;
use engine::region::Reads;
use engine::scanner::ResultSink;
use prost::Message;
use rpc::CellBlock;
use wire::convert::result::{get_response, get_response_in_block};
use wire::exception::Answer;

use super::CallContext;
use super::charge::Charge;
use super::results::{ResultForm, Results, RowResult};
use crate::errors::java_exception;
use crate::quotas::{Operation, Planned};
use crate::server::RegionServer;
use crate::users::Caller;
pub(super) use request::GetRequest;

/// Answers a `Get`: a `GetResponse`, encoded, and its cells.
pub(super) async fn get(
    server: &RegionServer,
    request: &GetRequest,
    context: &CallContext,
) -> Answer<(Bytes, CellBlock)> {
    let region = server.regions().find(&request.region)?;
    let timed = TimedGet::begin(server, &region, context);
    let mut quota = server.admit(context, &region, || Planned { gets: 1, ..Planned::default() })?;
    let mut cells = CellBlock::new();
    let get = request.get()?;
    server.hotspots().note(&region, &get.row);
    let message = match read_now(server, &region, &get, context.get_form, &mut cells)? {
        Some(count) => {
            quota.has_read(cells.len());
            get_response_in_block(count)
        }
        None => {
            let from = match codec_behind_message(&get, context.get_form) {
                Some(_) => &mut RowsFrom::Left(&region),
                None => &mut RowsFrom::Region(&region),
            };
            // Most Gets wait for nothing, and have no room for it.
            let result = Box::pin(read(server, from, &get, context.get_form, &mut cells)).await?;
            quota.has_read(cells.len() + result_bytes(&result));
            get_response(result)
        }
    };
    timed.end(&quota);
    Ok((message, cells))
}

/// Reads the row of `get`, if that needs no wait and its cells go behind the message, into `block`: how many there are.
fn read_now(
    server: &RegionServer,
    region: &Region,
    get: &Get,
    form: ResultForm,
    block: &mut CellBlock,
) -> Answer<Option<usize>> {
    let Some(codec) = codec_behind_message(get, form) else { return Ok(None) };
    let mut result = RowResult::admitted(codec, block, server.answers());
    let is_read = region.read_now(get, &mut result).map_err(|error| java_exception(&error))?;
    Ok(is_read.then(|| result.cells()))
}

/// How the cells of `get` lie behind the message, if that is where they go.
fn codec_behind_message(get: &Get, form: ResultForm) -> Option<Codec> {
    match form {
        ResultForm::Block(codec) if !get.existence_only => Some(codec),
        _ => None,
    }
}

/// A call of `Get` that is under way. Its region and its user are told how long it took, and what it used, when it ends; if it
/// fails, how long it took, when it is dropped.
struct TimedGet<'a> {
    server: &'a RegionServer,
    region: &'a Region,
    caller: Option<&'a Caller>,
    begun: Duration,
}

impl<'a> TimedGet<'a> {
    fn begin(server: &'a RegionServer, region: &'a Region, context: &'a CallContext) -> TimedGet<'a> {
        let begun = context.begun.unwrap_or_else(|| server.env().clock.monotonic());
        TimedGet { server, region, caller: context.caller.as_deref(), begun }
    }

    /// The row was read, and `operation` was told of it.
    #[inline]
    fn end(self, operation: &Operation) {
        // It is noted here, and not when it is dropped.
        let of = ManuallyDrop::new(self);
        if !COUNTING {
            return;
        }
        let End { at, took } = of.ended();
        // Callers in the same process are charged with nothing.
        let (read_units, work_nanos) = match of.caller {
            Some(_) => Charge::for_call().of_reads(of.server, operation, at),
            None => (0, 0),
        };
        let get = EndedGet { took, read_units, work_nanos, area: OwnArea::get() };
        of.region.instruments().note_get(&get);
        if let Some(caller) = of.caller {
            caller.note_get(&get);
            // A caller in the same process has more to do.
            spent::end(End { at, took });
        }
        spent::used(Use::Rows, 1);
    }

    #[inline]
    fn ended(&self) -> End {
        let at = self.server.env().clock.monotonic();
        End { at, took: Took::between(self.begun, at) }
    }
}

impl Drop for TimedGet<'_> {
    fn drop(&mut self) {
        let took = Duration::from_nanos(self.ended().took.nanos());
        self.region.instruments().note_gets(1, took);
        if let Some(caller) = self.caller {
            caller.note_gets(1, took);
        }
    }
}

/// Bytes of cells within a result's message.
pub(super) fn result_bytes(result: &proto::Result) -> usize {
    result.cell.iter().map(Message::encoded_len).sum()
}

/// Where a row is read.
pub(super) enum RowsFrom<'a, 'r> {
    /// For who counts the row.
    Region(&'a Region),
    /// For a row that [`read_now`] left, and who counts it.
    Left(&'a Region),
    /// Of a batch.
    Reads(&'a mut Reads<'r>),
}

impl RowsFrom<'_, '_> {
    async fn get(&mut self, get: &Get, sink: &mut dyn ResultSink) -> engine::error::Result<()> {
        match self {
            RowsFrom::Region(region) if region.read_now(get, sink)? => Ok(()),
            RowsFrom::Region(region) | RowsFrom::Left(region) => region.read_apart(get, sink).await,
            RowsFrom::Reads(reads) => reads.get_into(get, sink).await,
        }
    }
}

/// Reads the row of `get`; its cells go behind what `block` has. If it fails, `block` is as it was.
pub(super) async fn read(
    server: &RegionServer,
    from: &mut RowsFrom<'_, '_>,
    get: &Get,
    form: ResultForm,
    block: &mut CellBlock,
) -> Answer<proto::Result> {
    let before = block.len();
    let result = match form {
        ResultForm::Block(codec) => {
            let mut result = RowResult::admitted(codec, block, server.answers());
            from.get(get, &mut result).await.map(|()| result.finish())
        }
        ResultForm::Inline => {
            let mut results = Results::admitted(form, block, server.answers());
            from.get(get, &mut results).await.map(|()| results.into_single())
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
