//! `PrefixFilter`: rows that begin with a prefix.

use std::cmp::Ordering;

use bytes::Bytes;
use cell::Cell;

use super::{Evaluate, FilterResult, ReturnCode};

pub(super) struct Prefix {
    prefix: Option<Bytes>,
    reversed: bool,
    passed_prefix: bool,
    filter_row: bool,
}

impl Prefix {
    pub(super) fn new(prefix: Option<Bytes>, reversed: bool) -> Prefix {
        Prefix { prefix, reversed, passed_prefix: false, filter_row: true }
    }
}

impl Evaluate for Prefix {
    fn reset(&mut self) {
        self.filter_row = true;
    }
    fn filter_row_key(&mut self, row: &[u8]) -> FilterResult<bool> {
        let Some(prefix) = self.prefix.as_ref().filter(|_| !self.passed_prefix) else {
            return Ok(true);
        };
        // A shorter row is excluded wherever it is, but does not end the scan.
        let Some(start) = row.get(..prefix.len()) else {
            return Ok(true);
        };
        let order = start.cmp(prefix);
        self.passed_prefix = order == if self.reversed { Ordering::Less } else { Ordering::Greater };
        self.filter_row = order.is_ne();
        Ok(self.filter_row)
    }
    fn filter_cell(&mut self, _cell: &Cell<'_>) -> FilterResult<ReturnCode> {
        Ok(if self.filter_row { ReturnCode::NextRow } else { ReturnCode::Include })
    }
    fn filter_all_remaining(&self) -> bool {
        self.passed_prefix
    }
    fn filter_row(&mut self) -> bool {
        self.filter_row
    }
    fn may_end(&self) -> bool {
        true
    }
}
