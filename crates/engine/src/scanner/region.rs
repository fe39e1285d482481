//! The scan of a region: rows over its families, cut into results.
//!
//! A row is found, then its families are read one after the other, in order of their names: that is the order of cells.
//! Found means, forward, the smallest row that a store stands on, and in a reversed scan the greatest one before the
//! last; either way its cells come in rising order. Rows without a cell that passes give no result.
//!
//! How a row is cut shows to clients, so it is HBase's way: a result that may be followed by more of its row is marked
//! partial if any store still stands on a cell of the row, wanted or not.
//!
//! Families that a filter does not look at are read on demand, when the others have passed. That shows too: a row that has
//! cells only in such families is not there.

mod rest;
mod run;

use std::sync::Arc;

use base::env::Clock;
use base::metrics::Counts;
use base::spent::{self, Use};
use cell::CellOrder;
use cell::query::Scan;
use hfile::{Block, Miss, Stop};

use crate::error::{Error, Result};
use crate::instruments::StoreCounts;
use crate::mvcc::ReadGuard;
use crate::scanner::blocks::Blocks;
use crate::scanner::judge::Step;
use crate::scanner::load::{BlockLoader, Keep, Runs};
use crate::scanner::merge::Before;
use crate::scanner::output::{Output, Way};
use crate::scanner::row_filter::{RowFilter, RowKey, Turn};
use crate::scanner::rules::FamilyRules;
use crate::scanner::sink::{Limits, Progress, ResultEnd, ResultSink, Stopped};
use crate::scanner::store::{Stepped, StoreScanner};
use crate::store::StoreView;

pub use rest::LetGo;

/// Bytes of cells looked at in one slice: some hundred microseconds.
const SLICE_BYTES: usize = 64 << 10;
/// What a cell costs besides its bytes, in bytes: small cells take time too.
const CELL_COST: usize = 32;
/// Cost between two looks at the clock.
const CLOCK_COST: usize = 4 << 10;

/// What HBase says where a row would be cut that a filter wants to see whole.
const BATCH_AND_ROWS: &str = "Filter whose hasFilterRow() returns true is incompatible with scans that must stop mid-row because of a limit";

/// A scan over all wanted families of a region, at one read point.
///
/// It holds its read point for as long as it lives, and the views of its stores but for while it [rests](RegionScanner::rest).
pub struct RegionScanner {
    order: CellOrder,
    scan: Scan,
    now_ms: i64,
    // Of one row only.
    is_single_row: bool,
    batch: u64,
    // Those that are read on demand stand behind the others.
    stores: Vec<StoreScanner>,
    // How many decide which rows there are.
    essential: usize,
    // Whether the others are read, in the current row.
    joined: bool,
    phase: Phase,
    // The current row, or the last one found.
    row: Vec<u8>,
    // Whether the current row gave a result, in this call or an earlier one.
    row_returned: bool,
    // The last row ended with a partial result: it counts when the next row is there, as in HBase.
    row_uncounted: bool,
    // Since the scan began.
    rows_seen: u64,
    rows_returned: u64,
    result: OpenResult,
    // Bytes of one store that a result may have.
    row_bytes_max: u64,
    filter: Option<RowFilter>,
    // Whether rows may be walked through that lie behind each other in one block.
    walks: bool,
    // Why the scan cannot go on.
    refused: Option<Error>,
    // Reached after the last result; told to the caller when it is known whether there are more rows.
    pending: Option<Stopped>,
    // Cost until the slice ends, and until the clock is looked at.
    slice_left: usize,
    clock_left: usize,
    resting: bool,
    // Its own views are all that is known to have what it may see.
    stays_awake: bool,
    blocks: Blocks,
    runs: Runs,
    // By which its waits are measured.
    clock: Option<Arc<dyn Clock>>,
    // Which are told what was read: those of all stores of the region.
    counts: Option<Arc<[Counts<StoreCounts>]>>,
    guard: ReadGuard,
}

/// What a call does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing was sought yet.
    Start,
    /// The next row is to be found.
    Find,
    /// Reversed: a row was found, the stores go to its start.
    Enter,
    /// The row is there; its first cell was not looked at.
    Begin,
    /// Cells of the store of this index come next.
    Row(usize),
    /// A limit was reached in the row with the last cell of this store: does the row go on?
    Cut(usize, Stopped),
    /// No more rows.
    Done,
}

/// The result being written.
#[derive(Clone, Copy, Default)]
struct OpenResult {
    begun: bool,
    cells: u64,
    // Of the store that is being read.
    bytes: u64,
}

impl RegionScanner {
    /// A scan of `stores`, all families of the region in order of names with their rules and views.
    ///
    /// The caller has cut the scan's rows to the region's. `now_ms` is the time by which cells expire.
    ///
    /// # Errors
    /// [`Error::BadRequest`] for a raw scan of single columns and for filters that cannot be answered, as in HBase.
    pub fn new<'a>(
        stores: impl IntoIterator<Item = (&'a FamilyRules, &'a StoreView)>,
        order: CellOrder,
        scan: &Scan,
        guard: ReadGuard,
        now_ms: i64,
        loader: Arc<BlockLoader>,
    ) -> Result<RegionScanner> {
        let mut filter =
            scan.selection.filter.as_ref().map(|_| RowFilter::new(scan, now_ms as u64)).transpose()?;
        let (mut wanted, mut joined) = (Vec::new(), Vec::new());
        for (at, (rules, view)) in stores.into_iter().enumerate() {
            let Some(qualifiers) = scan.selection.wants(&rules.family) else {
                continue;
            };
            if scan.raw && qualifiers.is_some() {
                return Err(Error::bad_request("Cannot specify any column for a raw scan"));
            }
            let turn = match &mut filter {
                Some(filter) => filter.turn_of(scan, &rules.family)?,
                None => Turn::First,
            };
            let stores = match turn {
                Turn::First => &mut wanted,
                Turn::OnDemand => &mut joined,
                Turn::Never => continue,
            };
            let read_point = guard.read_point();
            let store = StoreScanner::new(view.clone(), order, rules, scan, qualifiers, read_point, now_ms);
            stores.push(store.at(at));
        }
        let essential = wanted.len();
        wanted.append(&mut joined);
        let judges_rows_apart = filter.as_ref().is_none_or(|filter| filter.scan.judges_rows_apart());
        Ok(RegionScanner {
            walks: wanted.len() == 1 && !scan.reversed && !scan.is_single_row() && judges_rows_apart,
            order,
            scan: scan.clone(),
            now_ms,
            is_single_row: scan.is_single_row(),
            batch: if scan.batch == 0 { u64::MAX } else { u64::from(scan.batch) },
            stores: wanted,
            essential,
            joined: false,
            phase: Phase::Start,
            row: Vec::new(),
            row_returned: false,
            row_uncounted: false,
            rows_seen: 0,
            rows_returned: 0,
            result: OpenResult::default(),
            row_bytes_max: u64::MAX,
            filter,
            refused: None,
            pending: None,
            slice_left: SLICE_BYTES,
            clock_left: CLOCK_COST,
            resting: false,
            stays_awake: false,
            blocks: Blocks::new(loader),
            runs: Runs::default(),
            clock: None,
            counts: None,
            guard,
        })
    }

    /// Goes the common way through all rows.
    #[cfg(test)]
    pub(crate) fn without_walks(self) -> RegionScanner {
        RegionScanner { walks: false, ..self }
    }

    /// The newest write that it sees.
    pub fn read_point(&self) -> u64 {
        self.guard.read_point()
    }

    /// The last row that was looked at, returned or not; empty before the first.
    pub fn last_row(&self) -> &[u8] {
        &self.row
    }

    /// The row at which another scan goes on where this one stopped, if nothing was given of a row that is not through: the row that
    /// was found last, unless it is through, or else what is behind it.
    pub fn next_row(&self) -> Vec<u8> {
        match self.phase {
            Phase::Start => self.scan.start_row.to_vec(),
            Phase::Find | Phase::Done => [self.last_row(), &[0]].concat(),
            Phase::Enter | Phase::Begin | Phase::Row(_) | Phase::Cut(..) => self.row.clone(),
        }
    }

    /// Rows that were looked at since the scan began, and those of them that gave a result.
    pub fn rows_seen_and_returned(&self) -> (u64, u64) {
        (self.rows_seen, self.rows_returned)
    }

    /// Lets filters that choose at random choose by this number.
    pub fn seed(&mut self, scan: &Scan, seed: u64) -> Result<()> {
        if let Some(filter) = &mut self.filter {
            filter.seed(scan, seed)?;
        }
        Ok(())
    }

    /// Adds its waits and its filter's time to the account of the call at work. After [`seed`](RegionScanner::seed).
    pub fn account(&mut self, clock: Arc<dyn Clock>) {
        if let Some(filter) = &mut self.filter {
            filter.sample(clock.clone());
        }
        self.clock = Some(clock);
    }

    /// Tells `counts`, of all stores of the region in order of names, what is read.
    pub(crate) fn count(&mut self, counts: Arc<[Counts<StoreCounts>]>) {
        self.counts = Some(counts);
    }

    fn tell_reads(&mut self) {
        if let Some(counts) = &self.counts {
            self.stores.iter_mut().for_each(|store| store.tell_reads(counts));
        }
    }

    /// A long stretch is behind: notes where its cells lay.
    pub(crate) fn note_slice(&self) {
        let in_memstore = self.stores.iter().any(|store| store.merge.is_in_memstore());
        spent::used(if in_memstore { Use::MemstoreSlices } else { Use::BlockSlices }, 1);
    }

    /// Lets a result have at most `bytes` of one store.
    pub fn limit_rows(&mut self, bytes: u64) {
        self.row_bytes_max = bytes;
    }

    /// Whether its filter takes so long for a cell that it delays other calls of the thread.
    pub(crate) fn is_slow(&self) -> bool {
        self.filter.as_ref().is_some_and(|filter| filter.scan.is_slow())
    }

    /// Whether the filter lets nothing pass any more.
    pub fn is_filter_done(&self) -> bool {
        self.filter.as_ref().is_some_and(|filter| filter.scan.is_done())
    }

    /// Why the scan ended before its time, if it did: a filter met what it cannot judge, or a row is too big.
    pub fn refused(&self) -> Option<Error> {
        self.refused.clone()
    }

    /// Ends the call here, between two cells or rows, as if the limit of bytes were reached; `false` if rows may not be cut.
    pub(crate) fn stop_early(&mut self, limits: &mut Limits) -> bool {
        let lets_cut = self.filter.as_ref().is_none_or(RowFilter::lets_cut);
        // A second time: what was begun did not end.
        if !limits.partials || !lets_cut || limits.bytes == 0 {
            return false;
        }
        limits.bytes = 0;
        if let Phase::Row(at) = self.phase
            && self.result.begun
        {
            self.phase = Phase::Cut(at, Stopped::Bytes);
        }
        true
    }

    /// Loads what a miss named, and what is read next if rows are read in order.
    pub(crate) async fn load(&mut self, miss: &Miss) -> Result<()> {
        let loader = self.blocks.loader().clone();
        let ahead = !self.is_single_row && !self.scan.reversed;
        let keep = Keep::of_reads(&self.scan.selection);
        for missed in miss.blocks.iter().filter(|_| ahead) {
            self.blocks.drop_before(missed.file.file_id(), missed.offset);
        }
        let load = loader.load_missed(miss, ahead.then_some(&mut self.runs), keep);
        let blocks = match &self.clock {
            Some(clock) => spent::waited(spent::Phase::Disk, &**clock, load).await?,
            None => load.await?,
        };
        for block in blocks {
            BlockLoader::note_read(&block);
            self.blocks.supply(block);
        }
        Ok(())
    }

    /// Notes why the scan cannot go on, if a file is damaged.
    pub(crate) fn note_damage(&self, error: &hfile::Error) {
        self.blocks.loader().note_damage(error);
    }

    /// Takes a block that a miss named.
    pub fn supply(&mut self, block: Arc<Block>) {
        self.blocks.supply(block);
    }

    /// Writes results to `sink` until a limit is reached.
    ///
    /// # Errors
    /// [`Stop::Miss`]: supply the blocks and call again with the same limits and sink, a result may be half written.
    /// [`Stop::Failed`]: the scan cannot go on.
    pub fn next(
        &mut self,
        limits: &mut Limits,
        sink: &mut dyn ResultSink,
    ) -> std::result::Result<Progress, Stop> {
        // At rest it would have no rows.
        assert!(!self.resting, "wake it first");
        loop {
            if let Some(stopped) = self.advance(limits, sink)? {
                self.tell_reads();
                return Ok(Progress {
                    stopped,
                    mid_row: self.row_returned && matches!(self.phase, Phase::Row(_)),
                });
            }
        }
    }

    /// Carries out one phase, or one cell of a row.
    fn advance(
        &mut self,
        limits: &mut Limits,
        sink: &mut dyn ResultSink,
    ) -> std::result::Result<Option<Stopped>, Stop> {
        match self.phase {
            Phase::Start => self.start(),
            Phase::Find => return self.find(limits, sink),
            Phase::Enter => {
                self.settle()?;
                self.phase = Phase::Begin;
            }
            Phase::Begin => {
                if std::mem::take(&mut self.row_uncounted) {
                    limits.rows = limits.rows.saturating_sub(1);
                }
                if let Some(stopped) = self.pending.take().or_else(|| used_up(limits)) {
                    return Ok(Some(stopped));
                }
                return Ok(self.begin_row());
            }
            Phase::Row(at) => return self.read_row(at, limits, sink),
            Phase::Cut(at, reached) => return self.cut(at, reached, limits, sink),
            Phase::Done => {
                // The filter's end and the client's limit may come with the same row.
                let limit = self.pending.take().filter(|pending| *pending == Stopped::Rows);
                return Ok(Some(limit.unwrap_or(Stopped::Exhausted)));
            }
        }
        Ok(None)
    }

    /// Sends all stores to the first row.
    fn start(&mut self) {
        let Scan { start_row: start, include_start_row, reversed, .. } = &self.scan;
        for store in &mut self.stores[..self.essential] {
            match (reversed, include_start_row) {
                (false, true) => store.merge.seek_row(start),
                (false, false) => store.merge.seek_behind_row(start),
                (true, _) if start.is_empty() => store.merge.seek_before(Before::End),
                (true, true) => store.merge.seek_before(Before::EndOf(start)),
                (true, false) => store.merge.seek_before(Before::StartOf(start)),
            }
        }
        self.phase = Phase::Find;
    }

    /// Waits for all stores together, so that a cold read costs one round of loads and not one a store.
    fn settle(&mut self) -> std::result::Result<(), Stop> {
        let mut missed: Option<Miss> = None;
        for store in &mut self.stores[..self.essential] {
            match store.merge.settle(&self.blocks) {
                Ok(()) => {}
                Err(Stop::Miss(miss)) => match &mut missed {
                    Some(missed) => missed.merge(miss),
                    None => missed = Some(miss),
                },
                Err(failed) => return Err(failed),
            }
        }
        if let Some(missed) = missed {
            return Err(Stop::Miss(missed));
        }
        self.blocks.release_taken();
        Ok(())
    }

    /// Finds the next row, behind those that can be walked through.
    fn find(
        &mut self,
        limits: &mut Limits,
        sink: &mut dyn ResultSink,
    ) -> std::result::Result<Option<Stopped>, Stop> {
        // What does not depend on there being more rows is told without looking for them.
        if let Some(stopped) =
            self.pending.take_if(|pending| matches!(pending, Stopped::Time | Stopped::Rows))
        {
            return Ok(Some(stopped));
        }
        self.settle()?;
        if let Some(stopped) = self.walk_rows(limits, sink) {
            return Ok(Some(stopped));
        }
        if self.charge(CELL_COST, limits) {
            self.pending = Some(Stopped::Time);
        }
        let (order, stores) = (self.order, &self.stores[..self.essential]);
        let found = match self.scan.reversed {
            false => {
                let rows = stores.iter().filter_map(|store| store.merge.cell()).map(|cell| cell.row());
                rows.min_by(|left, right| order.compare_rows(left, right))
            }
            true => {
                let rows = stores.iter().filter_map(|store| store.merge.row_before());
                rows.max_by(|left, right| order.compare_rows(left, right))
            }
        };
        let Some(row) = found.filter(|row| holds(&self.scan, order, row)) else {
            self.phase = Phase::Done;
            self.pending = None;
            return Ok(None);
        };
        self.row.clear();
        self.row.extend_from_slice(row);
        self.phase = Phase::Begin;
        if self.scan.reversed {
            for store in &mut self.stores {
                store.merge.enter_row(&self.row);
            }
            self.phase = Phase::Enter;
        }
        Ok(None)
    }

    fn begin_row(&mut self) -> Option<Stopped> {
        for store in &mut self.stores {
            store.begin_row();
        }
        self.row_returned = false;
        self.joined = false;
        self.phase = Phase::Row(0);
        if let Some(filter) = &mut self.filter {
            match filter.begin_row(&self.row) {
                Ok(RowKey::Passes) => {}
                Ok(RowKey::Filtered) => return self.skip_row(),
                Ok(RowKey::FilteredButLookedAt) => {}
                Ok(RowKey::Last) => {
                    filter.end_row();
                    self.phase = Phase::Done;
                    return None;
                }
                Err(misfit) => self.refuse(Error::bad_request(misfit.to_string())),
            }
        }
        self.rows_seen += 1;
        None
    }

    /// The row is left out by its key; breaks for others come here too.
    fn skip_row(&mut self) -> Option<Stopped> {
        self.rows_seen += 1;
        if let Some(filter) = &mut self.filter {
            filter.end_row();
        }
        self.leave_row();
        let goes_on = !self.scan.reversed && !self.is_single_row;
        for store in self.stores[..self.essential].iter_mut().filter(|_| goes_on) {
            store.skip_row(&self.row);
        }
        if self.slice_left > 0 {
            return None;
        }
        self.slice_left = SLICE_BYTES;
        Some(Stopped::Slice)
    }

    fn refuse(&mut self, why: Error) {
        self.refused = Some(why);
        self.pending = None;
        self.phase = Phase::Done;
    }

    /// Reads cells of the row from the store of index `at` on.
    fn read_row(
        &mut self,
        mut at: usize,
        limits: &mut Limits,
        sink: &mut dyn ResultSink,
    ) -> std::result::Result<Option<Stopped>, Stop> {
        // A row that goes on after a batch, in a call that may return nothing more.
        if !self.result.begun
            && let Some(stopped) = used_up(limits)
        {
            return Ok(Some(stopped));
        }
        let goes_on = !self.is_single_row && !self.scan.reversed;
        while let Some(store) = self.stores.get_mut(at) {
            self.phase = Phase::Row(at);
            if at >= self.essential && !self.joined {
                if !self.join() {
                    break;
                }
                continue;
            }
            let (filter, way) = match &mut self.filter {
                Some(filter) => filter.parts(),
                None => (None, Way::Sink),
            };
            let mut output = Output { sink, way, goes_on: self.row_returned, begun: &mut self.result.begun };
            let goes_on = goes_on && at < self.essential;
            let step = store.step(&self.row, goes_on, &self.blocks, filter, &mut output)?;
            self.blocks.release_taken();
            let step = match step {
                Stepped::Cell(step) => step,
                Stepped::RowDone => {
                    store.note_row();
                    at += 1;
                    self.result.bytes = 0;
                    continue;
                }
                Stepped::Refused(misfit) => {
                    self.refuse(Error::bad_request(misfit.to_string()));
                    return Ok(None);
                }
            };
            let bytes = match step {
                Step::Passed(bytes) => bytes,
                Step::Written(bytes) => {
                    self.result.cells += 1;
                    self.result.bytes += bytes as u64 + 4;
                    self.take_off(bytes, limits);
                    if self.result.bytes > self.row_bytes_max {
                        self.refuse(self.row_too_big());
                        return Ok(None);
                    }
                    bytes
                }
            };
            let time_over = self.charge(bytes + CELL_COST, limits);
            let cuts = limits.partials && self.filter.as_ref().is_none_or(RowFilter::lets_cut);
            if time_over && !cuts {
                self.pending = Some(Stopped::Time);
            }
            let written = matches!(step, Step::Written(_));
            if let Some(reached) = self.reached(time_over, written, cuts, limits) {
                if self.filter.as_ref().is_some_and(|filter| !filter.lets_cut()) {
                    self.refuse(Error::bad_request(BATCH_AND_ROWS));
                    return Ok(None);
                }
                self.phase = Phase::Cut(at, reached);
                return Ok(None);
            }
            if self.slice_left == 0 {
                self.slice_left = SLICE_BYTES;
                return Ok(Some(Stopped::Slice));
            }
        }
        self.end_row(limits, sink);
        Ok(None)
    }

    /// The stores that decide were read. Whether the row passes; then the others are sent to it.
    fn join(&mut self) -> bool {
        self.joined = true;
        if !self.filter.as_mut().is_some_and(RowFilter::passes_so_far) {
            return false;
        }
        for store in &mut self.stores[self.essential..] {
            store.merge.seek_row(&self.row);
        }
        true
    }

    /// Source: HBase `StoreScanner.next`.
    fn row_too_big(&self) -> Error {
        let (limit, row) = (self.row_bytes_max, self.row.escape_ascii());
        let what = format!(
            "Max row size allowed: {limit}, but the row is bigger than that, the row info: {row}, already have process \
             row cells = {}",
            self.result.cells
        );
        Error::RowTooBig { what }
    }

    /// Takes a cell off the limits, if it goes out now.
    #[inline]
    fn take_off(&mut self, bytes: usize, limits: &mut Limits) {
        let bytes = bytes as u64 + 4;
        match &mut self.filter {
            Some(filter) => filter.account(bytes, limits),
            None => limits.bytes = limits.bytes.saturating_sub(bytes),
        }
    }

    /// Subtracts the cost of a cell and of its filter from the budgets. Returns whether the deadline has passed.
    fn charge(&mut self, cost: usize, limits: &Limits) -> bool {
        let cost = cost + self.filter.as_mut().map_or(0, |filter| filter.scan.take_cost());
        self.slice_left = self.slice_left.saturating_sub(cost);
        self.clock_left = self.clock_left.saturating_sub(cost);
        if self.clock_left > 0 {
            return false;
        }
        self.clock_left = CLOCK_COST;
        limits.deadline.as_ref().is_some_and(|deadline| deadline.is_over())
    }

    /// The limit that ends the result within its row, if one does.
    fn reached(&self, time_over: bool, written: bool, cuts: bool, limits: &Limits) -> Option<Stopped> {
        if written && self.result.cells >= self.batch && self.filter.as_ref().is_none_or(RowFilter::writes) {
            return Some(Stopped::Results);
        }
        if written && cuts && limits.bytes == 0 {
            return Some(Stopped::Bytes);
        }
        (time_over && cuts).then_some(Stopped::Time)
    }

    /// Ends the result where a limit was reached in the row, as a partial one if the row goes on.
    fn cut(
        &mut self,
        at: usize,
        reached: Stopped,
        limits: &mut Limits,
        sink: &mut dyn ResultSink,
    ) -> std::result::Result<Option<Stopped>, Stop> {
        self.stores[at].settle_in_row(&self.blocks)?;
        self.blocks.release_taken();
        if !self.stores[at..].iter().any(|store| store.is_in(&self.row)) {
            if reached == Stopped::Time {
                self.pending = Some(Stopped::Time);
            }
            self.stores[at].note_row();
            self.end_row(limits, sink);
            return Ok(None);
        }
        self.phase = Phase::Row(at);
        self.stores[at].note_row();
        self.end_result(true, limits, sink);
        // A full batch ends its result; whether it ends the call too, the limits say.
        Ok(if reached == Stopped::Results { used_up(limits) } else { Some(reached) })
    }

    fn end_result(&mut self, partial: bool, limits: &mut Limits, sink: &mut dyn ResultSink) {
        if std::mem::take(&mut self.result).begun {
            sink.end_result(ResultEnd { partial });
            limits.results = limits.results.saturating_sub(1);
            if !self.row_returned {
                self.rows_returned += 1;
            }
            self.row_returned = true;
        }
    }

    /// The row is complete; says where to go from here.
    fn end_row(&mut self, limits: &mut Limits, sink: &mut dyn ResultSink) {
        if let Some(filter) = &mut self.filter {
            self.result.begun = filter.judge_row(self.result.begun, limits, sink);
            filter.end_row();
        }
        let whole = self.result.begun;
        self.end_result(false, limits, sink);
        if self.row_returned {
            if whole {
                limits.rows = limits.rows.saturating_sub(1);
            }
            self.row_uncounted = !whole;
            self.row_returned = false;
            self.pending = self.pending.or_else(|| used_up(limits));
        }
        self.leave_row();
    }

    /// Sends the stores to the next row, if there may be one.
    fn leave_row(&mut self) {
        self.result = OpenResult::default();
        if self.is_single_row || self.is_filter_done() {
            self.phase = Phase::Done;
            return;
        }
        self.phase = Phase::Find;
        if self.scan.reversed {
            for store in &mut self.stores {
                store.leave_row_backward(&self.row);
            }
        }
    }
}

/// Whether `row` is not behind the last row that `scan` wants.
fn holds(scan: &Scan, order: CellOrder, row: &[u8]) -> bool {
    let stop = &scan.stop_row[..];
    if stop.is_empty() {
        return true;
    }
    let ordering = match scan.reversed {
        false => order.compare_rows(row, stop),
        true => order.compare_rows(stop, row),
    };
    ordering.is_lt() || (ordering.is_eq() && scan.include_stop_row)
}

fn used_up(limits: &Limits) -> Option<Stopped> {
    if limits.rows == 0 {
        return Some(Stopped::Rows);
    }
    if limits.results == 0 {
        return Some(Stopped::Results);
    }
    (limits.bytes == 0).then_some(Stopped::Bytes)
}
