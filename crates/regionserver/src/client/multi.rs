//! `Multi`: reads and changes of rows of several regions, each answered for itself.
//!
//! Actions of a region go one by one, except that puts and deletes are gathered into one batch, as in HBase; it is carried
//! out before the next increment or append, or at the end. An atomic region action, or one with a condition, is one
//! change of one row. The request's cells belong to its changes in order, so those of a change that is not carried out
//! are passed over too.
//!
//! Neither the request nor the answer is ever whole in memory but as bytes ([`parts`]), and others have their turn between
//! actions: a batch may be as long as a request can be.

#[cfg(fuzzing)]
pub(super) mod fuzzing;
mod parts;

use std::sync::Arc;
use std::time::Duration;

use base::budget::Share;
use base::turns;
use bytes::Bytes;
use cell::KeyValue;
use cell::codec::CellBlockReader;
use cell::mutation::Mutation;
use cell::query::{Get, GetsAlike};
use engine::Region;
use engine::region::Reads;
use rpc::CellBlock;
use tracing::warn;
use wire::convert::gets::{Asked, Gets};
use wire::convert::mutations::{Mutations, NotRead};
use wire::convert::{Refused, from_proto};
use wire::exception::{Answer, JavaException, class};

use super::charge::Charge;
use super::get::{self, RowsFrom};
use super::mutate::mutation_bytes;
use super::results::{ResultForm, Results, RowResult};
use super::timed::{Kinds, Timed};
use super::{CallContext, endpoints, malformed};
use crate::errors::java_exception;
use crate::quotas::{Operation, Planned};
use crate::server::RegionServer;
use parts::{MultiAnswer, MultiParts, Part, Parts, RegionAnswer, RegionParts};

/// Actions after which others have their turn.
const ACTIONS_PER_TURN: usize = 256;
/// Gets that are read together, one behind the other.
const GETS_TOGETHER_MAX: usize = 128;
/// Bytes of a small row in an answer. (Answers of 100 rows that grew from nothing were copied four times.)
const SMALL_ROW_BYTES: usize = 64;
/// Cells that are published at once: they take about a millisecond.
const CELLS_AT_ONCE_MAX: usize = 1000;
/// Bytes by which an answer grows before others have their turn.
const BYTES_PER_TURN: usize = 256 << 10;
/// Bytes of changes that are made together, besides their number. Clients gather about this many.
const GATHERED_BYTES_MAX: usize = 2 << 20;

/// Answers a `Multi`: a `MultiResponse`, encoded, and its cells.
pub(super) async fn multi(
    server: &RegionServer,
    request: Bytes,
    cells: Bytes,
    context: CallContext,
) -> Answer<(Bytes, CellBlock)> {
    let request = MultiParts::of(request)?;
    let (region_count, row_count) = check_rows(server, &request)?;
    // Actions without cells are Gets, mostly.
    let are_in_block = cells.is_empty() && matches!(context.form, ResultForm::Block(_));
    let rows_read = if are_in_block { row_count } else { 0 };
    let cells = context.codec.read(cells);
    let mut answer = Answering {
        server,
        context,
        bytes_max: server.options().result_bytes_max,
        nonce_group: request.rest.nonce_group(),
        cells,
        gets: Gets::default(),
        mutations: Mutations::default(),
        quota: Operation::unbounded(),
        block: CellBlock::with_room(rows_read.saturating_mul(SMALL_ROW_BYTES)),
        share: Share::of(server.answers()),
        actions: 0,
        turn_ends_at: BYTES_PER_TURN,
        looked_at: None,
    };
    let mut response = MultiAnswer::default();
    let old_condition = request.rest.condition.as_ref();
    if old_condition.is_some() && region_count != 1 {
        return Err(JavaException::do_not_retry("a condition for several regions"));
    }
    for region in request.regions() {
        let region = region?;
        let condition = region.rest.condition.as_ref();
        // On the whole request: how clients before 2.4 say it, who look at the whole answer only.
        let result = answer.region_action(&region, old_condition.or(condition)).await?;
        if old_condition.is_some() {
            response.processed = result.processed;
        } else if condition.is_none() && result.processed == Some(true) {
            response.processed = Some(true);
        }
        response.push(result);
        answer.check_answer(response.len())?;
    }
    Ok((response.finish(), answer.block))
}

/// The answer as it grows.
struct Answering<'a> {
    server: &'a RegionServer,
    context: CallContext,
    bytes_max: u64,
    nonce_group: u64,
    cells: CellBlockReader,
    gets: Gets,
    mutations: Mutations,
    // What bounds the region action at work.
    quota: Operation,
    block: CellBlock,
    // What the answer holds, in the server's number.
    share: Share,
    // Looked at since others had their turn.
    actions: usize,
    // Bytes of the answer at which others have theirs.
    turn_ends_at: usize,
    // The clock, where nothing was done since but taking Gets from the request.
    looked_at: Option<Duration>,
}

/// What few actions come to is boxed: the future of a call is moved, and those of Gets should not pay for all others.
impl Answering<'_> {
    /// # Errors
    /// What fails the whole call.
    async fn region_action(
        &mut self,
        action: &RegionParts,
        condition: Option<&proto::Condition>,
    ) -> Answer<RegionAnswer> {
        let begun = self.server.env().clock.monotonic();
        self.looked_at = Some(begun);
        let charge = Charge::from(begun);
        let found = self.server.regions().find(&action.rest.region.value);
        let found = found.and_then(|region| {
            self.quota = self.server.admit(&self.context, &region, || planned(action))?;
            Ok(region)
        });
        let outcome = match found {
            Ok(region) => {
                let outcome = match action.rest.atomic() || condition.is_some() {
                    true => Box::pin(self.atomic(&region, action, condition)).await,
                    false => Ok(self.each(&region, action).await?),
                };
                let now = self.looked_at.take().unwrap_or_else(|| self.server.env().clock.monotonic());
                charge.end((self.server, &region), &self.context, &self.quota, now);
                outcome
            }
            Err(exception) => {
                self.pass_over(action).await?;
                Err(exception)
            }
        };
        Ok(outcome.unwrap_or_else(|exception| RegionAnswer::failed(&exception)))
    }

    /// Lets others have their turn, now and then.
    async fn pause(&mut self) {
        self.actions += 1;
        if self.actions >= ACTIONS_PER_TURN || self.block.len() >= self.turn_ends_at {
            self.actions = 0;
            self.turn_ends_at = self.block.len() + BYTES_PER_TURN;
            self.looked_at = None;
            turns::pause().await;
        }
    }

    /// All changes of one row or none, perhaps on a condition. What increments and appends tell is in the first entry.
    async fn atomic(
        &mut self,
        region: &Region,
        action: &RegionParts,
        condition: Option<&proto::Condition>,
    ) -> Answer<RegionAnswer> {
        self.looked_at = None;
        // All are converted even behind an error, so that every action's cells are taken.
        let mut mutations = Ok(Vec::new());
        for action in action.actions() {
            let mutation = action.and_then(|action| self.atomic_mutation(region, &action));
            match (&mut mutations, mutation) {
                (Ok(mutations), Ok(mutation)) => mutations.push(mutation),
                (Ok(_), Err(exception)) => mutations = Err(exception),
                (Err(_), _) => {}
            }
            self.pause().await;
        }
        let mutations = mutations?;
        let count = mutations.len();
        let checked = condition.map(from_proto::condition).transpose()?;
        let timed = Timed::begin(self.server, region, self.context.caller.as_deref());
        let kinds = Kinds::of(&mutations);
        let changed = region.change(checked.as_ref(), mutations).await;
        match condition {
            Some(_) => timed.end_checked(&changed, None, kinds),
            None => timed.end_batch(kinds),
        };
        let changed = changed.map_err(|error| java_exception(&error))?;
        let told: Vec<Vec<KeyValue>> = changed.results.into_iter().flatten().collect();
        let mut first = (!told.is_empty()).then(|| {
            let results = Results::new(ResultForm::Inline, &mut self.block);
            results.single_of(&told.concat())
        });
        // Without a condition every entry has a result, be it empty.
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

    /// Each action for itself.
    async fn each(&mut self, region: &Arc<Region>, actions: &RegionParts) -> Answer<RegionAnswer> {
        let mut under_way = UnderWay {
            region,
            answer: RegionAnswer::to(actions.actions),
            gets: None,
            gets_indexes: Vec::new(),
            batch: Gathered::default(),
        };
        let changes_max = self.server.options().minibatch_changes;
        let mut parts = actions.parts();
        while let Some(part) = parts.next() {
            let (position, part) = part?;
            match part {
                Part::Get(index, at) => {
                    if turns::is_abandoned() {
                        return Err(java_exception(&engine::Error::Abandoned));
                    }
                    let asked = self.gets.asked(actions.bytes(), at).map_err(malformed)?;
                    self.gather_get(&mut under_way, actions, index.unwrap_or(position), asked).await;
                    self.gather_alike(&mut under_way, &mut parts);
                }
                Part::Mutation(index, at) => {
                    self.looked_at = None;
                    self.get_all(&mut under_way).await;
                    let index = index.unwrap_or(position);
                    match self.mutations.read(actions.bytes(), at, &mut self.cells, self.nonce_group) {
                        Ok(mutation) => {
                            self.note_mutation(region, &mutation);
                            match mutation.kind.reads() {
                                false => under_way.batch.add(index, mutation),
                                true => self.change(&mut under_way, index, mutation).await,
                            }
                        }
                        Err(NotRead::Refused(refused)) => under_way.refuse(index, &refused.into()),
                        Err(NotRead::NoMessage(error)) => return Err(malformed(error)),
                    }
                }
                Part::Other(at) => {
                    let action = actions.action(at)?;
                    let index = action.index.unwrap_or(position);
                    match &action.get {
                        Some(get) => {
                            let asked = from_proto::get(get).map(Asked::Other);
                            self.gather_get(&mut under_way, actions, index, asked).await;
                        }
                        None => Box::pin(self.act(&mut under_way, index, &action)).await,
                    }
                }
            }
            if under_way.batch.is_full(changes_max) {
                self.carry_out(&mut under_way).await;
            }
            self.check_answer(under_way.answer.len())?;
            self.pause().await;
        }
        self.get_all(&mut under_way).await;
        self.carry_out(&mut under_way).await;
        Ok(under_way.answer)
    }

    /// Adds a Get to those that are read together, which ask for the same.
    async fn gather_get(
        &mut self,
        under_way: &mut UnderWay<'_>,
        actions: &RegionParts,
        index: u32,
        asked: Result<Asked, Refused>,
    ) {
        let joins =
            |gets: &GetsAlike| gets.len() < GETS_TOGETHER_MAX && self.gets.know(&gets.first().selection);
        if !(matches!(asked, Ok(Asked::Alike(_))) && under_way.gets.as_ref().is_some_and(joins)) {
            self.get_all(under_way).await;
        }
        let message = actions.bytes();
        let row = match (asked, &mut under_way.gets) {
            (Ok(Asked::Alike(row)), Some(gets)) => {
                gets.push(row.clone());
                &message[row]
            }
            (Ok(asked), gets) => {
                let get = match asked {
                    Asked::Alike(row) => self.gets.alike(message.slice(row)),
                    Asked::Other(get) => get,
                };
                &gets.insert(GetsAlike::new(get, message.clone())).first().row
            }
            (Err(refused), _) => return under_way.refuse(index, &refused.into()),
        };
        self.server.hotspots().note(under_way.region, row);
        under_way.gets_indexes.push(index);
    }

    /// Gathers the Gets that come next, as long as they ask for the same as the last one.
    fn gather_alike(&mut self, under_way: &mut UnderWay<'_>, parts: &mut Parts) {
        let UnderWay { region, gets: Some(gets), gets_indexes, .. } = under_way else { return };
        if !self.gets.know(&gets.first().selection) {
            return;
        }
        let hotspots = self.server.hotspots();
        while gets.len() < GETS_TOGETHER_MAX
            && let Some((index, row)) = parts.next_get(|bytes, get| self.gets.row_of_alike(bytes, get))
        {
            gets.push(row);
            gets_indexes.push(index);
            hotspots.note(region, gets.last_row());
            self.actions += 1;
        }
    }

    /// An action that is no Get.
    async fn act(&mut self, under_way: &mut UnderWay<'_>, index: u32, action: &proto::Action) {
        self.looked_at = None;
        self.get_all(under_way).await;
        if let Some(call) = &action.service_call {
            self.carry_out(under_way).await;
            let region = under_way.region;
            let called = endpoints::call(self.server, region, call, self.context.timeout).await;
            under_way.answer.push(&service_entry(index, called));
            return;
        }
        match self.mutation(under_way.region, action) {
            Ok(mutation) if mutation.kind.reads() => self.change(under_way, index, mutation).await,
            Ok(mutation) => under_way.batch.add(index, mutation),
            Err(exception) => under_way.refuse(index, &exception),
        }
    }

    /// Reads the rows that were gathered, and adds an entry for each.
    #[inline]
    async fn get_all(&mut self, under_way: &mut UnderWay<'_>) {
        if let Some(gets) = under_way.gets.take() {
            self.get_some(&gets, under_way).await;
        }
    }

    async fn get_some(&mut self, gets: &GetsAlike, under_way: &mut UnderWay<'_>) {
        let UnderWay { region, answer, gets_indexes, .. } = under_way;
        let clock = &self.server.env().clock;
        let begun = self.looked_at.take().unwrap_or_else(|| clock.monotonic());
        let mut reads = region.reads(gets);
        for (at, &index) in gets_indexes.iter().enumerate() {
            match self.get_now(&mut reads, at, gets.first().existence_only) {
                Some(cells) => answer.push_cells(index, cells),
                None => {
                    let outcome = self.get(&mut reads, &gets.get(at)).await;
                    answer.push_outcome(index, outcome);
                }
            }
            if self.block.len() >= self.turn_ends_at {
                self.turn_ends_at = self.block.len() + BYTES_PER_TURN;
                turns::pause().await;
            }
        }
        drop(reads);
        gets_indexes.clear();
        // They were read together, so that none has a time of its own.
        let count = gets.len() as u32;
        let ended = clock.monotonic();
        let took = ended.saturating_sub(begun) / count;
        self.looked_at = Some(ended);
        region.instruments().note_gets(count, took);
        if let Some(caller) = &self.context.caller {
            caller.note_gets(count, took);
        }
    }

    /// Reads the row at `at` of `reads`, if that needs no wait and its cells go behind the message: how many there are.
    fn get_now(&mut self, reads: &mut Reads<'_>, at: usize, existence_only: bool) -> Option<usize> {
        let ResultForm::Block(codec) = self.context.form else { return None };
        if existence_only || self.check_room().is_err() {
            return None;
        }
        let before = self.block.len();
        let mut result = RowResult::admitted(codec, &mut self.block, self.server.answers());
        let is_read = reads.get_now(at, &mut result);
        let cells = result.cells();
        if !is_read {
            return None;
        }
        self.quota.has_read(self.block.len() - before);
        Some(cells)
    }

    /// An increment or append, behind what was gathered.
    async fn change(&mut self, under_way: &mut UnderWay<'_>, index: u32, mutation: Mutation) {
        self.carry_out(under_way).await;
        let changed = Box::pin(self.changed(under_way.region, mutation)).await;
        under_way.answer.push_outcome(index, changed);
    }

    async fn changed(&mut self, region: &Region, mutation: Mutation) -> Answer<proto::Result> {
        self.check_room()?;
        let (timed, kind) =
            (Timed::begin(self.server, region, self.context.caller.as_deref()), mutation.kind);
        let changed = region.change(None, vec![mutation]).await;
        timed.end(kind);
        let changed = changed.map_err(|error| java_exception(&error))?;
        let told: Vec<KeyValue> = changed.results.into_iter().flatten().flatten().collect();
        Ok(Results::new(self.context.form, &mut self.block).single_of(&told))
    }

    /// Whether the answer may grow by a result.
    fn check_room(&mut self) -> Answer<()> {
        let bytes = self.block.len();
        let lacking = bytes.saturating_sub(self.share.used());
        match (bytes as u64) < self.bytes_max && (lacking == 0 || self.share.take_large(lacking)) {
            true => Ok(()),
            false => Err(self.too_large()),
        }
    }

    /// Answers are small where no result is in them, but there may be very many of them.
    fn check_answer(&self, bytes: usize) -> Answer<()> {
        if bytes as u64 > self.bytes_max { Err(self.too_large()) } else { Ok(()) }
    }

    fn too_large(&self) -> JavaException {
        let message = format!("Max result size exceeded: {} bytes", self.bytes_max);
        JavaException::new(class::MULTI_ACTION_RESULT_TOO_LARGE, message)
    }

    async fn get(&mut self, reads: &mut Reads<'_>, get: &Get) -> Answer<proto::Result> {
        self.check_room()?;
        let before = self.block.len();
        let from = &mut RowsFrom::Reads(reads);
        let result = get::read(self.server, from, get, self.context.form, &mut self.block).await?;
        self.quota.has_read(self.block.len() - before + get::result_bytes(&result));
        Ok(result)
    }

    /// The change of an action, with its cells.
    fn mutation(&mut self, region: &Region, action: &proto::Action) -> Answer<Mutation> {
        let mutation = action
            .mutation
            .as_ref()
            .ok_or_else(|| JavaException::do_not_retry("Action without a Get or a mutation"))?;
        let mutation = from_proto::mutation(mutation, &mut self.cells, self.nonce_group)?;
        self.note_mutation(region, &mutation);
        Ok(mutation)
    }

    fn note_mutation(&mut self, region: &Region, mutation: &Mutation) {
        self.quota.has_written(mutation_bytes(mutation));
        self.server.hotspots().note(region, &mutation.row);
        if let Some(caller) = &self.context.caller {
            caller.note_changes(1);
        }
    }

    /// Carries out the changes that were gathered, and adds an entry for each.
    async fn carry_out(&mut self, UnderWay { region, answer, batch, .. }: &mut UnderWay<'_>) {
        let Gathered { indexes, mutations, .. } = std::mem::take(batch);
        if mutations.is_empty() {
            return;
        }
        let timed = Timed::begin(self.server, region, self.context.caller.as_deref());
        let kinds = Kinds::of(&mutations);
        let outcomes = match mutations.iter().map(|mutation| mutation.cells.len()).sum::<usize>() {
            ..=CELLS_AT_ONCE_MAX => Box::pin(region.batch(mutations)).await,
            _ => Box::pin(batch_in_parts(region, mutations)).await,
        };
        self.looked_at = Some(timed.end_batch(kinds));
        for (index, outcome) in indexes.into_iter().zip(outcomes) {
            match outcome {
                Ok(()) => answer.push_done(index),
                Err(error) => answer.push(&failed_entry(index, &java_exception(&error))),
            }
        }
    }

    async fn pass_over(&mut self, action: &RegionParts) -> Answer<()> {
        for action in action.actions() {
            from_proto::skip_action(&action?, &mut self.cells);
            self.pause().await;
        }
        Ok(())
    }
}

/// Publishes mutations in parts, between which others have their turn; all parts are waited for together.
async fn batch_in_parts(region: &Region, mutations: Vec<Mutation>) -> Vec<engine::error::Result<()>> {
    let mut mutations = mutations.into_iter().peekable();
    let mut parts = Vec::new();
    while mutations.peek().is_some() {
        let (mut part, mut cells) = (Vec::new(), 0);
        while cells < CELLS_AT_ONCE_MAX
            && let Some(mutation) = mutations.next()
        {
            cells += mutation.cells.len().max(1);
            part.push(mutation);
        }
        parts.push(region.begin_batch(part).await);
        turns::pause().await;
    }
    let mut outcomes = Vec::new();
    for part in parts {
        outcomes.extend(region.end_batch(part).await);
    }
    outcomes
}

/// What a region's actions are; counted only where a quota asks.
fn planned(action: &RegionParts) -> Planned {
    let mut planned = Planned::default();
    for action in action.actions().flatten() {
        planned.writes += usize::from(action.mutation.is_some());
        planned.gets += usize::from(action.get.is_some());
    }
    planned
}

/// A region action whose actions go one by one: what is gathered of them, and the answer as it grows.
struct UnderWay<'r> {
    region: &'r Arc<Region>,
    answer: RegionAnswer,
    gets: Option<GetsAlike>,
    // Where each stands in the answer.
    gets_indexes: Vec<u32>,
    batch: Gathered,
}

impl UnderWay<'_> {
    fn refuse(&mut self, index: u32, exception: &JavaException) {
        self.answer.push(&failed_entry(index, exception));
    }
}

/// Puts and deletes of a region that are carried out together.
#[derive(Default)]
struct Gathered {
    indexes: Vec<u32>,
    mutations: Vec<Mutation>,
    bytes: usize,
}

impl Gathered {
    fn add(&mut self, index: u32, mutation: Mutation) {
        self.bytes += mutation.cells.iter().map(|cell| cell.bytes().len()).sum::<usize>();
        self.indexes.push(index);
        self.mutations.push(mutation);
    }

    fn is_full(&self, changes_max: usize) -> bool {
        self.mutations.len() >= changes_max || self.bytes >= GATHERED_BYTES_MAX
    }
}

/// Warns of a request for very many rows, or refuses it, as the options say. Tells the number of regions, and of rows.
fn check_rows(server: &RegionServer, request: &MultiParts) -> Answer<(usize, usize)> {
    let (mut regions, mut rows, mut first) = (0, 0, Bytes::new());
    for region in request.regions() {
        let region = region?;
        if regions == 0 {
            first = region.rest.region.value;
        }
        regions += 1;
        rows += region.actions;
    }
    let limit = server.options().batch_rows_warning;
    if rows <= limit as usize {
        return Ok((regions, rows));
    }
    let first = first.escape_ascii();
    warn!(rows, limit, region = %first, "a batch of more rows than is good for latency");
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
