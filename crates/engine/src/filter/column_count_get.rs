//! `ColumnCountGetFilter`: so many columns, then the end: meant for gets. Scans it ends family by family of a region.

use cell::Cell;

use super::{Evaluate, Judged, ReturnCode};

pub(super) struct ColumnCountGet {
    pub(super) limit: i32,
    pub(super) count: i32,
}

impl Evaluate for ColumnCountGet {
    fn reset(&mut self) {
        self.count = 0;
    }
    fn filter_row_key(&mut self, _row: &[u8]) -> Judged<bool> {
        Ok(self.filter_all_remaining())
    }
    fn filter_cell(&mut self, _cell: &Cell<'_>) -> Judged<ReturnCode> {
        self.count = self.count.saturating_add(1);
        let code =
            if self.filter_all_remaining() { ReturnCode::NextCol } else { ReturnCode::IncludeAndNextCol };
        Ok(code)
    }
    fn filter_all_remaining(&self) -> bool {
        self.count > self.limit
    }
    fn may_end(&self) -> bool {
        true
    }
}
