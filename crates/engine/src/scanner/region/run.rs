//! Rows that one file alone has, one behind the other in one block: they are walked through, without a look at other
//! sources, at the block's end or at the stop row for each.
//!
//! Rules and filter judge each cell as always ([`Judge`](crate::scanner::judge::Judge)). A row is walked through only if it
//! surely ends before any limit: where a limit shows in the midst of a row, the row is taken back and left to the common way,
//! which knows how to cut it. Therefore a filter must say the same of a row when it is shown again.

use cell::key;
use hfile::{LARGE_VALUE_LEN, Run};

use super::{CELL_COST, RegionScanner, SLICE_BYTES};
use crate::scanner::judge::{Judgement, Step};
use crate::scanner::matcher::Match;
use crate::scanner::output::{Output, Way};
use crate::scanner::row_filter::RowKey;
use crate::scanner::sink::{Limits, ResultSink, Stopped};

/// What a cell costs here, as a part of what it costs where each is sought.
const COST_PART: usize = 4;

/// What became of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Walked {
    /// It is behind.
    Whole,
    /// It is left as it was.
    Left,
}

impl RegionScanner {
    /// Walks through rows as long as there are such. Says why the call ends, if it does.
    pub(super) fn walk_rows(&mut self, limits: &mut Limits, sink: &mut dyn ResultSink) -> Option<Stopped> {
        if !self.walks || self.row_uncounted || self.pending.is_some() || !has_room(limits) {
            return None;
        }
        let mut run = self.stores[0].merge.run(&self.scan.stop_row)?;
        let mut stopped = None;
        while stopped.is_none() && self.pending.is_none() {
            if !has_room(limits) || self.walk_row(&mut run, limits, sink) == Walked::Left {
                break;
            }
            if self.slice_left == 0 {
                self.slice_left = SLICE_BYTES;
                stopped = Some(Stopped::Slice);
            }
        }
        self.stores[0].merge.resume(&run);
        stopped
    }

    fn walk_row(&mut self, run: &mut Run, limits: &mut Limits, sink: &mut dyn ResultSink) -> Walked {
        let start = run.place();
        let Some(cell) = run.cell() else { return Walked::Left };
        self.row.clear();
        self.row.extend_from_slice(cell.row());
        self.stores[0].begin_row();
        self.row_returned = false;
        let key = self.filter.as_mut().map_or(Ok(RowKey::Passes), |filter| filter.begin_row(&self.row));
        let bytes_before = limits.bytes;
        let walked = match key {
            Ok(RowKey::Passes) => self.walk_cells(run, limits, sink),
            Ok(RowKey::Filtered) => self.pass_row(run),
            Ok(RowKey::FilteredButLookedAt | RowKey::Last) | Err(_) => Walked::Left,
        };
        if walked == Walked::Left {
            run.go_back(start);
            limits.bytes = bytes_before;
            if std::mem::take(&mut self.result).begun {
                sink.rollback_row();
            }
            if let Some(filter) = &mut self.filter {
                filter.end_row();
            }
            return Walked::Left;
        }
        self.rows_seen += 1;
        self.stores[0].note_walked(self.result.cells > 0);
        self.end_row(limits, sink);
        if self.charge((run.bytes_since(start) + CELL_COST) / COST_PART, limits) {
            self.pending = Some(Stopped::Time);
        }
        Walked::Whole
    }

    /// Judges the cells of the row, at the first of which the run is, and writes those that pass.
    #[inline]
    fn walk_cells(&mut self, run: &mut Run, limits: &mut Limits, sink: &mut dyn ResultSink) -> Walked {
        while let Some(cell) = run.cell() {
            if cell.value.len() >= LARGE_VALUE_LEN {
                // It may be kept, which is for who has time to ask.
                return Walked::Left;
            }
            let (filter, way) = match &mut self.filter {
                Some(filter) => filter.parts(),
                None => (None, Way::Sink),
            };
            let mut output = Output { sink, way, goes_on: false, begun: &mut self.result.begun };
            let Judgement::Step(step, verdict) = self.stores[0].judge.judge(&cell, filter, &mut output)
            else {
                return Walked::Left;
            };
            if self.filter.as_ref().is_some_and(|filter| filter.scan.cost() > SLICE_BYTES) {
                // Others are to have their turn within the row, and in all that follow.
                self.walks = false;
                return Walked::Left;
            }
            if let Step::Written(bytes) = step {
                self.result.cells += 1;
                self.result.bytes += bytes as u64 + 4;
                self.take_off(bytes, limits);
                if limits.bytes == 0
                    || self.result.cells >= self.batch
                    || self.result.bytes > self.row_bytes_max
                {
                    return Walked::Left;
                }
            }
            match verdict {
                Match::Include | Match::Skip => run.next(),
                Match::IncludeAndNextColumn | Match::NextColumn => self.pass_column(run),
                Match::IncludeAndNextRow | Match::NextRow => return self.pass_row(run),
            }
            if !self.is_in_row(run) {
                break;
            }
        }
        Walked::Whole
    }

    #[inline]
    fn is_in_row(&self, run: &Run) -> bool {
        run.cell().is_some_and(|cell| key::is_same_row(cell.row(), &self.row))
    }

    /// Goes behind the current column, or to the next one wanted.
    fn pass_column(&self, run: &mut Run) {
        let start = run.place();
        run.next();
        let Some(from) = run.cell_at(start).filter(|cell| !cell.qualifier().is_empty()) else {
            // Markers of the whole family may follow among the versions of the empty qualifier.
            return;
        };
        let (column, hint) = (key::column_part(from.key).len(), self.stores[0].judge.hint());
        while let (Some(from), Some(cell)) = (run.cell_at(start), run.cell()) {
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
            run.next();
        }
    }

    /// Goes behind the current row, which the run is in.
    #[inline]
    fn pass_row(&self, run: &mut Run) -> Walked {
        run.next();
        while self.is_in_row(run) {
            run.next();
        }
        Walked::Whole
    }
}

/// Whether there is room for more than a row. What ends with the next one is for the common way to tell.
fn has_room(limits: &Limits) -> bool {
    limits.rows > 1 && limits.results > 1
}
