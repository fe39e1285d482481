//! `FirstKeyOnlyFilter`: the first cell of each row; used to count rows.

use cell::Cell;

use super::{Evaluate, FilterResult, ReturnCode};

pub(super) struct FirstKeyOnly {
    pub(super) found: bool,
}

impl Evaluate for FirstKeyOnly {
    fn reset(&mut self) {
        self.found = false;
    }
    fn filter_cell(&mut self, _cell: &Cell<'_>) -> FilterResult<ReturnCode> {
        let found = std::mem::replace(&mut self.found, true);
        Ok(if found { ReturnCode::NextRow } else { ReturnCode::Include })
    }
    fn is_row_local(&self) -> bool {
        true
    }
}
