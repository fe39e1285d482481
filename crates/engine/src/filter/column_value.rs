//! `ColumnValueFilter`: only cells of one column, by value.

use cell::Cell;
use cell::filter::Column;

use super::comparator::{Compare, is_in_column};
use super::{Evaluate, FilterResult, ReturnCode};

pub(super) struct ColumnValue {
    column: Column,
    compare: Compare,
    column_found: bool,
}

impl ColumnValue {
    pub(super) fn new(column: Column, compare: Compare) -> ColumnValue {
        ColumnValue { column, compare, column_found: false }
    }
}

impl Evaluate for ColumnValue {
    fn reset(&mut self) {
        self.column_found = false;
    }
    fn filter_cell(&mut self, cell: &Cell<'_>) -> FilterResult<ReturnCode> {
        if !is_in_column(cell, &self.column) {
            return Ok(if self.column_found { ReturnCode::NextRow } else { ReturnCode::NextCol });
        }
        self.column_found = true;
        Ok(if self.compare.fails(cell.value)? { ReturnCode::Skip } else { ReturnCode::Include })
    }
    fn is_family_essential(&self, family: &[u8]) -> bool {
        self.column.family == family
    }
    fn backtracks(&self) -> bool {
        self.compare.backtracks()
    }
}
