//! `MultiRowRangeFilter`: rows within one of several ranges; the scan jumps from one to the next.
//!
//! Source: HBase `MultiRowRangeFilter`, whose search through the ranges is copied exactly.

use std::cmp::Ordering;

use cell::Cell;
use cell::filter::RowRange;

use super::{Evaluate, FilterResult, Hint, ReturnCode};

pub(super) struct MultiRowRange {
    // In the order of the scan.
    ranges: Vec<RowRange>,
    reversed: bool,
    // The range that the last row is in or comes before.
    at: usize,
    found_first: bool,
    code: ReturnCode,
    done: bool,
}

/// Where a row is relative to the ranges.
enum RangePosition {
    /// Before the first range.
    BeforeFirst,
    /// In this range or before it; after all of them if there is none of this index.
    At(usize),
    /// At the first row of this range, which the range excludes.
    AtExcludedStart(usize),
}

impl MultiRowRange {
    pub(super) fn new(mut ranges: Vec<RowRange>, reversed: bool) -> MultiRowRange {
        if reversed {
            ranges.reverse();
        }
        MultiRowRange { ranges, reversed, at: 0, found_first: false, code: ReturnCode::Include, done: false }
    }

    /// The row at which the scan enters the range, and whether the range includes it.
    fn entry<'a>(&self, range: &'a RowRange) -> (&'a [u8], bool) {
        match self.reversed {
            false => (&range.start, range.start_inclusive),
            true => (&range.stop, range.stop_inclusive),
        }
    }

    fn position(&mut self, row: &[u8]) -> RangePosition {
        let compare = |range: &RowRange| {
            let order = self.entry(range).0.cmp(row);
            if self.reversed { order.reverse() } else { order }
        };
        match binary_search(&self.ranges, compare) {
            Ok(at) if self.entry(&self.ranges[at]).1 => RangePosition::At(at),
            Ok(at) => RangePosition::AtExcludedStart(at),
            Err(at) if at > 0 && self.ranges[at - 1].contains(row) => RangePosition::At(at - 1),
            Err(0) if !self.ranges[0].contains(row) => RangePosition::BeforeFirst,
            Err(at) => {
                self.found_first = true;
                RangePosition::At(at)
            }
        }
    }
}

/// Java's `Collections.binarySearch`. The ranges of a reversed scan are out of order if one has no
/// end; the result then depends on the steps.
fn binary_search(ranges: &[RowRange], compare: impl Fn(&RowRange) -> Ordering) -> Result<usize, usize> {
    let (mut low, mut high) = (0, ranges.len());
    while low < high {
        let middle = (low + high - 1) / 2;
        match compare(&ranges[middle]) {
            Ordering::Less => low = middle + 1,
            Ordering::Greater => high = middle,
            Ordering::Equal => return Ok(middle),
        }
    }
    Err(low)
}

impl Evaluate for MultiRowRange {
    fn filter_row_key(&mut self, row: &[u8]) -> FilterResult<bool> {
        if self.done {
            return Ok(true);
        }
        if self.found_first && self.ranges[self.at].contains(row) {
            self.code = ReturnCode::Include;
            return Ok(false);
        }
        let position = self.position(row);
        let (at, excluded, before) = match position {
            RangePosition::BeforeFirst => (0, false, true),
            RangePosition::At(at) => (at, false, false),
            RangePosition::AtExcludedStart(at) => (at, true, false),
        };
        if at >= self.ranges.len() {
            self.done = true;
            self.code = ReturnCode::NextRow;
            return Ok(false);
        }
        self.at = at;
        if excluded {
            self.code = ReturnCode::NextRow;
            return Ok(false);
        }
        let found_first = std::mem::replace(&mut self.found_first, true);
        let inside = if found_first { self.ranges[at].contains(row) } else { !before };
        self.code = if inside { ReturnCode::Include } else { ReturnCode::SeekNextUsingHint };
        Ok(false)
    }
    fn filter_cell(&mut self, _cell: &Cell<'_>) -> FilterResult<ReturnCode> {
        Ok(self.code)
    }
    fn filter_all_remaining(&self) -> bool {
        self.done
    }
    fn next_hint<'a>(&'a mut self, _cell: &Cell<'_>) -> Option<Hint<'a>> {
        let range = self.ranges.get(self.at)?;
        Some(Hint::Row(if self.reversed { &range.stop } else { &range.start }))
    }
    fn is_hinting(&self) -> bool {
        true
    }
    fn may_end(&self) -> bool {
        true
    }
    fn sees_skipped_rows(&self) -> bool {
        true
    }
}
