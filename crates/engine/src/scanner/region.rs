//! The scan of a region: reads the rows of its families and cuts them into results.
//!
//! The scan finds a row, then reads its cells store by store, in order of the family names. A
//! forward scan takes the smallest row at which a store is positioned. A reversed scan takes the
//! greatest row before the previous one. Both read the cells of a row in ascending order. A row
//! gives no result if it has no visible cell that passes the filter.
//!
//! Clients can see where a row is cut into several results, so the cuts are those of HBase. A
//! result that ends before its row does is marked partial. The row counts as continued if any store
//! has another cell of it, even a cell that the scan does not return.
//!
//! Stores of families that the filter needs are *essential*. The other stores are read *on demand*,
//! after the filter has accepted the row. Clients can see that too: a row that has cells only in
//! on-demand families is not returned.
//!
//! A store moves in two steps: a seek only records the target, and the store moves there when it
//! *settles*. So only settling can miss blocks. The blocks that were loaded after a miss are
//! released when the step that needed them has succeeded (`release_taken`).

mod rest;
mod walk;

use std::sync::Arc;

use base::env::Clock;
use base::metrics::Counts;
use base::spent::{self, Use};
use cell::CellOrder;
use cell::query::Scan;
use hfile::{Block, Miss, Stop};

use crate::error::{Error, Result};
use crate::instruments::StoreCounts;
use crate::mob::{Delivery, MobResolver};
use crate::mvcc::ReadGuard;
use crate::scanner::blocks::ScannerBlocks;
use crate::scanner::judge::CellOutcome;
use crate::scanner::load::{BlockLoader, CachePolicy, ReadAhead};
use crate::scanner::merge::ReverseStart;
use crate::scanner::output::{Destination, Output};
use crate::scanner::parts::ScannerParts;
use crate::scanner::row_filter::{ReadOrder, RowFilter, RowKeyVerdict};
use crate::scanner::rules::FamilyRules;
use crate::scanner::sink::{Limits, Progress, ResultEnd, ResultSink, Stopped};
use crate::scanner::store::{StepOutcome, StoreScanner};
use crate::store::StoreView;

pub use rest::ReleasedViews;

/// Cost of a *slice*: the work between two pauses of a scan, a few hundred microseconds. A cell
/// costs the number of its bytes plus [`CELL_COST`].
const SLICE_COST: usize = 64 << 10;
/// Cost of a cell in addition to its bytes.
const CELL_COST: usize = 32;
/// Cost after which the deadline is checked again.
const CLOCK_COST: usize = 4 << 10;

/// HBase's message for a limit that would cut a row which a filter must see whole.
const LIMIT_WITH_ROW_FILTER: &str = "Filter whose hasFilterRow() returns true is incompatible with scans that must stop mid-row because of a limit";

/// A scan over all wanted families of a region, at one read point.
///
/// It keeps its read point registered while it lives. It holds the views of its stores except while
/// it [rests](RegionScanner::rest).
pub struct RegionScanner {
    order: CellOrder,
    scan: Scan,
    now_ms: i64,
    // The scan is for one row only.
    is_single_row: bool,
    // Maximum number of cells in a result.
    batch: u64,
    // The essential stores, then the stores that are read on demand.
    stores: Vec<StoreScanner>,
    essential_count: usize,
    // Whether `seek_on_demand_stores` was called for the current row.
    on_demand_decided: bool,
    phase: Phase,
    // The current row, or the last row found.
    row: Vec<u8>,
    // Whether the current row gave a result, in this call or an earlier one.
    row_returned: bool,
    // Whether the last row is still to be subtracted from the row limit. It has only partial
    // results, because no cell after them passed. As in HBase, such a row is subtracted when the
    // next row is found.
    row_uncounted: bool,
    // Totals since the scan began.
    rows_read: u64,
    rows_returned: u64,
    result: OpenResult,
    // Maximum bytes of one store's cells in a result (HBase's limit for rows).
    store_bytes_max: u64,
    filter: Option<RowFilter>,
    // Whether rows may be read on the fast path (module `walk`).
    fast_path_allowed: bool,
    // The error that ended the scan.
    failure: Option<Error>,
    // A limit that was reached at the end of a row. It ends the call later: a limit of time or rows
    // before the search for the next row, any other limit after the next row was found.
    pending_stop: Option<Stopped>,
    // Cost that remains until the slice ends, and until the clock is checked.
    slice_left: usize,
    clock_left: usize,
    resting: bool,
    // Resolves references to MOB files in the results; `None` if they are returned as they are.
    mob: Option<Arc<MobResolver>>,
    // The scanner must keep its views: newer views may lack versions that it has to return.
    pins_views: bool,
    blocks: ScannerBlocks,
    read_ahead: ReadAhead,
    // Measures the waits for blocks.
    clock: Arc<dyn Clock>,
    // Counters of all stores of the region.
    counts: Arc<[Counts<StoreCounts>]>,
    guard: ReadGuard,
}

/// The next step of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The stores have no position yet.
    SeekFirst,
    /// The next row must be found.
    Find,
    /// Reversed scans: a row was found, and the stores must move to its start.
    MoveToRow,
    /// The row was found; none of its cells was read.
    BeginRow,
    /// The cells of the store with this index are next.
    Row(usize),
    /// A limit was reached at a cell of the store with this index; [`Stopped::Results`] if it is
    /// that of cells in a result (the batch). Whether the row continues is not known yet.
    LimitReached(usize, Stopped),
    /// No more rows.
    Done,
}

/// The result being written.
#[derive(Clone, Copy, Default)]
struct OpenResult {
    begun: bool,
    cells: u64,
    // Bytes of the current store's cells.
    bytes: u64,
}

impl RegionScanner {
    /// A scan of `stores`, which are the rules and views of all families of the region in order of
    /// names.
    ///
    /// The caller must have limited the scan's rows to those of the region.
    ///
    /// # Errors
    /// [`Error::BadRequest`] for a raw scan of single columns and for invalid filters, as in HBase.
    pub fn new<'a>(
        stores: impl IntoIterator<Item = (&'a FamilyRules, &'a StoreView)>,
        scan: &Scan,
        parts: ScannerParts,
    ) -> Result<RegionScanner> {
        let ScannerParts {
            order,
            guard,
            now_ms,
            loader,
            store_bytes_max,
            pins_views,
            clock,
            counts,
            seed,
            mob,
        } = parts;
        let mut reads_mob = false;
        let mut filter = match scan.selection.filter {
            Some(_) => Some(RowFilter::new(scan, seed, clock.clone())?),
            None => None,
        };
        let (mut wanted, mut on_demand) = (Vec::new(), Vec::new());
        for (index, (rules, view)) in stores.into_iter().enumerate() {
            let Some(qualifiers) = scan.selection.qualifiers_of(&rules.family) else {
                continue;
            };
            if scan.raw && qualifiers.is_some() {
                return Err(Error::bad_request("Cannot specify any column for a raw scan"));
            }
            let read_order = match &mut filter {
                Some(filter) => filter.read_order_of(scan, &rules.family)?,
                None => ReadOrder::First,
            };
            let stores = match read_order {
                ReadOrder::First => &mut wanted,
                ReadOrder::OnDemand => &mut on_demand,
                ReadOrder::Never => continue,
            };
            reads_mob |= rules.reads_mob(scan.selection.mob);
            // As in HBase, a read of references returns nothing else of the families after the
            // first MOB family.
            let is_after_mob = scan.selection.mob.references_only && reads_mob && !rules.is_mob;
            let as_mob = is_after_mob.then(|| FamilyRules { is_mob: true, ..rules.clone() });
            let rules = as_mob.as_ref().unwrap_or(rules);
            let read_point = guard.read_point();
            let store = StoreScanner::new(view.clone(), order, rules, scan, qualifiers, read_point, now_ms);
            stores.push(store.with_index(index));
        }
        let essential_count = wanted.len();
        wanted.append(&mut on_demand);
        let is_row_local = filter.as_ref().is_none_or(|filter| filter.scan.is_row_local());
        Ok(RegionScanner {
            fast_path_allowed: wanted.len() == 1
                && !scan.reversed
                && !scan.is_single_row()
                && is_row_local
                && !reads_mob,
            mob: mob.filter(|_| reads_mob && !scan.selection.mob.raw),
            order,
            scan: scan.clone(),
            now_ms,
            is_single_row: scan.is_single_row(),
            batch: if scan.batch == 0 { u64::MAX } else { u64::from(scan.batch) },
            stores: wanted,
            essential_count,
            on_demand_decided: false,
            phase: Phase::SeekFirst,
            row: Vec::new(),
            row_returned: false,
            row_uncounted: false,
            rows_read: 0,
            rows_returned: 0,
            result: OpenResult::default(),
            store_bytes_max,
            filter,
            failure: None,
            pending_stop: None,
            slice_left: SLICE_COST,
            clock_left: CLOCK_COST,
            resting: false,
            pins_views,
            blocks: ScannerBlocks::new(loader),
            read_ahead: ReadAhead::default(),
            clock,
            counts,
            guard,
        })
    }

    /// Delivers results with values in place of references to MOB files; `None` if the results need
    /// nothing of that.
    pub(crate) fn delivery(&self) -> Option<Delivery> {
        let resolver = self.mob.clone()?;
        Some(Delivery::new(resolver, self.scan.selection.mob))
    }

    /// Reads all rows on the general path.
    #[cfg(test)]
    pub(crate) fn without_fast_path(self) -> RegionScanner {
        RegionScanner { fast_path_allowed: false, ..self }
    }

    /// The read point: the newest write that the scan sees.
    pub fn read_point(&self) -> u64 {
        self.guard.read_point()
    }

    /// The last row that the scan read, returned or not; empty before the first row.
    pub fn last_row(&self) -> &[u8] {
        &self.row
    }

    /// The start row for a forward scan that resumes where this one stopped: the last row found if
    /// it is not complete, otherwise the smallest possible row after it. Invalid if a part of an
    /// incomplete row was returned.
    pub fn next_row(&self) -> Vec<u8> {
        match self.phase {
            Phase::SeekFirst => self.scan.start_row.to_vec(),
            Phase::Find | Phase::Done => [self.last_row(), &[0]].concat(),
            Phase::MoveToRow | Phase::BeginRow | Phase::Row(_) | Phase::LimitReached(..) => self.row.clone(),
        }
    }

    /// Number of rows read since the scan began, and number of those that gave a result.
    pub fn rows_read_and_returned(&self) -> (u64, u64) {
        (self.rows_read, self.rows_returned)
    }

    fn count_reads(&mut self) {
        self.stores.iter_mut().for_each(|store| store.count_reads(&self.counts));
    }

    /// Counts a slice in the statistics of the call, as one that ended in a memstore or in a block.
    pub(crate) fn count_slice(&self) {
        let in_memstore = self.stores.iter().any(|store| store.merge.is_in_memstore());
        spent::used(if in_memstore { Use::MemstoreSlices } else { Use::BlockSlices }, 1);
    }

    /// Whether a single evaluation of the filter takes so long that it delays other calls of the
    /// thread.
    pub(crate) fn is_slow(&self) -> bool {
        self.filter.as_ref().is_some_and(|filter| filter.scan.is_slow())
    }

    /// Whether the filter rejects all further rows.
    pub fn is_filter_done(&self) -> bool {
        self.filter.as_ref().is_some_and(|filter| filter.scan.is_done())
    }

    /// The error that ended the scan early, if any: the filter failed on a value, or a row is too
    /// big.
    pub fn failure(&self) -> Option<Error> {
        self.failure.clone()
    }

    /// Ends the call here, between two cells or rows, as if the limit of bytes were reached.
    /// Returns `false` if the scan cannot stop here.
    pub(crate) fn stop_early(&mut self, limits: &mut Limits) -> bool {
        let may_split_row = self.filter.as_ref().is_none_or(RowFilter::may_split_row);
        // A scan that has used up its bytes and still runs cannot stop here.
        if !limits.partials || !may_split_row || limits.bytes == 0 {
            return false;
        }
        limits.bytes = 0;
        if let Phase::Row(at) = self.phase
            && self.result.begun
        {
            self.phase = Phase::LimitReached(at, Stopped::Bytes);
        }
        true
    }

    /// Loads the blocks of a miss. A forward scan of several rows also reads ahead.
    pub(crate) async fn load(&mut self, miss: &Miss) -> Result<()> {
        let loader = self.blocks.loader().clone();
        let ahead = !self.is_single_row && !self.scan.reversed;
        let policy = CachePolicy::of_reads(&self.scan.selection);
        for missed in miss.blocks.iter().filter(|_| ahead) {
            self.blocks.drop_before(missed.file.file_id(), missed.offset);
        }
        let load = loader.load_missed(miss, ahead.then_some(&mut self.read_ahead), policy);
        for block in spent::timed_wait(spent::Phase::Disk, &*self.clock, load).await? {
            BlockLoader::count_read(&block);
            self.blocks.supply(block);
        }
        Ok(())
    }

    /// Records `error` if it means that a file is damaged.
    pub(crate) fn record_damage(&self, error: &hfile::Error) {
        self.blocks.loader().record_damage(error);
    }

    /// Accepts a block that a miss named.
    pub fn supply(&mut self, block: Arc<Block>) {
        self.blocks.supply(block);
    }

    /// Writes results to `sink` until a limit is reached.
    ///
    /// # Errors
    /// [`Stop::Miss`]: [supply](Self::supply) the blocks, and call again with the same limits and
    /// the same sink. [`Stop::Failed`]: the scan cannot continue. In both cases, the sink may
    /// contain an incomplete result.
    pub fn next(
        &mut self,
        limits: &mut Limits,
        sink: &mut dyn ResultSink,
    ) -> std::result::Result<Progress, Stop> {
        // A resting scanner has no sources and would return no rows.
        assert!(!self.resting, "a resting scanner must be woken first");
        loop {
            if let Some(stopped) = self.advance(limits, sink)? {
                self.count_reads();
                return Ok(Progress {
                    stopped,
                    mid_row: self.row_returned && matches!(self.phase, Phase::Row(_)),
                });
            }
        }
    }

    /// Performs one phase, or reads the cells of a row up to the next stop.
    fn advance(
        &mut self,
        limits: &mut Limits,
        sink: &mut dyn ResultSink,
    ) -> std::result::Result<Option<Stopped>, Stop> {
        match self.phase {
            Phase::SeekFirst => self.seek_first(),
            Phase::Find => return self.find(limits, sink),
            Phase::MoveToRow => {
                debug_assert!(self.scan.reversed, "only reversed scans move to a row that was found");
                self.settle()?;
                self.phase = Phase::BeginRow;
            }
            Phase::BeginRow => {
                if std::mem::take(&mut self.row_uncounted) {
                    limits.rows = limits.rows.saturating_sub(1);
                }
                if let Some(stopped) = self.pending_stop.take().or_else(|| exhausted_limit(limits)) {
                    return Ok(Some(stopped));
                }
                return Ok(self.begin_row());
            }
            Phase::Row(at) => return self.read_row(at, limits, sink),
            Phase::LimitReached(at, reached) => return self.end_at_limit(at, reached, limits, sink),
            Phase::Done => {
                // If filter and row limit end the scan at the same row, the row limit is reported.
                let limit = self.pending_stop.take().filter(|pending_stop| *pending_stop == Stopped::Rows);
                return Ok(Some(limit.unwrap_or(Stopped::Exhausted)));
            }
        }
        Ok(None)
    }

    /// Moves all stores to the first row.
    fn seek_first(&mut self) {
        let Scan { start_row: start, include_start_row, reversed, .. } = &self.scan;
        for store in &mut self.stores[..self.essential_count] {
            match (reversed, include_start_row) {
                (false, true) => store.merge.seek_row(start),
                (false, false) => store.merge.seek_after_row(start),
                (true, _) if start.is_empty() => store.merge.seek_before(ReverseStart::End),
                (true, true) => store.merge.seek_before(ReverseStart::EndOf(start)),
                (true, false) => store.merge.seek_before(ReverseStart::StartOf(start)),
            }
        }
        self.phase = Phase::Find;
    }

    /// Settles all essential stores. A miss names the blocks that all of them need, so that one
    /// round of loads is enough.
    fn settle(&mut self) -> std::result::Result<(), Stop> {
        let mut missed: Option<Miss> = None;
        for store in &mut self.stores[..self.essential_count] {
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

    /// Reads rows on the fast path if it applies, then finds the next row.
    fn find(
        &mut self,
        limits: &mut Limits,
        sink: &mut dyn ResultSink,
    ) -> std::result::Result<Option<Stopped>, Stop> {
        // Reported without a search for the next row.
        if let Some(stopped) =
            self.pending_stop.take_if(|pending_stop| matches!(pending_stop, Stopped::Time | Stopped::Rows))
        {
            return Ok(Some(stopped));
        }
        self.settle()?;
        if let Some(stopped) = self.read_rows_fast(limits, sink) {
            return Ok(Some(stopped));
        }
        if self.subtract_cost(CELL_COST, limits) {
            self.pending_stop = Some(Stopped::Time);
        }
        let (order, stores) = (self.order, &self.stores[..self.essential_count]);
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
        let Some(row) = found.filter(|row| is_before_stop(&self.scan, order, row)) else {
            self.phase = Phase::Done;
            self.pending_stop = None;
            return Ok(None);
        };
        debug_assert!(
            self.row.is_empty() || {
                let from_last = order.compare_rows(&self.row, row);
                if self.scan.reversed { from_last.is_ge() } else { from_last.is_le() }
            },
            "the rows of a scan are in order"
        );
        self.row.clear();
        self.row.extend_from_slice(row);
        self.phase = Phase::BeginRow;
        if self.scan.reversed {
            for store in &mut self.stores {
                store.merge.enter_row(&self.row);
            }
            self.phase = Phase::MoveToRow;
        }
        Ok(None)
    }

    fn begin_row(&mut self) -> Option<Stopped> {
        debug_assert!(!self.result.begun, "a row begins without an open result");
        for store in &mut self.stores {
            store.begin_row();
        }
        self.row_returned = false;
        self.on_demand_decided = false;
        self.phase = Phase::Row(0);
        if let Some(filter) = &mut self.filter {
            match filter.begin_row(&self.row) {
                Ok(RowKeyVerdict::Passes) => {}
                Ok(RowKeyVerdict::Filtered) => return self.skip_row(),
                Ok(RowKeyVerdict::FilteredButEvaluated) => {}
                Ok(RowKeyVerdict::EndsScan) => {
                    filter.end_row();
                    self.phase = Phase::Done;
                    return None;
                }
                Err(error) => self.fail(Error::bad_request(error.to_string())),
            }
        }
        self.rows_read += 1;
        None
    }

    /// Skips a row that the filter rejected by its key. Ends the slice when its budget is used up,
    /// so that a long series of such rows does not block other calls.
    fn skip_row(&mut self) -> Option<Stopped> {
        self.rows_read += 1;
        if let Some(filter) = &mut self.filter {
            filter.end_row();
        }
        self.leave_row();
        let skip_rest_of_row = !self.scan.reversed && !self.is_single_row;
        for store in self.stores[..self.essential_count].iter_mut().filter(|_| skip_rest_of_row) {
            store.skip_row(&self.row);
        }
        if self.slice_left > 0 {
            return None;
        }
        self.slice_left = SLICE_COST;
        Some(Stopped::Slice)
    }

    fn fail(&mut self, why: Error) {
        self.failure = Some(why);
        self.pending_stop = None;
        self.phase = Phase::Done;
    }

    /// Reads cells of the row, starting with the store of index `at`.
    fn read_row(
        &mut self,
        mut at: usize,
        limits: &mut Limits,
        sink: &mut dyn ResultSink,
    ) -> std::result::Result<Option<Stopped>, Stop> {
        // After a full batch, the rest of the row waits for the next call if a limit is used up.
        if !self.result.begun
            && let Some(stopped) = exhausted_limit(limits)
        {
            return Ok(Some(stopped));
        }
        let skip_rest_of_row = !self.is_single_row && !self.scan.reversed;
        while let Some(store) = self.stores.get_mut(at) {
            self.phase = Phase::Row(at);
            if at >= self.essential_count && !self.on_demand_decided {
                if !self.seek_on_demand_stores() {
                    break;
                }
                continue;
            }
            let (filter, destination) = match &mut self.filter {
                Some(filter) => filter.parts(),
                None => (None, Destination::Sink),
            };
            let mut output =
                Output { sink, destination, continues_row: self.row_returned, begun: &mut self.result.begun };
            let skip_rest_of_row = skip_rest_of_row && at < self.essential_count;
            let step = store.step(&self.row, skip_rest_of_row, &self.blocks, filter, &mut output)?;
            self.blocks.release_taken();
            let step = match step {
                StepOutcome::Cell(step) => step,
                StepOutcome::RowDone => {
                    store.count_row();
                    at += 1;
                    self.result.bytes = 0;
                    continue;
                }
                StepOutcome::Failed(error) => {
                    self.fail(Error::bad_request(error.to_string()));
                    return Ok(None);
                }
            };
            let bytes = match step {
                CellOutcome::Skipped(bytes) => bytes,
                CellOutcome::Written(bytes) => {
                    self.result.cells += 1;
                    self.result.bytes += bytes as u64 + 4;
                    self.subtract_bytes(bytes, limits);
                    if self.result.bytes > self.store_bytes_max {
                        self.fail(self.row_too_big());
                        return Ok(None);
                    }
                    bytes
                }
            };
            let deadline_passed = self.subtract_cost(bytes + CELL_COST, limits);
            let may_split_row = limits.partials && self.filter.as_ref().is_none_or(RowFilter::may_split_row);
            if deadline_passed && !may_split_row {
                self.pending_stop = Some(Stopped::Time);
            }
            let written = matches!(step, CellOutcome::Written(_));
            if let Some(reached) = self.reached_limit(deadline_passed, written, may_split_row, limits) {
                if self.filter.as_ref().is_some_and(|filter| !filter.may_split_row()) {
                    self.fail(Error::bad_request(LIMIT_WITH_ROW_FILTER));
                    return Ok(None);
                }
                self.phase = Phase::LimitReached(at, reached);
                return Ok(None);
            }
            if self.slice_left == 0 {
                self.slice_left = SLICE_COST;
                return Ok(Some(Stopped::Slice));
            }
        }
        self.end_row(limits, sink);
        Ok(None)
    }

    /// Called after the essential stores of the row were read. If the filter has accepted the row,
    /// moves the on-demand stores to the row and returns `true`.
    fn seek_on_demand_stores(&mut self) -> bool {
        self.on_demand_decided = true;
        if !self.filter.as_mut().is_some_and(RowFilter::passes_so_far) {
            return false;
        }
        for store in &mut self.stores[self.essential_count..] {
            store.merge.seek_row(&self.row);
        }
        true
    }

    /// The error for a row that is too big. Source: HBase `StoreScanner.next`.
    fn row_too_big(&self) -> Error {
        let (limit, row) = (self.store_bytes_max, self.row.escape_ascii());
        let what = format!(
            "Max row size allowed: {limit}, but the row is bigger than that, the row info: {row}, already have process \
             row cells = {}",
            self.result.cells
        );
        Error::RowTooBig { what }
    }

    /// Subtracts the bytes of a cell that passed from the limit of bytes, unless the cell is
    /// buffered until the filter has judged the whole row.
    #[inline]
    fn subtract_bytes(&mut self, bytes: usize, limits: &mut Limits) {
        let bytes = bytes as u64 + 4;
        match &mut self.filter {
            Some(filter) => filter.subtract_cell(bytes, limits),
            None => limits.bytes = limits.bytes.saturating_sub(bytes),
        }
    }

    /// Subtracts `cost` and the cost of the filter from the slice. From time to time, checks the
    /// clock. Returns whether it found that the deadline has passed.
    fn subtract_cost(&mut self, cost: usize, limits: &Limits) -> bool {
        let cost = cost + self.filter.as_mut().map_or(0, |filter| filter.scan.take_cost());
        self.slice_left = self.slice_left.saturating_sub(cost);
        self.clock_left = self.clock_left.saturating_sub(cost);
        if self.clock_left > 0 {
            return false;
        }
        self.clock_left = CLOCK_COST;
        limits.deadline.as_ref().is_some_and(|deadline| deadline.has_passed())
    }

    /// The limit that ends the result within its row, if one does. [`Stopped::Results`] is returned
    /// for a full batch.
    fn reached_limit(
        &self,
        deadline_passed: bool,
        written: bool,
        may_split_row: bool,
        limits: &Limits,
    ) -> Option<Stopped> {
        if written
            && self.result.cells >= self.batch
            && self.filter.as_ref().is_none_or(RowFilter::writes_cells)
        {
            return Some(Stopped::Results);
        }
        if written && may_split_row && limits.bytes == 0 {
            return Some(Stopped::Bytes);
        }
        (deadline_passed && may_split_row).then_some(Stopped::Time)
    }

    /// Ends the result where a limit was reached in the row. The result is partial if the row
    /// continues.
    fn end_at_limit(
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
                self.pending_stop = Some(Stopped::Time);
            }
            self.stores[at].count_row();
            self.end_row(limits, sink);
            return Ok(None);
        }
        self.phase = Phase::Row(at);
        self.stores[at].count_row();
        self.end_result(true, limits, sink);
        // A full batch ends its result. It ends the call only if a limit is used up.
        Ok(if reached == Stopped::Results { exhausted_limit(limits) } else { Some(reached) })
    }

    fn end_result(&mut self, partial: bool, limits: &mut Limits, sink: &mut dyn ResultSink) {
        if std::mem::take(&mut self.result).begun {
            sink.end_result(ResultEnd { partial });
            limits.results = limits.results.saturating_sub(1);
            if !self.row_returned {
                self.rows_returned += 1;
            }
            debug_assert!(self.rows_returned <= self.rows_read, "a row that is returned was read");
            self.row_returned = true;
        }
    }

    /// Ends the row: applies the filter to the complete row, ends the result, and leaves the row.
    fn end_row(&mut self, limits: &mut Limits, sink: &mut dyn ResultSink) {
        if let Some(filter) = &mut self.filter {
            self.result.begun = filter.judge_row(self.result.begun, limits, sink);
            filter.end_row();
        }
        let has_final_result = self.result.begun;
        self.end_result(false, limits, sink);
        if self.row_returned {
            if has_final_result {
                limits.rows = limits.rows.saturating_sub(1);
            }
            self.row_uncounted = !has_final_result;
            self.row_returned = false;
            self.pending_stop = self.pending_stop.or_else(|| exhausted_limit(limits));
        }
        self.leave_row();
    }

    /// Leaves the row: the scan is done, or finds the next row.
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

/// Whether `row` lies before the stop row of `scan`, or is the stop row and included.
fn is_before_stop(scan: &Scan, order: CellOrder, row: &[u8]) -> bool {
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

fn exhausted_limit(limits: &Limits) -> Option<Stopped> {
    if limits.rows == 0 {
        return Some(Stopped::Rows);
    }
    if limits.results == 0 {
        return Some(Stopped::Results);
    }
    (limits.bytes == 0).then_some(Stopped::Bytes)
}
