//! `ColumnPaginationFilter`: a limited number of columns of each row, from an offset or a column
//! on.

use cell::Cell;
use cell::filter::PageStart;

use super::{Evaluate, FilterResult, Hint, ReturnCode};

pub(super) struct ColumnPagination {
    limit: i32,
    from: PageStart,
    count: i32,
}

impl ColumnPagination {
    pub(super) fn new(limit: i32, from: PageStart) -> ColumnPagination {
        ColumnPagination { limit, from, count: 0 }
    }
}

impl Evaluate for ColumnPagination {
    fn reset(&mut self) {
        self.count = 0;
    }
    fn filter_cell(&mut self, cell: &Cell<'_>) -> FilterResult<ReturnCode> {
        let code = match &self.from {
            PageStart::Column(_) if self.count >= self.limit => return Ok(ReturnCode::NextRow),
            PageStart::Column(column) if self.count == 0 && cell.qualifier() < &column[..] => {
                return Ok(ReturnCode::SeekNextUsingHint);
            }
            PageStart::Column(_) => ReturnCode::IncludeAndNextCol,
            // Wraps like Java's sum of two ints.
            PageStart::Offset(offset) if self.count >= offset.wrapping_add(self.limit) => {
                return Ok(ReturnCode::NextRow);
            }
            PageStart::Offset(offset) if self.count < *offset => ReturnCode::NextCol,
            PageStart::Offset(_) => ReturnCode::IncludeAndNextCol,
        };
        self.count += 1;
        Ok(code)
    }
    fn next_hint<'a>(&'a mut self, _cell: &Cell<'_>) -> Option<Hint<'a>> {
        match &self.from {
            PageStart::Column(column) => Some(Hint::Column(column)),
            PageStart::Offset(_) => None,
        }
    }
}
