//! `Mutate`: a change of one row, perhaps on a condition.

use base::metrics::Took;
use base::spent::{self, End};
use bytes::Bytes;
use cell::mutation::Mutation;
use rpc::CellBlock;
use wire::convert::from_proto;
use wire::exception::Answer;

use super::charge::Charge;
use super::results::Results;
use super::timed::{Kinds, Timed};
use super::{Answered, CallContext};
use crate::errors::java_exception;
use crate::quotas::Planned;
use crate::server::RegionServer;

/// Bytes of a change's cells as they travel.
pub(super) fn mutation_bytes(mutation: &Mutation) -> usize {
    mutation.cells.iter().map(|cell| cell.bytes().len() + size_of::<u32>()).sum()
}

/// Answers a `Mutate`.
pub(super) async fn mutate(
    server: &RegionServer,
    request: &proto::MutateRequest,
    cells: Bytes,
    context: CallContext,
) -> Answer<Answered<proto::MutateResponse>> {
    let region = server.regions().find(&request.region.value)?;
    let mut quota = server.admit(&context, &region, || Planned { writes: 1, ..Planned::default() })?;
    let mut cells = context.codec.read(cells);
    let mutation = from_proto::mutation(&request.mutation, &mut cells, request.nonce_group())?;
    quota.has_written(mutation_bytes(&mutation));
    let condition = request.condition.as_ref().map(from_proto::condition).transpose()?;
    if let Some(caller) = &context.caller {
        caller.note_changes(1);
    }
    server.hotspots().note(&region, &mutation.row);
    let mut response = proto::MutateResponse::default();
    let mut block = CellBlock::new();
    let (timed, kind) = (Timed::of_call(server, &region, &context), mutation.kind);
    let charge = |ended| {
        Charge::for_call().end((server, &region), &context, &quota, ended);
        // A caller in the same process has more to do.
        if let (Some(_), Some(begun)) = (&context.caller, context.begun) {
            spent::end(End { at: ended, took: Took::between(begun, ended) });
        }
    };
    if condition.is_none() && !kind.reads() {
        let written = region.batch_atomic(vec![mutation]).await;
        charge(timed.end(kind));
        written.map_err(|error| java_exception(&error))?;
        response.processed = Some(true);
        return Ok((response, block));
    }
    let mutations = vec![mutation];
    let kinds = Kinds::of(&mutations);
    let changed = region.change(condition.as_ref(), mutations).await;
    charge(match condition {
        Some(_) => timed.end_checked(&changed, Some(kind), kinds),
        None => timed.end(kind),
    });
    let changed = changed.map_err(|error| java_exception(&error))?;
    // As HBase: an increment or append tells whether it was made only if that was a question.
    response.processed = condition.map(|_| changed.matched);
    response.result = changed.results.into_iter().next().flatten().map(|cells| {
        let results = Results::new(context.form, &mut block);
        results.single_of(&cells)
    });
    Ok((response, block))
}
