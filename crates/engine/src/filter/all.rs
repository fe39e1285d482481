//! `FilterAllFilter`: nothing passes. HBase's PerformanceEvaluation uses it; its class belongs to
//! HBase's tests.

use cell::Cell;

use super::{Evaluate, FilterResult, ReturnCode};

pub(super) struct All;

impl Evaluate for All {
    fn filter_cell(&mut self, _cell: &Cell<'_>) -> FilterResult<ReturnCode> {
        Ok(ReturnCode::Skip)
    }
    fn filter_row(&mut self) -> bool {
        true
    }
    fn has_filter_row(&self) -> bool {
        true
    }
}
