//! `SingleColumnValueExcludeFilter`: rows by the value of one column, whose cells are excluded.

use cell::Cell;

use super::comparator::is_in_column;
use super::single_column_value::SingleColumnValue;
use super::{Evaluate, FilterResult, ReturnCode};

pub(super) struct SingleColumnValueExclude(pub(super) SingleColumnValue);

impl Evaluate for SingleColumnValueExclude {
    fn reset(&mut self) {
        self.0.reset();
    }
    fn filter_cell(&mut self, cell: &Cell<'_>) -> FilterResult<ReturnCode> {
        self.0.filter_cell(cell)
    }
    fn filter_row(&mut self) -> bool {
        self.0.filter_row()
    }
    fn has_filter_row(&self) -> bool {
        true
    }
    fn edits_rows(&self) -> bool {
        true
    }
    fn keeps(&self, cell: &Cell<'_>) -> bool {
        !is_in_column(cell, &self.0.column)
    }
    fn is_family_essential(&self, family: &[u8]) -> bool {
        self.0.is_family_essential(family)
    }
    fn backtracks(&self) -> bool {
        self.0.backtracks()
    }
}
