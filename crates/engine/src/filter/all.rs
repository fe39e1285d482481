//! `FilterAllFilter`: nothing passes. HBase's PerformanceEvaluation sends it; its class is one of HBase's tests.

use cell::Cell;

use super::{Evaluate, Judged, ReturnCode};

pub(super) struct All;

impl Evaluate for All {
    fn filter_cell(&mut self, _cell: &Cell<'_>) -> Judged<ReturnCode> {
        Ok(ReturnCode::Skip)
    }
    fn filter_row(&mut self) -> bool {
        true
    }
    fn has_filter_row(&self) -> bool {
        true
    }
}
