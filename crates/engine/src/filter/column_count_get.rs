//! `ColumnCountGetFilter`: a limited number of columns, then the end. It is meant for Gets; in a
//! scan it ends a region's families one by one.

use cell::Cell;

use super::{Evaluate, FilterResult, ReturnCode};

pub(super) struct ColumnCountGet {
    pub(super) limit: i32,
    pub(super) count: i32,
}

impl Evaluate for ColumnCountGet {
    fn reset(&mut self) {
        self.count = 0;
    }
    fn filter_row_key(&mut self, _row: &[u8]) -> FilterResult<bool> {
        Ok(self.filter_all_remaining())
    }
    fn filter_cell(&mut self, _cell: &Cell<'_>) -> FilterResult<ReturnCode> {
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
