//! `QualifierFilter`: columns by their qualifiers.

use cell::Cell;

use super::comparator::Compare;
use super::{Evaluate, FilterResult, ReturnCode};

pub(super) struct Qualifier(pub(super) Compare);

impl Evaluate for Qualifier {
    fn filter_cell(&mut self, cell: &Cell<'_>) -> FilterResult<ReturnCode> {
        Ok(if self.0.fails(cell.qualifier())? { ReturnCode::Skip } else { ReturnCode::Include })
    }
    fn is_row_local(&self) -> bool {
        true
    }
    fn backtracks(&self) -> bool {
        self.0.backtracks()
    }
}
