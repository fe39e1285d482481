//! `DependentColumnFilter`: cells whose timestamp a cell of the reference column in their row has
//! too.

use std::collections::HashSet;

use cell::Cell;
use cell::filter::Column;

use super::comparator::{Compare, is_in_column};
use super::{Evaluate, FilterResult, ReturnCode};

pub(super) struct DependentColumn {
    column: Column,
    compare: Option<Compare>,
    drop: bool,
    // Timestamps of the reference column in the current row.
    stamps: HashSet<i64>,
}

impl DependentColumn {
    pub(super) fn new(column: Column, compare: Option<Compare>, drop: bool) -> DependentColumn {
        DependentColumn { column, compare, drop, stamps: HashSet::new() }
    }
}

impl Evaluate for DependentColumn {
    fn reset(&mut self) {
        self.stamps.clear();
    }
    fn filter_cell(&mut self, cell: &Cell<'_>) -> FilterResult<ReturnCode> {
        if !is_in_column(cell, &self.column) {
            return Ok(ReturnCode::Include);
        }
        if let Some(compare) = &self.compare
            && compare.fails(cell.value)?
        {
            return Ok(ReturnCode::Skip);
        }
        self.stamps.insert(cell.timestamp());
        Ok(if self.drop { ReturnCode::Skip } else { ReturnCode::Include })
    }
    fn has_filter_row(&self) -> bool {
        true
    }
    fn edits_rows(&self) -> bool {
        true
    }
    fn keeps(&self, cell: &Cell<'_>) -> bool {
        self.stamps.contains(&cell.timestamp())
    }
    fn backtracks(&self) -> bool {
        self.compare.as_ref().is_some_and(Compare::backtracks)
    }
}
