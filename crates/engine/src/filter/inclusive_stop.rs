//! `InclusiveStopFilter`: rows up to and including one.

use std::cmp::Ordering;

use bytes::Bytes;
use cell::Cell;

use super::{Evaluate, FilterResult, ReturnCode};

pub(super) struct InclusiveStop {
    stop: Bytes,
    reversed: bool,
    done: bool,
}

impl InclusiveStop {
    pub(super) fn new(stop: Bytes, reversed: bool) -> InclusiveStop {
        InclusiveStop { stop, reversed, done: false }
    }
}

impl Evaluate for InclusiveStop {
    fn filter_row_key(&mut self, row: &[u8]) -> FilterResult<bool> {
        let after = if self.reversed { Ordering::Less } else { Ordering::Greater };
        self.done |= row.cmp(&self.stop) == after;
        Ok(self.done)
    }
    fn filter_cell(&mut self, _cell: &Cell<'_>) -> FilterResult<ReturnCode> {
        Ok(if self.done { ReturnCode::NextRow } else { ReturnCode::Include })
    }
    fn filter_all_remaining(&self) -> bool {
        self.done
    }
    fn may_end(&self) -> bool {
        true
    }
}
