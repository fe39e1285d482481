//! `Mutate`: one mutation of one row, optionally on a condition.

use base::metrics::RecordedDuration;
use base::spent::{self, CallEnd};
use bytes::Bytes;
use cell::mutation::Mutation;
use proto::exception::Answer;
use rpc::CellBlock;
use wire::convert::from_proto;

use super::call_timer::{CallTimer, MutationKinds};
use super::charge::Charge;
use super::results::Results;
use super::{CallContext, ReplyParts};
use crate::errors::java_exception;
use crate::quotas::PlannedWork;
use crate::server::RegionServer;
use crate::write_pause::WritePause;

/// Bytes of a mutation's cells as they are sent.
pub(super) fn mutation_bytes(mutation: &Mutation) -> usize {
    mutation.cells_len() + mutation.cells.len() * size_of::<u32>()
}

/// Serves a `Mutate`.
pub(super) async fn mutate(
    server: &RegionServer,
    request: &proto::MutateRequest,
    cells: Bytes,
    context: CallContext,
) -> Answer<ReplyParts<proto::MutateResponse>> {
    let region = server.regions().find(&request.region.value)?;
    let mut quota = server
        .admit(context.client.as_deref(), &region, || PlannedWork { writes: 1, ..PlannedWork::default() })?;
    let mut cells = context.codec.read(cells);
    let mutation = from_proto::mutation(&request.mutation, &mut cells, request.nonce_group())?;
    let bytes = mutation_bytes(&mutation);
    quota.record_write(bytes);
    let condition = request.condition.as_ref().map(from_proto::condition).transpose()?;
    if let Some(client) = &context.client {
        client.record_mutations(1);
    }
    server.hotspots().record(&region, &mutation.row);
    let mut response = proto::MutateResponse::default();
    let mut block = CellBlock::new();
    let (timed, kind) = (CallTimer::of_call(server, &region, &context), mutation.kind);
    let charge = |ended| {
        Charge::for_call().end((server, &region), &context, &quota, ended);
        // A caller in the same process continues after this mutation.
        if let (Some(_), Some(begun)) = (&context.client, context.begun) {
            spent::report_end(CallEnd { at: ended, took: RecordedDuration::between(begun, ended) });
        }
    };
    WritePause::within(context.timeout).before(server, &region, bytes).await;
    if condition.is_none() && !kind.reads() {
        let written = region.batch_atomic(vec![mutation]).await;
        charge(timed.end(kind));
        written.map_err(|error| java_exception(&error))?;
        response.processed = Some(true);
        return Ok((response, block));
    }
    let mutations = vec![mutation];
    let kinds = MutationKinds::in_batch(&mutations);
    let changed = region.change(condition.as_ref(), mutations).await;
    charge(match condition {
        Some(_) => timed.end_checked(&changed, Some(kind), kinds),
        None => timed.end(kind),
    });
    let changed = changed.map_err(|error| java_exception(&error))?;
    // As in HBase, an increment or append sets `processed` only if it has a condition.
    response.processed = condition.map(|_| changed.matched);
    response.result = changed.results.into_iter().next().flatten().map(|cells| {
        let results = Results::new(context.form, &mut block);
        results.into_single_with(&cells)
    });
    Ok((response, block))
}
