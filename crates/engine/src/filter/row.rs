//! `RowFilter`: rows by their keys.

use cell::Cell;

use super::comparator::Compare;
use super::{Evaluate, FilterResult, ReturnCode};

pub(super) struct Row {
    compare: Compare,
    filter_out_row: bool,
}

impl Row {
    pub(super) fn new(compare: Compare) -> Row {
        Row { compare, filter_out_row: false }
    }
}

impl Evaluate for Row {
    fn reset(&mut self) {
        self.filter_out_row = false;
    }
    fn filter_row_key(&mut self, row: &[u8]) -> FilterResult<bool> {
        self.filter_out_row |= self.compare.fails(row)?;
        Ok(self.filter_out_row)
    }
    fn filter_cell(&mut self, _cell: &Cell<'_>) -> FilterResult<ReturnCode> {
        Ok(if self.filter_out_row { ReturnCode::NextRow } else { ReturnCode::Include })
    }
    fn filter_row(&mut self) -> bool {
        self.filter_out_row
    }
    fn is_row_local(&self) -> bool {
        true
    }
    fn backtracks(&self) -> bool {
        self.compare.backtracks()
    }
}
