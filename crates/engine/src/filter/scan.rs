//! A filter as a scan uses it: what holds for the whole tree is found out once.

use std::sync::Arc;

use base::env::Clock;
use cell::Cell;
use cell::filter::Filter;

use super::node::Node;
use super::sampler::Sampler;
use super::{Evaluate, Hint, Judged, ReturnCode, ValueForm};
use crate::error::Result;

/// The filter of one scan of one region.
pub struct ScanFilter {
    root: Node,
    has_filter_row: bool,
    edits_rows: bool,
    may_end: bool,
    sees_skipped_rows: bool,
    judges_rows_apart: bool,
    backtracks: bool,
    sampler: Option<Sampler>,
    // What one of its answers costs, and what each byte of a cell adds to that; and what its answers cost since that was
    // taken.
    answer_cost: usize,
    byte_cost: usize,
    cost: usize,
}

/// What an element of a filter costs to ask, in bytes of cells that take as long to read.
const ELEMENT_COST: usize = 4;
/// Cost of an answer from which a filter is asked on threads of low priority: half a millisecond, and more.
const SLOW_COST: usize = 100_000;

impl ScanFilter {
    /// A filter before its first row; `seed` is for those that choose at random.
    ///
    /// # Errors
    /// [`Error::BadRequest`](crate::error::Error::BadRequest) for comparators that cannot be answered as HBase does.
    pub fn new(filter: &Filter, reversed: bool, seed: u64) -> Result<ScanFilter> {
        let root = Node::new(filter, reversed, seed)?;
        let size = filter.size();
        Ok(ScanFilter {
            answer_cost: size.elements * ELEMENT_COST,
            byte_cost: size.texts,
            cost: 0,
            has_filter_row: root.has_filter_row(),
            edits_rows: root.edits_rows(),
            may_end: root.may_end(),
            sees_skipped_rows: root.sees_skipped_rows(),
            judges_rows_apart: root.judges_rows_apart(),
            backtracks: root.backtracks(),
            root,
            sampler: None,
        })
    }

    /// Adds what it takes to the account of the call at work, by `clock`.
    pub fn sample(&mut self, clock: Arc<dyn Clock>) {
        self.sampler = Some(Sampler::new(clock));
    }

    /// Whether rows are judged when they are complete: they must not be cut.
    pub fn has_filter_row(&self) -> bool {
        self.has_filter_row
    }

    /// Whether [`keeps`](ScanFilter::keeps) leaves cells out of complete rows.
    pub fn edits_rows(&self) -> bool {
        self.edits_rows
    }

    /// Whether cells of rows that were passed over by key must be shown to it nevertheless.
    pub fn sees_skipped_rows(&self) -> bool {
        self.sees_skipped_rows
    }

    /// Whether what it says of a row depends on that row alone, and it never hints.
    pub fn judges_rows_apart(&self) -> bool {
        self.judges_rows_apart && !self.edits_rows && !self.may_end && !self.sees_skipped_rows
    }

    /// Whether cells of `family` matter to which rows pass.
    pub fn is_family_essential(&self, family: &[u8]) -> bool {
        self.root.is_family_essential(family)
    }

    /// Whether nothing passes any more.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.may_end && self.root.filter_all_remaining()
    }

    /// Whether a row is passed over by its key.
    ///
    /// # Errors
    /// [`Misfit`](super::Misfit), as from all that compares.
    pub fn filter_row_key(&mut self, row: &[u8]) -> Judged<bool> {
        if self.is_done() {
            return Ok(true);
        }
        // When the row is through, each element forgets it.
        self.cost += 2 * self.answer_cost;
        Sampler::ask(&mut self.sampler, || self.root.filter_row_key(row))
    }

    /// What becomes of a cell.
    ///
    /// # Errors
    /// [`Misfit`](super::Misfit).
    #[inline]
    pub fn filter_cell(&mut self, cell: &Cell<'_>) -> Judged<ReturnCode> {
        self.cost += self.answer_cost + self.byte_cost * (cell.key.len() + cell.value.len());
        Sampler::ask(&mut self.sampler, || self.root.filter_cell(cell))
    }

    /// What its answers cost since this was asked last, in bytes of cells that take as long to read.
    #[inline]
    pub fn take_cost(&mut self) -> usize {
        let measured = self.sampler.as_mut().map_or(0, Sampler::take_cost);
        std::mem::take(&mut self.cost).max(measured)
    }

    /// What its answers cost so far.
    #[inline]
    pub fn cost(&self) -> usize {
        self.cost
    }

    /// Whether single answers take so long that they delay other calls of the thread.
    pub fn is_slow(&self) -> bool {
        self.backtracks
            || self.answer_cost >= SLOW_COST
            || self.sampler.as_ref().is_some_and(Sampler::is_slow)
    }

    /// Where to go from the cell that was judged last.
    pub fn next_hint<'a>(&'a mut self, cell: &Cell<'_>) -> Option<Hint<'a>> {
        self.root.next_hint(cell)
    }

    /// What the value of the cell that was included last becomes.
    #[inline]
    pub fn transform(&self, cell: &Cell<'_>) -> ValueForm {
        self.root.transform(ValueForm::Whole(cell.value.len() as u32))
    }

    /// Whether a cell of a complete row stays in it.
    pub fn keeps(&self, cell: &Cell<'_>) -> bool {
        self.root.keeps(cell)
    }

    /// Whether a complete row that has cells is dropped.
    pub fn filter_row(&mut self) -> bool {
        Sampler::ask(&mut self.sampler, || self.root.filter_row())
    }

    /// A row is behind.
    pub fn reset(&mut self) {
        self.root.reset();
    }
}

#[cfg(test)]
mod tests {
    use base::testing::env;
    use cell::filter::{Comparator, Compare, CompareOp, ListOperator, Pattern};

    use super::*;

    #[test]
    fn backtracking_anywhere_in_a_filter_makes_it_slow() {
        let regex = |source: &str| {
            let (charset, engine) = ("UTF-8".to_string(), String::new());
            let pattern = Pattern { source: source.into(), flags: 0, charset, engine };
            Compare { op: CompareOp::Equal, comparator: Comparator::Regex(pattern) }
        };
        let is_slow = |filter: &Filter| {
            let mut filter = ScanFilter::new(filter, false, 1).unwrap();
            filter.sample(env(1).clock);
            filter.is_slow()
        };
        assert!(!is_slow(&Filter::Row(regex("a+b"))));
        let of_all = [Filter::Row, Filter::Value, Filter::Family, Filter::Qualifier];
        for filter in of_all.map(|of| of(regex("(a)\\1"))) {
            assert!(is_slow(&filter));
            let skip = Filter::Skip(Box::new(filter));
            let (operator, filters) = (ListOperator::MustPassOne, vec![skip]);
            assert!(is_slow(&Filter::WhileMatch(Box::new(Filter::List { operator, filters }))));
        }
    }
}
