//! `PageFilter`: a limited number of rows of each region; the client counts those of all regions.

use cell::Cell;

use super::{Evaluate, FilterResult, ReturnCode};

pub(super) struct Page {
    pub(super) page_size: i64,
    pub(super) rows_accepted: i64,
}

impl Evaluate for Page {
    fn filter_row_key(&mut self, _row: &[u8]) -> FilterResult<bool> {
        Ok(self.filter_all_remaining())
    }
    fn filter_cell(&mut self, _cell: &Cell<'_>) -> FilterResult<ReturnCode> {
        Ok(ReturnCode::Include)
    }
    fn filter_all_remaining(&self) -> bool {
        self.rows_accepted >= self.page_size
    }
    fn filter_row(&mut self) -> bool {
        self.rows_accepted += 1;
        self.rows_accepted > self.page_size
    }
    fn has_filter_row(&self) -> bool {
        true
    }
    fn may_end(&self) -> bool {
        true
    }
}
