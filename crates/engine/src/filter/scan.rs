//! A filter as a scan uses it. Properties of the whole tree are computed once.

use std::sync::Arc;

use base::env::Clock;
use cell::Cell;
use cell::filter::Filter;

use super::node::Node;
use super::sampler::Sampler;
use super::{Evaluate, FilterResult, Hint, ReturnCode, ValueForm};
use crate::error::Result;

/// The filter of one scan of one region.
pub struct ScanFilter {
    root: Node,
    has_filter_row: bool,
    edits_rows: bool,
    may_end: bool,
    sees_skipped_rows: bool,
    is_row_local: bool,
    backtracks: bool,
    sampler: Option<Sampler>,
    // Cost of an evaluation, the additional cost of each byte of a cell, and the cost of all
    // evaluations since the last `take_cost`.
    evaluation_cost: usize,
    byte_cost: usize,
    cost: usize,
}

/// Cost of evaluating an element of a filter, in bytes of cells that take as long to read.
const ELEMENT_COST: usize = 4;
/// Cost of an evaluation from which a filter runs on low-priority threads: half a millisecond or
/// more.
const SLOW_COST: usize = 100_000;

impl ScanFilter {
    /// A filter before its first row. `seed` is for filters that choose at random.
    ///
    /// # Errors
    /// [`Error::BadRequest`](crate::error::Error::BadRequest) for comparators that cannot be
    /// evaluated as in HBase.
    pub fn new(filter: &Filter, reversed: bool, seed: u64) -> Result<ScanFilter> {
        let root = Node::new(filter, reversed, seed)?;
        let size = filter.size();
        Ok(ScanFilter {
            evaluation_cost: size.elements * ELEMENT_COST,
            byte_cost: size.texts,
            cost: 0,
            has_filter_row: root.has_filter_row(),
            edits_rows: root.edits_rows(),
            may_end: root.may_end(),
            sees_skipped_rows: root.sees_skipped_rows(),
            is_row_local: root.is_row_local(),
            backtracks: root.backtracks(),
            root,
            sampler: None,
        })
    }

    /// Samples the time of its evaluations by `clock`, and adds it to the account of the current
    /// call.
    pub fn sample(&mut self, clock: Arc<dyn Clock>) {
        self.sampler = Some(Sampler::new(clock));
    }

    /// Whether rows are evaluated when they are complete. The scan must then not split rows into
    /// batches.
    pub fn has_filter_row(&self) -> bool {
        self.has_filter_row
    }

    /// Whether [`keeps`](ScanFilter::keeps) excludes cells of complete rows.
    pub fn edits_rows(&self) -> bool {
        self.edits_rows
    }

    /// Whether it must evaluate cells even of rows that were skipped by key.
    pub fn sees_skipped_rows(&self) -> bool {
        self.sees_skipped_rows
    }

    /// Whether the verdict on a row depends on that row alone, and the filter never hints.
    pub fn is_row_local(&self) -> bool {
        self.is_row_local && !self.edits_rows && !self.may_end && !self.sees_skipped_rows
    }

    /// Whether cells of `family` affect which rows pass.
    pub fn is_family_essential(&self, family: &[u8]) -> bool {
        self.root.is_family_essential(family)
    }

    /// Whether nothing can pass any more.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.may_end && self.root.filter_all_remaining()
    }

    /// Whether to skip a row, by its key.
    ///
    /// # Errors
    /// [`FilterError`](super::FilterError), as for all methods that compare.
    pub fn filter_row_key(&mut self, row: &[u8]) -> FilterResult<bool> {
        if self.is_done() {
            return Ok(true);
        }
        // Twice, because each element is also reset after the row.
        self.cost += 2 * self.evaluation_cost;
        Sampler::evaluate(&mut self.sampler, || self.root.filter_row_key(row))
    }

    /// The verdict on a cell.
    ///
    /// # Errors
    /// [`FilterError`](super::FilterError).
    #[inline]
    pub fn filter_cell(&mut self, cell: &Cell<'_>) -> FilterResult<ReturnCode> {
        self.cost += self.evaluation_cost + self.byte_cost * (cell.key.len() + cell.value.len());
        Sampler::evaluate(&mut self.sampler, || self.root.filter_cell(cell))
    }

    /// Cost of the evaluations since the last call of this method, in bytes of cells that take as
    /// long to read.
    #[inline]
    pub fn take_cost(&mut self) -> usize {
        let measured = self.sampler.as_mut().map_or(0, Sampler::take_cost);
        std::mem::take(&mut self.cost).max(measured)
    }

    /// Estimated cost of the evaluations since the last [`take_cost`](ScanFilter::take_cost).
    #[inline]
    pub fn cost(&self) -> usize {
        self.cost
    }

    /// Whether single evaluations take so long that they delay other calls of the thread.
    pub fn is_slow(&self) -> bool {
        self.backtracks
            || self.evaluation_cost >= SLOW_COST
            || self.sampler.as_ref().is_some_and(Sampler::is_slow)
    }

    /// Where to seek from the cell that was evaluated last.
    pub fn next_hint<'a>(&'a mut self, cell: &Cell<'_>) -> Option<Hint<'a>> {
        self.root.next_hint(cell)
    }

    /// Transforms the value of the cell that was included last.
    #[inline]
    pub fn transform(&self, cell: &Cell<'_>) -> ValueForm {
        self.root.transform(ValueForm::Whole(cell.value.len() as u32))
    }

    /// Whether a cell of a complete row stays in it.
    pub fn keeps(&self, cell: &Cell<'_>) -> bool {
        self.root.keeps(cell)
    }

    /// Whether to drop a complete row that has cells.
    pub fn filter_row(&mut self) -> bool {
        Sampler::evaluate(&mut self.sampler, || self.root.filter_row())
    }

    /// Called after each row.
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
