//! Aggregation of batches of rows into groups.

use std::sync::Arc;

use crate::aggregate::{Accumulator, Aggregate, Overflow};
use crate::bits::Bits;
use crate::column::Column;
use crate::groups::Groups;
use crate::partial::Partial;
use crate::predicate::Predicate;
use crate::vector::Vector;

/// What is to be found: which rows, in which groups, and what of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregation {
    /// The columns that the rest names by their places.
    pub columns: Vec<Column>,
    /// Which rows count; all, if there is nothing.
    pub predicate: Option<Predicate>,
    /// Rows with the same values in these are a group; without any, all rows are one.
    pub group_by: Vec<usize>,
    /// What is found of each group.
    pub aggregates: Vec<Aggregate>,
}

/// Rows of a batch: one vector for each column of a request, all of the same length.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// Rows.
    pub len: usize,
    /// Their values.
    pub columns: &'a [Arc<Vector>],
    /// Which rows are there; all, if there is nothing.
    pub rows: Option<&'a Bits>,
}

impl Batch<'_> {
    /// The rows that are there and for which `predicate` is true, in order; replaces `selected`.
    pub fn select(&self, predicate: Option<&Predicate>, selected: &mut Vec<u32>) {
        selected.clear();
        let passing = predicate.map(|predicate| predicate.evaluate(self.len, self.columns).yes);
        match (passing, self.rows) {
            (None, None) => selected.extend(0..self.len as u32),
            (None, Some(rows)) => rows.rows_into(selected),
            (Some(passing), None) => passing.rows_into(selected),
            (Some(mut passing), Some(rows)) => {
                passing.and(rows);
                passing.rows_into(selected);
            }
        }
    }
}

impl Aggregation {
    /// Checks that what is named is there and of kinds that fit.
    ///
    /// # Errors
    /// What is wrong, in a line.
    pub fn check(&self) -> Result<(), String> {
        if let Some(predicate) = &self.predicate {
            predicate.check(&self.columns)?;
        }
        if let Some(at) = self.group_by.iter().find(|at| **at >= self.columns.len()) {
            return Err(format!("groups are by column {at}, which is not there"));
        }
        self.aggregates.iter().try_for_each(|aggregate| aggregate.check(&self.columns))
    }

    fn kind_of(&self, aggregate: &Aggregate) -> Option<crate::value::Kind> {
        aggregate.column.map(|at| self.columns[at].kind())
    }
}

/// An aggregation at work.
pub struct Aggregator {
    plan: Arc<Aggregation>,
    groups: Groups,
    accumulators: Vec<Accumulator>,
    // Of the batch at work.
    selected: Vec<u32>,
    numbers: Vec<u32>,
}

impl Aggregator {
    /// Begins; `plan` was [checked](Aggregation::check).
    pub fn new(plan: Arc<Aggregation>) -> Aggregator {
        let groups = Groups::by(plan.group_by.iter().map(|at| plan.columns[*at].kind()));
        let mut accumulators: Vec<Accumulator> = plan
            .aggregates
            .iter()
            .map(|aggregate| Accumulator::new(aggregate, plan.kind_of(aggregate)))
            .collect();
        accumulators.iter_mut().for_each(|accumulator| accumulator.grow(groups.len()));
        Aggregator { plan, groups, accumulators, selected: Vec::new(), numbers: Vec::new() }
    }

    /// Takes the rows of a batch; tells how many met the condition.
    ///
    /// # Errors
    /// [`Overflow`].
    pub fn add(&mut self, batch: &Batch<'_>) -> Result<u64, Overflow> {
        let plan = self.plan.clone();
        batch.select(plan.predicate.as_ref(), &mut self.selected);
        if self.selected.is_empty() {
            return Ok(0);
        }
        let keys: Vec<&Vector> = plan.group_by.iter().map(|at| &*batch.columns[*at]).collect();
        self.groups.assign(&keys, &self.selected, &mut self.numbers);
        for (accumulator, aggregate) in self.accumulators.iter_mut().zip(&plan.aggregates) {
            accumulator.grow(self.groups.len());
            let vector = aggregate.column.map(|at| &*batch.columns[at]);
            accumulator.add(vector, &self.selected, &self.numbers)?;
        }
        Ok(self.selected.len() as u64)
    }

    /// Takes rows of which nothing is asked, of an aggregation without columns.
    pub fn add_rows(&mut self, rows: u64) {
        self.accumulators.iter_mut().for_each(|accumulator| accumulator.add_rows(rows));
    }

    /// About how many bytes of memory the groups take.
    pub fn heap_bytes(&self) -> usize {
        self.groups.heap_bytes() + self.accumulators.iter().map(Accumulator::heap_bytes).sum::<usize>()
    }

    /// What was found.
    pub fn finish(self) -> Partial {
        let mut partial = Partial::default();
        for group in 0..self.groups.len() {
            let states = self.accumulators.iter().map(|accumulator| accumulator.state(group)).collect();
            partial.groups.push((self.groups.key(group), states));
        }
        partial
    }
}
