//! `TimestampsFilter`: cells with given timestamps.

use cell::Cell;

use super::{Evaluate, FilterResult, Hint, ReturnCode};

pub(super) struct Timestamps {
    // Sorted.
    timestamps: Vec<i64>,
    can_hint: bool,
}

impl Timestamps {
    pub(super) fn new(timestamps: Vec<i64>, can_hint: bool) -> Timestamps {
        Timestamps { timestamps, can_hint }
    }
}

impl Evaluate for Timestamps {
    fn filter_cell(&mut self, cell: &Cell<'_>) -> FilterResult<ReturnCode> {
        let timestamp = cell.timestamp();
        if self.timestamps.binary_search(&timestamp).is_ok() {
            return Ok(ReturnCode::Include);
        }
        // The remaining versions are even older.
        if timestamp < self.timestamps.first().copied().unwrap_or(i64::MAX) {
            return Ok(ReturnCode::NextCol);
        }
        Ok(if self.can_hint { ReturnCode::SeekNextUsingHint } else { ReturnCode::Skip })
    }
    fn next_hint<'a>(&'a mut self, cell: &Cell<'_>) -> Option<Hint<'a>> {
        if !self.can_hint {
            return None;
        }
        let older = self.timestamps.partition_point(|timestamp| *timestamp < cell.timestamp());
        Some(older.checked_sub(1).map_or(Hint::ColumnEnd, |at| Hint::Version(self.timestamps[at])))
    }
    fn is_hinting(&self) -> bool {
        true
    }
}
