//! `SkipFilter`: rows in which every cell passes the inner filter.
//!
//! As in HBase, the inner filter does not see row keys, gives no hints, and does not end the scan.

use cell::Cell;

use super::{Evaluate, FilterResult, Node, ReturnCode, ValueForm};

pub(super) struct Skip {
    inner: Box<Node>,
    filter_row: bool,
}

impl Skip {
    pub(super) fn new(inner: Node) -> Skip {
        Skip { inner: Box::new(inner), filter_row: false }
    }
}

impl Evaluate for Skip {
    fn reset(&mut self) {
        self.inner.reset();
        self.filter_row = false;
    }
    fn filter_cell(&mut self, cell: &Cell<'_>) -> FilterResult<ReturnCode> {
        let code = self.inner.filter_cell(cell)?;
        self.filter_row |= code != ReturnCode::Include;
        Ok(code)
    }
    fn filter_row(&mut self) -> bool {
        self.filter_row
    }
    fn has_filter_row(&self) -> bool {
        true
    }
    fn transform(&self, value: ValueForm) -> ValueForm {
        self.inner.transform(value)
    }
    fn is_family_essential(&self, family: &[u8]) -> bool {
        self.inner.is_family_essential(family)
    }
    fn sees_skipped_rows(&self) -> bool {
        self.inner.sees_skipped_rows()
    }
    fn is_row_local(&self) -> bool {
        self.inner.is_row_local()
    }
    fn backtracks(&self) -> bool {
        self.inner.backtracks()
    }
}
