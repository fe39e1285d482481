//! `FamilyFilter`: families by their names.

use cell::Cell;

use super::comparator::Compare;
use super::{Evaluate, FilterResult, ReturnCode};

pub(super) struct Family(pub(super) Compare);

impl Evaluate for Family {
    fn filter_cell(&mut self, cell: &Cell<'_>) -> FilterResult<ReturnCode> {
        Ok(if self.0.fails(cell.family())? { ReturnCode::NextRow } else { ReturnCode::Include })
    }
    fn is_row_local(&self) -> bool {
        true
    }
    fn backtracks(&self) -> bool {
        self.0.backtracks()
    }
}
