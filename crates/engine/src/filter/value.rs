//! `ValueFilter`: cells by their values.

use cell::Cell;

use super::comparator::Compare;
use super::{Evaluate, Judged, ReturnCode};

pub(super) struct Value(pub(super) Compare);

impl Evaluate for Value {
    fn filter_cell(&mut self, cell: &Cell<'_>) -> Judged<ReturnCode> {
        Ok(if self.0.fails(cell.value)? { ReturnCode::Skip } else { ReturnCode::Include })
    }
    fn judges_rows_apart(&self) -> bool {
        true
    }
    fn backtracks(&self) -> bool {
        self.0.backtracks()
    }
}
