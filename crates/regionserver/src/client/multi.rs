//! `Multi`: reads and mutations of rows in several regions. Each action gets a separate result. The
//! group of actions of one region is called a region action.
//!
//! The actions of a region run in order, except that puts and deletes are collected in one batch,
//! as in HBase. The batch runs when it is full, before the next increment or append, and at the
//! end. The call waits for the last batches of all regions together ([`unfinished`]), because they
//! are usually in the same log. A region action that is atomic or has a condition is applied as one
//! change of one row.
//!
//! Mutations take their cells from the request's cell block in order, so the cells of a mutation
//! that does not run must be skipped.
//!
//! Actions are decoded, and their results encoded, one at a time ([`parts`]). The task yields
//! between actions, because a request may have very many of them.

#[cfg(fuzzing)]
pub(super) mod fuzzing;
mod mutation_batch;
mod parts;
mod unfinished;

use std::sync::Arc;

use base::budget::BudgetShare;
use base::turns;
use bytes::Bytes;
use cell::KeyValue;
use cell::codec::CellBlockReader;
use cell::mutation::Mutation;
use cell::query::{Get, MultiGet};
use engine::Region;
use engine::region::BatchReader;
use proto::exception::{Answer, JavaException, class};
use rpc::CellBlock;
use tracing::warn;
use wire::convert::gets::{GetRequestKind, Gets};
use wire::convert::mutations::{MutationError, Mutations};
use wire::convert::{Refused, from_proto};

use super::call_timer::{CallTimer, MutationKinds};
use super::charge::Charge;
use super::get;
use super::mutate::mutation_bytes;
use super::results::{ResultForm, Results, RowResult};

use super::{CallContext, endpoints, malformed};
use crate::errors::java_exception;
use crate::quotas::{Operation, PlannedWork};
use crate::server::RegionServer;
use crate::write_pause::WritePause;
use mutation_batch::MutationBatch;
use parts::{ActionRange, ActionRanges, MultiAnswer, MultiParts, RegionAnswer, RegionParts};
use unfinished::{UnfinishedRegion, UnfinishedRegions};

/// Number of actions after which the task yields.
const ACTIONS_PER_YIELD: usize = 256;
/// Maximum number of Gets that are read as one batch.
const BATCH_GETS_MAX: usize = 128;
/// Bytes allocated in advance for each row of the response, so that it is not copied as it grows.
const SMALL_ROW_BYTES: usize = 64;
/// A response message of at most this length is admitted even without free memory. The messages of
/// usual batches are shorter.
const SMALL_MESSAGE_LEN: usize = 64 << 10;
/// Bytes by which the response grows before the task yields.
const BYTES_PER_YIELD: usize = 256 << 10;

/// Serves a `Multi`. Returns the encoded `MultiResponse` and the cells.
pub(super) async fn multi(
    server: &RegionServer,
    request: Bytes,
    cells: Bytes,
    context: CallContext,
) -> Answer<(Bytes, CellBlock)> {
    let request = MultiParts::split(request)?;
    let _master = match request.rest.grampus_master_active_time {
        Some(active_since_ms) => Some(server.orders().check_master(active_since_ms).await?),
        None => None,
    };
    let (region_count, row_count) = check_rows(server, &request)?;
    // A request without cells has mostly Gets. Space for their cells in the response's cell block
    // is allocated in advance.
    let reads_into_block = cells.is_empty() && matches!(context.form, ResultForm::Block(_));
    let rows_read = if reads_into_block { row_count } else { 0 };
    let cells = context.codec.read(cells);
    let timeout = context.timeout;
    let mut call = MultiCall {
        server,
        context,
        bytes_max: server.options().result_bytes_max,
        nonce_group: request.rest.nonce_group(),
        cells,
        gets: Gets::default(),
        mutations: Mutations::default(),
        quota: Operation::unlimited(),
        block: CellBlock::with_capacity(rows_read.saturating_mul(SMALL_ROW_BYTES)),
        share: BudgetShare::of(server.response_budget()),
        response: MultiAnswer::default(),
        unfinished: UnfinishedRegions::default(),
        pause: WritePause::within(timeout),
        message_len: 0,
        ran_non_idempotent: false,
        actions: 0,
        yield_at_len: BYTES_PER_YIELD,
    };
    let request_condition = request.rest.condition.as_ref();
    if request_condition.is_some() && region_count != 1 {
        return Err(JavaException::do_not_retry("a condition for several regions"));
    }
    if region_count > 1 {
        let written = if server.paces_writers() { written_regions(server, &request)? } else { Vec::new() };
        call.pause.before_all(server, &written).await;
    }
    for region_action in request.regions() {
        let region_action = region_action?;
        let condition = region_action.rest.condition.as_ref();
        // Clients before 2.4 put the condition on the whole request, and read only the `processed`
        // flag of the whole response.
        let region = call.region_action(&region_action, request_condition.or(condition)).await?;
        if request_condition.is_some() {
            call.response.processed = region.answer.processed;
        } else if condition.is_none() && region.answer.processed == Some(true) {
            call.response.processed = Some(true);
        }
        call.push(region);
        call.record_message_len(0)?;
    }
    call.finish_regions().await?;
    Ok((call.response.finish(), call.block))
}

/// The regions of a request that it writes to, as far as they are online.
fn written_regions(server: &RegionServer, request: &MultiParts) -> Answer<Vec<Arc<Region>>> {
    let mut regions = Vec::new();
    for region_action in request.regions() {
        let region_action = region_action?;
        if region_action.writes()? {
            regions.extend(server.regions().find(&region_action.rest.region.value));
        }
    }
    Ok(regions)
}

/// State of a call while its response grows.
struct MultiCall<'a> {
    server: &'a RegionServer,
    context: CallContext,
    bytes_max: u64,
    nonce_group: u64,
    cells: CellBlockReader,
    gets: Gets,
    mutations: Mutations,
    // The quotas that apply to the current region action.
    quota: Operation,
    block: CellBlock,
    // Bytes reserved for the response in the server's response budget.
    share: BudgetShare,
    // The response's message for the first regions.
    response: MultiAnswer,
    // The regions after them.
    unfinished: UnfinishedRegions,
    pause: WritePause,
    // Bytes of the response's message so far.
    message_len: usize,
    // Whether an increment, append or atomic change ran. It must not run twice.
    ran_non_idempotent: bool,
    // Actions since the task last yielded.
    actions: usize,
    // Size of the response at which the task yields next.
    yield_at_len: usize,
}

/// The futures of rare actions are boxed, so that the future of a call is small and cheap to move.
impl MultiCall<'_> {
    /// Serves the actions of one region.
    ///
    /// # Errors
    /// Errors of the whole call. An error of this region alone is part of the result.
    async fn region_action(
        &mut self,
        region_action: &RegionParts,
        condition: Option<&proto::Condition>,
    ) -> Answer<UnfinishedRegion> {
        let begun = self.server.env().clock.monotonic();
        let charge = Charge::from(begun);
        let found = self.server.regions().find(&region_action.rest.region.value);
        let found = found.and_then(|region| {
            self.quota =
                self.server.admit(self.context.client.as_deref(), &region, || planned(region_action))?;
            Ok(region)
        });
        let outcome = match found {
            Ok(region) => {
                if self.unfinished.has_batch_of(&region) {
                    self.finish_regions().await?;
                }
                let outcome = match region_action.rest.atomic() || condition.is_some() {
                    true => Box::pin(self.atomic(&region, region_action, condition)).await.map(Into::into),
                    false => Ok(self.run_separately(&region, region_action).await?),
                };
                let now = self.server.env().clock.monotonic();
                charge.end((self.server, &region), &self.context, &self.quota, now);
                outcome
            }
            Err(exception) => {
                self.skip_all(region_action).await?;
                Err(exception)
            }
        };
        Ok(outcome.unwrap_or_else(|exception| RegionAnswer::failed(&exception).into()))
    }

    /// Adds a region to the response as soon as all regions before it are finished.
    fn push(&mut self, region: UnfinishedRegion) {
        match region.is_finished() && self.unfinished.is_empty() {
            true => self.response.push(region.answer),
            false => self.unfinished.push(region),
        }
    }

    /// Waits for the submitted batches of all regions, and adds the regions to the response.
    async fn finish_regions(&mut self) -> Answer<()> {
        for region in self.unfinished.take() {
            let answer = Box::pin(region.finish(self.server, self.context.client.as_deref())).await;
            self.response.push(answer);
            self.record_message_len(0)?;
        }
        Ok(())
    }

    /// Counts an action. Yields after [`ACTIONS_PER_YIELD`] actions or [`BYTES_PER_YIELD`] bytes.
    async fn count_action(&mut self) {
        self.actions += 1;
        if self.actions >= ACTIONS_PER_YIELD || self.block.len() >= self.yield_at_len {
            self.actions = 0;
            self.yield_at_len = self.block.len() + BYTES_PER_YIELD;
            turns::pause().await;
        }
    }

    /// Applies all mutations of one row atomically, if the condition (if any) holds. The first
    /// entry of the response has the cells of all increments and appends.
    async fn atomic(
        &mut self,
        region: &Region,
        region_action: &RegionParts,
        condition: Option<&proto::Condition>,
    ) -> Answer<RegionAnswer> {
        // All actions are converted even after an error, so that the cells of each one are
        // consumed.
        let mut mutations = Ok(Vec::new());
        for action in region_action.actions() {
            let mutation = action.and_then(|action| self.atomic_mutation(region, &action));
            match (&mut mutations, mutation) {
                (Ok(mutations), Ok(mutation)) => mutations.push(mutation),
                (Ok(_), Err(exception)) => mutations = Err(exception),
                (Err(_), _) => {}
            }
            self.count_action().await;
        }
        let mutations = mutations?;
        let count = mutations.len();
        let checked = condition.map(from_proto::condition).transpose()?;
        let timed = CallTimer::begin(self.server, region, self.context.client.as_deref());
        let kinds = MutationKinds::in_batch(&mutations);
        let bytes = mutations.iter().map(mutation_bytes).sum();
        self.pause.before(self.server, region, bytes).await;
        self.ran_non_idempotent = true;
        let changed = region.change(checked.as_ref(), mutations).await;
        match condition {
            Some(_) => timed.end_checked(&changed, None, kinds),
            None => timed.end_batch(kinds),
        };
        let changed = changed.map_err(|error| java_exception(&error))?;
        let result_cells: Vec<Vec<KeyValue>> = changed.results.into_iter().flatten().collect();
        let mut first = (!result_cells.is_empty()).then(|| {
            let results = Results::new(ResultForm::Inline, &mut self.block);
            results.into_single_with(&result_cells.concat())
        });
        // Without a condition every entry has a result, even if it is empty.
        let empty = || condition.is_none().then(proto::Result::default);
        let mut entry = |index| proto::ResultOrException {
            index: Some(index as u32),
            result: first.take().or_else(empty),
            ..proto::ResultOrException::default()
        };
        let mut answer = RegionAnswer::default();
        answer.processed = Some(changed.matched);
        (0..count).for_each(|index| answer.push(&entry(index)));
        Ok(answer)
    }

    fn atomic_mutation(&mut self, region: &Region, action: &proto::Action) -> Answer<Mutation> {
        if action.get.is_some() {
            return Err(JavaException::do_not_retry("Atomic put and/or delete only, not a Get"));
        }
        self.mutation(region, action)
    }

    /// Runs each action separately. The last batch of mutations is submitted: the call waits for it
    /// after all regions have submitted theirs, so that one sync of the log serves them all.
    async fn run_separately(
        &mut self,
        region: &Arc<Region>,
        region_action: &RegionParts,
    ) -> Answer<UnfinishedRegion> {
        let mut state = RegionActionState {
            region,
            answer: RegionAnswer::with_capacity(region_action.actions),
            gets: None,
            gets_indexes: Vec::new(),
            batch: MutationBatch::default(),
        };
        let mutations_max = self.server.options().minibatch_changes;
        let mut ranges = region_action.action_ranges();
        while let Some(range) = ranges.next() {
            let (position, range) = range?;
            match range {
                ActionRange::Get(index, at) => {
                    if turns::is_abandoned() {
                        return Err(java_exception(&engine::Error::Abandoned));
                    }
                    let kind = self.gets.request_kind(region_action.bytes(), at).map_err(malformed)?;
                    self.collect_get(&mut state, region_action, index.unwrap_or(position), kind).await;
                    self.collect_alike_gets(&mut state, &mut ranges);
                }
                ActionRange::Mutation(index, at) => {
                    self.read_collected_gets(&mut state).await;
                    let index = index.unwrap_or(position);
                    match self.mutations.read(region_action.bytes(), at, &mut self.cells, self.nonce_group) {
                        Ok(mutation) => {
                            self.record_mutation(region, &mutation);
                            match mutation.kind.reads() {
                                false => state.batch.add(index, mutation),
                                true => self.run_read_modify_write(&mut state, index, mutation).await,
                            }
                        }
                        Err(MutationError::Refused(refused)) => state.refuse(index, &refused.into()),
                        Err(MutationError::Undecodable(error)) => return Err(malformed(error)),
                    }
                }
                ActionRange::Other(at) => {
                    let action = region_action.action(at)?;
                    let index = action.index.unwrap_or(position);
                    match &action.get {
                        Some(get) => {
                            let kind = from_proto::get(get).map(GetRequestKind::Other);
                            self.collect_get(&mut state, region_action, index, kind).await;
                        }
                        None => Box::pin(self.run_action(&mut state, index, &action)).await,
                    }
                }
            }
            if state.batch.is_full(mutations_max) {
                self.apply_batch(&mut state).await;
                // A large request waits for each full batch.
                self.pause.allow_again();
            } else if state.batch.is_chunk_full() {
                self.submit_chunk(region, &mut state.batch).await;
                if let Some(exception) = state.refusal() {
                    self.skip_remaining(region_action, &mut ranges).await?;
                    return Ok(RegionAnswer::failed(&exception).into());
                }
                turns::pause().await;
            }
            self.record_message_len(state.answer.len())?;
            self.count_action().await;
        }
        self.read_collected_gets(&mut state).await;
        self.submit_chunk(region, &mut state.batch).await;
        Ok(UnfinishedRegion::new(state.answer, region, state.batch))
    }

    /// Skips the remaining actions of a region action, and their cells.
    async fn skip_remaining(&mut self, region_action: &RegionParts, ranges: &mut ActionRanges) -> Answer<()> {
        for range in ranges {
            match range?.1 {
                ActionRange::Get(..) => {}
                ActionRange::Mutation(_, at) => {
                    match self.mutations.read(region_action.bytes(), at, &mut self.cells, self.nonce_group) {
                        Ok(_) | Err(MutationError::Refused(_)) => {}
                        Err(MutationError::Undecodable(error)) => return Err(malformed(error)),
                    }
                }
                ActionRange::Other(at) => {
                    from_proto::skip_action(&region_action.action(at)?, &mut self.cells)
                }
            }
            self.count_action().await;
        }
        Ok(())
    }

    /// Adds a Get to the collected Gets. If it differs from them in more than the row, or if there
    /// are [`BATCH_GETS_MAX`] of them, reads them first.
    async fn collect_get(
        &mut self,
        state: &mut RegionActionState<'_>,
        region_action: &RegionParts,
        index: u32,
        kind: Result<GetRequestKind, Refused>,
    ) {
        let joins = |gets: &MultiGet| {
            gets.len() < BATCH_GETS_MAX && self.gets.is_current_selection(&gets.first().selection)
        };
        if !(matches!(kind, Ok(GetRequestKind::SameSelection(_))) && state.gets.as_ref().is_some_and(joins)) {
            self.read_collected_gets(state).await;
        }
        let message = region_action.bytes();
        let row = match (kind, &mut state.gets) {
            (Ok(GetRequestKind::SameSelection(row)), Some(gets)) => {
                gets.push(row.clone());
                &message[row]
            }
            (Ok(kind), gets) => {
                let get = match kind {
                    GetRequestKind::SameSelection(row) => self.gets.with_last_selection(message.slice(row)),
                    GetRequestKind::Other(get) => get,
                };
                &gets.insert(MultiGet::new(get, message.clone())).first().row
            }
            (Err(refused), _) => return state.refuse(index, &refused.into()),
        };
        self.server.hotspots().record(state.region, row);
        state.gets_indexes.push(index);
    }

    /// Adds the next actions to the collected Gets, as long as they are Gets that differ from them
    /// only in the row.
    fn collect_alike_gets(&mut self, state: &mut RegionActionState<'_>, ranges: &mut ActionRanges) {
        let RegionActionState { region, gets: Some(gets), gets_indexes, .. } = state else { return };
        if !self.gets.is_current_selection(&gets.first().selection) {
            return;
        }
        let hotspots = self.server.hotspots();
        while gets.len() < BATCH_GETS_MAX
            && let Some((index, row)) =
                ranges.next_get(|bytes, get| self.gets.row_if_same_selection(bytes, get))
        {
            gets.push(row);
            gets_indexes.push(index);
            hotspots.record(region, gets.last_row());
            self.actions += 1;
        }
    }

    /// Runs an action that is not a Get.
    async fn run_action(&mut self, state: &mut RegionActionState<'_>, index: u32, action: &proto::Action) {
        self.read_collected_gets(state).await;
        if let Some(call) = &action.service_call {
            self.apply_batch(state).await;
            let region = state.region;
            let called = endpoints::call(self.server, region, call, self.context.timeout).await;
            state.answer.push(&service_entry(index, called));
            return;
        }
        match self.mutation(state.region, action) {
            Ok(mutation) if mutation.kind.reads() => self.run_read_modify_write(state, index, mutation).await,
            Ok(mutation) => state.batch.add(index, mutation),
            Err(exception) => state.refuse(index, &exception),
        }
    }

    /// Reads the collected Gets and adds an entry for each.
    #[inline]
    async fn read_collected_gets(&mut self, state: &mut RegionActionState<'_>) {
        if let Some(gets) = state.gets.take() {
            self.read_gets(&gets, state).await;
        }
    }

    async fn read_gets(&mut self, gets: &MultiGet, state: &mut RegionActionState<'_>) {
        let RegionActionState { region, answer, gets_indexes, .. } = state;
        debug_assert_eq!(gets_indexes.len(), gets.len(), "each Get of a batch has its index");
        let clock = &self.server.env().clock;
        let begun = clock.monotonic();
        let mut reader = region.batch_reader(gets);
        for (at, &index) in gets_indexes.iter().enumerate() {
            match self.try_get(&mut reader, at, gets.first().existence_only) {
                Some(cells) => answer.push_cells(index, cells),
                None => {
                    let outcome = self.get(&mut reader, &gets.get(at)).await;
                    answer.push_outcome(index, outcome);
                }
            }
            if self.block.len() >= self.yield_at_len {
                self.yield_at_len = self.block.len() + BYTES_PER_YIELD;
                turns::pause().await;
            }
        }
        drop(reader);
        gets_indexes.clear();
        // The batch is measured as a whole; each Get counts with the average.
        let count = gets.len() as u32;
        let took = clock.monotonic().saturating_sub(begun) / count;
        region.instruments().record_gets(count, took);
        if let Some(client) = &self.context.client {
            client.record_gets(count, took);
        }
    }

    /// Reads the row of the Get at index `at`, if that needs no wait and its cells go into the cell
    /// block. Returns the number of cells. `None`: the caller must use [`get`](Self::get).
    fn try_get(&mut self, reader: &mut BatchReader<'_>, at: usize, existence_only: bool) -> Option<usize> {
        let ResultForm::Block(codec) = self.context.form else { return None };
        if existence_only || self.check_space().is_err() {
            return None;
        }
        let before = self.block.len();
        let mut result = RowResult::with_budget(codec, &mut self.block, self.server.response_budget());
        // After an error the caller uses `get`, which reports the error.
        let is_read = reader.try_read(at, &mut result).unwrap_or(false);
        let cells = result.cells();
        if !is_read {
            return None;
        }
        self.quota.record_read(self.block.len() - before);
        Some(cells)
    }

    /// Runs an increment or append, after the mutations that were collected before it.
    async fn run_read_modify_write(
        &mut self,
        state: &mut RegionActionState<'_>,
        index: u32,
        mutation: Mutation,
    ) {
        self.apply_batch(state).await;
        let changed = Box::pin(self.read_modify_write(state.region, mutation)).await;
        state.answer.push_outcome(index, changed);
    }

    async fn read_modify_write(&mut self, region: &Region, mutation: Mutation) -> Answer<proto::Result> {
        self.check_space()?;
        let (timed, kind) =
            (CallTimer::begin(self.server, region, self.context.client.as_deref()), mutation.kind);
        self.pause.before(self.server, region, mutation_bytes(&mutation)).await;
        self.ran_non_idempotent = true;
        let changed = region.change(None, vec![mutation]).await;
        timed.end(kind);
        let changed = changed.map_err(|error| java_exception(&error))?;
        let result_cells: Vec<KeyValue> = changed.results.into_iter().flatten().flatten().collect();
        Ok(Results::new(self.context.form, &mut self.block).into_single_with(&result_cells))
    }

    /// Returns an error if the response may not grow by another result.
    fn check_space(&mut self) -> Answer<()> {
        let bytes = self.block.len();
        let lacking = (bytes + self.message_len).saturating_sub(self.share.used());
        match (bytes as u64) < self.bytes_max && (lacking == 0 || self.share.take_large(lacking)) {
            true => Ok(()),
            false => Err(self.too_large()),
        }
    }

    /// Counts the growth of the response's message, which excludes the cell block. The results of
    /// the current region take `region_len` bytes of it. Returns an error if the message is too
    /// large, or if there is no memory for it.
    ///
    /// A lack of memory is ignored in two cases, because the client would retry the failed call: if
    /// the message is small, and if an action has run that must not run twice.
    fn record_message_len(&mut self, region_len: usize) -> Answer<()> {
        let message_len = self.response.len() + self.unfinished.len_bytes() + region_len;
        let growth = message_len.saturating_sub(self.message_len);
        self.message_len = message_len;
        if message_len as u64 > self.bytes_max {
            return Err(self.too_large());
        }
        if message_len <= SMALL_MESSAGE_LEN || self.ran_non_idempotent {
            self.share.force(growth);
            return Ok(());
        }
        if self.share.take_large(growth) { Ok(()) } else { Err(self.too_large()) }
    }

    fn too_large(&self) -> JavaException {
        let message = format!("Max result size exceeded: {} bytes", self.bytes_max);
        JavaException::new(class::MULTI_ACTION_RESULT_TOO_LARGE, message)
    }

    async fn get(&mut self, reader: &mut BatchReader<'_>, get: &Get) -> Answer<proto::Result> {
        self.check_space()?;
        let before = self.block.len();
        let result = get::read(self.server, reader.rows(), get, self.context.form, &mut self.block).await?;
        self.quota.record_read(self.block.len() - before + get::result_bytes(&result));
        Ok(result)
    }

    /// Decodes the mutation of an action, with its cells.
    fn mutation(&mut self, region: &Region, action: &proto::Action) -> Answer<Mutation> {
        let mutation = action
            .mutation
            .as_ref()
            .ok_or_else(|| JavaException::do_not_retry("Action without a Get or a mutation"))?;
        let mutation = from_proto::mutation(mutation, &mut self.cells, self.nonce_group)?;
        self.record_mutation(region, &mutation);
        Ok(mutation)
    }

    fn record_mutation(&mut self, region: &Region, mutation: &Mutation) {
        self.quota.record_write(mutation_bytes(mutation));
        self.server.hotspots().record(region, &mutation.row);
        if let Some(client) = &self.context.client {
            client.record_mutations(1);
        }
    }

    /// Submits the collected mutations to the region, if there are any.
    async fn submit_chunk(&mut self, region: &Region, batch: &mut MutationBatch) {
        if batch.has_chunk() {
            Box::pin(batch.submit_chunk(self.server, region, &mut self.pause)).await;
        }
    }

    /// Applies the collected mutations and adds an entry for each.
    async fn apply_batch(
        &mut self,
        RegionActionState { region, answer, batch, .. }: &mut RegionActionState<'_>,
    ) {
        if batch.is_empty() {
            return;
        }
        self.submit_chunk(region, batch).await;
        let batch = std::mem::take(batch);
        Box::pin(batch.finish(self.server, region, self.context.client.as_deref(), answer)).await;
    }

    /// Skips all actions of a region action that cannot be served, and their cells.
    async fn skip_all(&mut self, region_action: &RegionParts) -> Answer<()> {
        for action in region_action.actions() {
            from_proto::skip_action(&action?, &mut self.cells);
            self.count_action().await;
        }
        Ok(())
    }
}

/// Counts the actions of a region; called only if quotas are enabled.
fn planned(region_action: &RegionParts) -> PlannedWork {
    let mut planned = PlannedWork::default();
    for action in region_action.actions().flatten() {
        planned.writes += usize::from(action.mutation.is_some());
        planned.gets += usize::from(action.get.is_some());
    }
    planned
}

/// State of a region action whose actions run separately: the collected Gets and mutations, and the
/// results so far.
struct RegionActionState<'r> {
    region: &'r Arc<Region>,
    answer: RegionAnswer,
    gets: Option<MultiGet>,
    // For each collected Get: its index in the response.
    gets_indexes: Vec<u32>,
    batch: MutationBatch,
}

impl RegionActionState<'_> {
    fn refuse(&mut self, index: u32, exception: &JavaException) {
        self.answer.push(&failed_entry(index, exception));
    }

    /// The error with which the region refused the first chunk of a batch, if the region action has
    /// no other results yet. The region would refuse the later chunks for the same reason. One
    /// exception for the region action is much shorter than one for each mutation.
    fn refusal(&self) -> Option<JavaException> {
        let is_first = self.answer.len() == 0 && self.gets.is_none();
        is_first.then(|| self.batch.refusal().map(java_exception)).flatten()
    }
}

/// Warns about a request with very many rows, or refuses it if the options require that. Returns
/// the numbers of regions and rows.
fn check_rows(server: &RegionServer, request: &MultiParts) -> Answer<(usize, usize)> {
    let (mut regions, mut rows, mut first) = (0, 0, Bytes::new());
    for region_action in request.regions() {
        let region_action = region_action?;
        if regions == 0 {
            first = region_action.rest.region.value;
        }
        regions += 1;
        rows += region_action.actions;
    }
    let limit = server.options().batch_rows_warning;
    if rows <= limit as usize {
        return Ok((regions, rows));
    }
    let first = first.escape_ascii();
    warn!(rows, limit, region = %first, "batch exceeds hbase.rpc.rows.warning.threshold");
    if !server.options().rejects_large_batches {
        return Ok((regions, rows));
    }
    Err(JavaException::io(format!(
        "Rejecting large batch operation for current batch with firstRegionName: {first} , Requested Number of Rows: \
         {rows} , Size Threshold: {limit}"
    )))
}

fn service_entry(index: u32, outcome: Answer<proto::NameBytesPair>) -> proto::ResultOrException {
    let entry = proto::ResultOrException { index: Some(index), ..proto::ResultOrException::default() };
    match outcome {
        Ok(value) => proto::ResultOrException {
            service_result: Some(proto::CoprocessorServiceResult { value: Some(value) }),
            ..entry
        },
        Err(exception) => failed_entry(index, &exception),
    }
}

fn failed_entry(index: u32, exception: &JavaException) -> proto::ResultOrException {
    proto::ResultOrException {
        index: Some(index),
        exception: Some(exception.into()),
        ..proto::ResultOrException::default()
    }
}
