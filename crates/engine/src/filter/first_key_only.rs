//! `FirstKeyOnlyFilter`: the first cell of each row; how rows are counted.

use cell::Cell;

use super::{Evaluate, Judged, ReturnCode};

pub(super) struct FirstKeyOnly {
    pub(super) found: bool,
}

impl Evaluate for FirstKeyOnly {
    fn reset(&mut self) {
        self.found = false;
    }
    fn filter_cell(&mut self, _cell: &Cell<'_>) -> Judged<ReturnCode> {
        let found = std::mem::replace(&mut self.found, true);
        Ok(if found { ReturnCode::NextRow } else { ReturnCode::Include })
    }
    fn judges_rows_apart(&self) -> bool {
        true
    }
}
