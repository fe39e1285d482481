//! `WhileMatchFilter`: everything up to the first row or cell that does not pass the inner filter.

use cell::Cell;

use super::{Evaluate, FilterResult, Node, ReturnCode, ValueForm};

pub(super) struct WhileMatch {
    inner: Box<Node>,
    done: bool,
}

impl WhileMatch {
    pub(super) fn new(inner: Node) -> WhileMatch {
        WhileMatch { inner: Box::new(inner), done: false }
    }
}

impl Evaluate for WhileMatch {
    fn reset(&mut self) {
        self.inner.reset();
    }
    fn filter_row_key(&mut self, row: &[u8]) -> FilterResult<bool> {
        if self.filter_all_remaining() {
            return Ok(true);
        }
        let filtered = self.inner.filter_row_key(row)?;
        self.done |= filtered;
        Ok(filtered)
    }
    fn filter_cell(&mut self, cell: &Cell<'_>) -> FilterResult<ReturnCode> {
        let code = self.inner.filter_cell(cell)?;
        self.done |= code != ReturnCode::Include;
        Ok(code)
    }
    fn filter_all_remaining(&self) -> bool {
        self.done || self.inner.filter_all_remaining()
    }
    fn filter_row(&mut self) -> bool {
        let filtered = self.inner.filter_row();
        self.done |= filtered;
        filtered
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
    fn may_end(&self) -> bool {
        true
    }
    fn sees_skipped_rows(&self) -> bool {
        true
    }
    fn backtracks(&self) -> bool {
        self.inner.backtracks()
    }
}
