//! `MultipleColumnPrefixFilter`: columns whose qualifiers begin with one of several prefixes.
//!
//! As in HBase, only the greatest prefix that is not after the qualifier counts: with `a` and `ab`,
//! `ac` is excluded.

use bytes::Bytes;
use cell::Cell;

use super::{Evaluate, FilterResult, Hint, ReturnCode};

pub(super) struct MultipleColumnPrefix {
    // Sorted.
    prefixes: Vec<Bytes>,
    // The prefix to seek to.
    next: usize,
}

impl MultipleColumnPrefix {
    pub(super) fn new(prefixes: Vec<Bytes>) -> MultipleColumnPrefix {
        MultipleColumnPrefix { prefixes, next: 0 }
    }
}

impl Evaluate for MultipleColumnPrefix {
    fn filter_cell(&mut self, cell: &Cell<'_>) -> FilterResult<ReturnCode> {
        if self.prefixes.is_empty() {
            return Ok(ReturnCode::Include);
        }
        let after = self.prefixes.partition_point(|prefix| &prefix[..] <= cell.qualifier());
        if after > 0 && cell.qualifier().starts_with(&self.prefixes[after - 1]) {
            return Ok(ReturnCode::Include);
        }
        if after == self.prefixes.len() {
            return Ok(ReturnCode::NextRow);
        }
        self.next = after;
        Ok(ReturnCode::SeekNextUsingHint)
    }
    fn next_hint<'a>(&'a mut self, _cell: &Cell<'_>) -> Option<Hint<'a>> {
        self.prefixes.get(self.next).map(|prefix| Hint::Column(prefix))
    }
    fn is_hinting(&self) -> bool {
        true
    }
}
