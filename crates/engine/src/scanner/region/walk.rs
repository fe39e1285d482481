//! The fast path of a scan: reads rows without a merge if only one file has them, within one block.
//!
//! Such rows come as a [`RowSlice`]. The rules and the filter judge each cell as usual
//! ([`Judge`](crate::scanner::judge::Judge)), but no other source, block end or stop row is
//! checked. A row is read here only if it ends before every limit. If a limit is reached within a
//! row, the row is rolled back and left to the general path, which can cut it. A filter must
//! therefore judge a row the same way when it sees it again.

use cell::key;
use hfile::{LARGE_VALUE_LEN, RowSlice};

use super::{CELL_COST, RegionScanner, SLICE_COST};
use crate::scanner::judge::{CellOutcome, Judgement};
use crate::scanner::matcher::Match;
use crate::scanner::output::{Destination, Output};
use crate::scanner::row_filter::RowKeyVerdict;
use crate::scanner::sink::{Limits, ResultSink, Stopped};

/// A cell costs 1/N of a cell on the general path.
const COST_DIVISOR: usize = 4;

/// The outcome of reading one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WalkOutcome {
    /// The row is complete.
    Whole,
    /// The row was rolled back, for the general path.
    RolledBack,
}

impl RegionScanner {
    /// Reads rows while the fast path applies. Returns why the call ends, if it does.
    pub(super) fn read_rows_fast(
        &mut self,
        limits: &mut Limits,
        sink: &mut dyn ResultSink,
    ) -> Option<Stopped> {
        if !self.fast_path_allowed || self.row_uncounted || self.pending_stop.is_some() || !has_room(limits) {
            return None;
        }
        debug_assert!(self.stores.len() == 1 && !self.scan.reversed, "the fast path reads one store forward");
        let mut slice = self.stores[0].merge.row_slice(&self.scan.stop_row)?;
        let mut stopped = None;
        while stopped.is_none() && self.pending_stop.is_none() {
            if !has_room(limits) || self.walk_row(&mut slice, limits, sink) == WalkOutcome::RolledBack {
                break;
            }
            if self.slice_left == 0 {
                self.slice_left = SLICE_COST;
                stopped = Some(Stopped::Slice);
            }
        }
        self.stores[0].merge.resume(&slice);
        stopped
    }

    fn walk_row(
        &mut self,
        slice: &mut RowSlice,
        limits: &mut Limits,
        sink: &mut dyn ResultSink,
    ) -> WalkOutcome {
        let start = slice.position();
        let Some(cell) = slice.cell() else { return WalkOutcome::RolledBack };
        self.row.clear();
        self.row.extend_from_slice(cell.row());
        self.stores[0].begin_row();
        self.row_returned = false;
        let key =
            self.filter.as_mut().map_or(Ok(RowKeyVerdict::Passes), |filter| filter.begin_row(&self.row));
        let bytes_before = limits.bytes;
        let walked = match key {
            Ok(RowKeyVerdict::Passes) => self.walk_cells(slice, limits, sink),
            Ok(RowKeyVerdict::Filtered) => self.pass_row(slice),
            Ok(RowKeyVerdict::FilteredButEvaluated | RowKeyVerdict::EndsScan) | Err(_) => {
                WalkOutcome::RolledBack
            }
        };
        if walked == WalkOutcome::RolledBack {
            slice.return_to(start);
            limits.bytes = bytes_before;
            if std::mem::take(&mut self.result).begun {
                sink.rollback_row();
            }
            if let Some(filter) = &mut self.filter {
                filter.end_row();
            }
            return WalkOutcome::RolledBack;
        }
        self.rows_read += 1;
        self.stores[0].count_walked_row(self.result.cells > 0);
        self.end_row(limits, sink);
        if self.subtract_cost((slice.bytes_since(start) + CELL_COST) / COST_DIVISOR, limits) {
            self.pending_stop = Some(Stopped::Time);
        }
        WalkOutcome::Whole
    }

    /// Judges the cells of the row from its first one on, and writes those that pass.
    #[inline]
    fn walk_cells(
        &mut self,
        slice: &mut RowSlice,
        limits: &mut Limits,
        sink: &mut dyn ResultSink,
    ) -> WalkOutcome {
        while let Some(cell) = slice.cell() {
            if cell.value.len() >= LARGE_VALUE_LEN {
                // The general path decides whether the result shares the memory of the block.
                return WalkOutcome::RolledBack;
            }
            let (filter, destination) = match &mut self.filter {
                Some(filter) => filter.parts(),
                None => (None, Destination::Sink),
            };
            let mut output =
                Output { sink, destination, continues_row: false, begun: &mut self.result.begun };
            let Judgement::Decided(step, verdict) = self.stores[0].judge.judge(&cell, filter, &mut output)
            else {
                return WalkOutcome::RolledBack;
            };
            if self.filter.as_ref().is_some_and(|filter| filter.scan.cost() > SLICE_COST) {
                // The filter is slow, so the scan must pause within rows, which only the general
                // path does.
                self.fast_path_allowed = false;
                return WalkOutcome::RolledBack;
            }
            if let CellOutcome::Written(bytes) = step {
                self.result.cells += 1;
                self.result.bytes += bytes as u64 + 4;
                self.subtract_bytes(bytes, limits);
                if limits.bytes == 0
                    || self.result.cells >= self.batch
                    || self.result.bytes > self.store_bytes_max
                {
                    return WalkOutcome::RolledBack;
                }
            }
            match verdict {
                Match::Include | Match::Skip => slice.next(),
                Match::IncludeAndNextColumn | Match::NextColumn => self.pass_column(slice),
                Match::IncludeAndNextRow | Match::NextRow => return self.pass_row(slice),
            }
            if !self.is_in_row(slice) {
                break;
            }
        }
        WalkOutcome::Whole
    }

    #[inline]
    fn is_in_row(&self, slice: &RowSlice) -> bool {
        slice.cell().is_some_and(|cell| key::is_same_row(cell.row(), &self.row))
    }

    /// Moves past the current column, or to the next wanted one.
    fn pass_column(&self, slice: &mut RowSlice) {
        let start = slice.position();
        slice.next();
        let Some(from) = slice.cell_at(start).filter(|cell| !cell.qualifier().is_empty()) else {
            // The column of the empty qualifier is not skipped: markers of the whole family, which
            // must be judged, may be among its versions.
            return;
        };
        let (column, hint) = (key::column_part(from.key).len(), self.stores[0].judge.hint());
        while let (Some(from), Some(cell)) = (slice.cell_at(start), slice.cell()) {
            let is_passed = match hint {
                None => key::column_part(cell.key) == &from.key[..column],
                Some(hint) => {
                    key::is_same_row(cell.row(), &self.row)
                        && cell.family() == from.family()
                        && cell.qualifier() < hint
                }
            };
            if !is_passed {
                return;
            }
            slice.next();
        }
    }

    /// Moves past the current row.
    #[inline]
    fn pass_row(&self, slice: &mut RowSlice) -> WalkOutcome {
        slice.next();
        while self.is_in_row(slice) {
            slice.next();
        }
        WalkOutcome::Whole
    }
}

/// Whether the limits allow more than one row. If not, the general path reports the limit.
fn has_room(limits: &Limits) -> bool {
    limits.rows > 1 && limits.results > 1
}
