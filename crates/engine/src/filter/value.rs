//! `ValueFilter`: cells by their values.

use cell::Cell;

use super::comparator::Compare;
use super::{Evaluate, FilterResult, ReturnCode};

pub(super) struct Value(pub(super) Compare);

impl Evaluate for Value {
    fn filter_cell(&mut self, cell: &Cell<'_>) -> FilterResult<ReturnCode> {
        Ok(if self.0.fails(cell.value)? { ReturnCode::Skip } else { ReturnCode::Include })
    }
    fn is_row_local(&self) -> bool {
        true
    }
    fn backtracks(&self) -> bool {
        self.0.backtracks()
    }
}
