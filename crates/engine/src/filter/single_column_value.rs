//! `SingleColumnValueFilter`: rows by the value of one column.

use cell::Cell;
use cell::filter::{Column, CompareOp};

use super::comparator::{Compare, is_in_column};
use super::{Evaluate, FilterError, FilterResult, ReturnCode};

pub(super) struct SingleColumnValue {
    pub(super) column: Column,
    pub(super) compare: Compare,
    pub(super) filter_if_missing: bool,
    pub(super) latest_version_only: bool,
    pub(super) found: bool,
    pub(super) matched: bool,
}

impl Evaluate for SingleColumnValue {
    fn reset(&mut self) {
        self.found = false;
        self.matched = false;
    }
    fn filter_cell(&mut self, cell: &Cell<'_>) -> FilterResult<ReturnCode> {
        if self.matched {
            return Ok(ReturnCode::Include);
        }
        if self.latest_version_only && self.found {
            return Ok(ReturnCode::NextRow);
        }
        if !is_in_column(cell, &self.column) {
            return Ok(ReturnCode::Include);
        }
        self.found = true;
        if self.compare.op == CompareOp::NoOp {
            return Err(FilterError::NoOp);
        }
        if self.compare.fails(cell.value)? {
            let older_may_match = !self.latest_version_only;
            return Ok(if older_may_match { ReturnCode::Include } else { ReturnCode::NextRow });
        }
        self.matched = true;
        Ok(ReturnCode::Include)
    }
    fn filter_row(&mut self) -> bool {
        if self.found { !self.matched } else { self.filter_if_missing }
    }
    fn has_filter_row(&self) -> bool {
        true
    }
    fn is_family_essential(&self, family: &[u8]) -> bool {
        !self.filter_if_missing || self.column.family == family
    }
    fn is_row_local(&self) -> bool {
        true
    }
    fn backtracks(&self) -> bool {
        self.compare.backtracks()
    }
}
