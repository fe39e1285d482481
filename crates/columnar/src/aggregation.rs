//! Aggregation of batches of rows into groups.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::aggregate::{Accumulator, Aggregate, Overflow, State};
use crate::bits::Bits;
use crate::column::Column;
use crate::groups::Groups;
use crate::partial::Partial;
use crate::predicate::Predicate;
use crate::value::{Kind, Value};
use crate::vector::Vector;

/// An aggregation: which rows, how they are grouped, and the aggregates of each group.
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregation {
    /// The columns that the other fields reference by index.
    pub columns: Vec<Column>,
    /// Condition on rows; `None` selects all.
    pub predicate: Option<Predicate>,
    /// Columns to group by. If empty, all rows are one group.
    pub group_by: Vec<usize>,
    /// Aggregates of each group.
    pub aggregates: Vec<Aggregate>,
}

/// A batch of rows: one vector for each column of a request, all of the same length.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// Number of rows.
    pub len: usize,
    /// Values of each column.
    pub columns: &'a [Arc<Vector>],
    /// Rows that exist; `None` means all.
    pub rows: Option<&'a Bits>,
}

impl Batch<'_> {
    /// Stores the rows that exist and satisfy `predicate` in `selected`, in order, and replaces its
    /// contents.
    pub fn select(&self, predicate: Option<&Predicate>, selected: &mut Vec<u32>) {
        debug_assert!(
            self.columns.iter().all(|column| column.len() == self.len)
                && self.rows.is_none_or(|rows| rows.len() == self.len),
            "the columns of a batch have the same rows"
        );
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
    /// Checks that all referenced columns exist and have suitable kinds.
    ///
    /// # Errors
    /// A one-line description of the problem.
    pub fn check(&self) -> Result<(), String> {
        if let Some(predicate) = &self.predicate {
            predicate.check(&self.columns)?;
        }
        if let Some(at) = self.group_by.iter().find(|at| **at >= self.columns.len()) {
            return Err(format!("groups are by column {at}, which does not exist"));
        }
        self.aggregates.iter().try_for_each(|aggregate| aggregate.check(&self.columns))
    }

    /// Removes unused columns, so that they are not read.
    #[must_use]
    pub fn without_unused_columns(self) -> Aggregation {
        let mut used: Vec<usize> = self.predicate.as_ref().map(Predicate::columns).unwrap_or_default();
        used.extend(&self.group_by);
        used.extend(self.aggregates.iter().filter_map(|aggregate| aggregate.column));
        let mapping = ColumnMapping::new(used, &self.columns);
        self.remap(&mapping)
    }

    /// Merges equal columns, including unused ones.
    #[must_use]
    pub fn with_distinct_columns(self) -> Aggregation {
        let mapping = ColumnMapping::new(0..self.columns.len(), &self.columns);
        self.remap(&mapping)
    }

    fn remap(mut self, mapping: &ColumnMapping) -> Aggregation {
        self.columns = mapping.select(&self.columns);
        self.predicate = self.predicate.map(|predicate| predicate.remap(mapping));
        self.group_by.iter_mut().for_each(|at| *at = mapping.position(*at));
        self.aggregates.iter_mut().for_each(|of| of.column = of.column.map(|at| mapping.position(at)));
        self
    }

    fn kind(&self, aggregate: &Aggregate) -> Option<Kind> {
        aggregate.column.map(|at| self.columns[at].kind())
    }
}

/// Distinct columns of a list, in order. Equal columns are merged: a column that is referenced a
/// thousand times is read and stored once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColumnMapping {
    // `columns`: positions in the list.
    // `by_list_position`: position in the list -> position in `columns`.
    columns: Vec<usize>,
    by_list_position: BTreeMap<usize, usize>,
}

impl ColumnMapping {
    /// The columns at these positions of `list`, which must exist.
    pub fn new(positions: impl IntoIterator<Item = usize>, list: &[Column]) -> ColumnMapping {
        let mut mapping = ColumnMapping {
            columns: Vec::new(),
            by_list_position: positions.into_iter().map(|at| (at, 0)).collect(),
        };
        let mut known = HashMap::new();
        for (at, position) in &mut mapping.by_list_position {
            let column = &list[*at];
            // Only decimals have a scale that matters; `kind` includes it.
            *position =
                *known.entry((&column.location, column.encoding, column.kind())).or_insert_with(|| {
                    mapping.columns.push(*at);
                    mapping.columns.len() - 1
                });
        }
        mapping
    }

    /// The columns, taken from `list`.
    pub fn select(&self, list: &[Column]) -> Vec<Column> {
        self.columns.iter().map(|at| list[*at].clone()).collect()
    }

    /// Position among the used columns of the column at position `list_position` of the list.
    pub fn position(&self, list_position: usize) -> usize {
        *self.by_list_position.get(&list_position).expect("only used columns are looked up")
    }
}

/// Reason why rows were not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A sum is too large.
    Overflow(Overflow),
    /// The callback canceled the aggregation.
    Canceled,
}

impl From<Overflow> for Refusal {
    fn from(overflow: Overflow) -> Refusal {
        Refusal::Overflow(overflow)
    }
}

/// Aggregates batches of rows into groups.
pub struct Aggregator {
    plan: Arc<Aggregation>,
    groups: Groups,
    accumulators: Vec<Accumulator>,
    // Buffers for the current batch: selected rows, and their groups.
    selected: Vec<u32>,
    numbers: Vec<u32>,
}

impl Aggregator {
    /// Creates an empty aggregator; `plan` must have passed [`Aggregation::check`].
    pub fn new(plan: Arc<Aggregation>) -> Aggregator {
        let groups = Groups::by(plan.group_by.iter().map(|at| plan.columns[*at].kind()));
        let mut accumulators: Vec<Accumulator> = plan
            .aggregates
            .iter()
            .map(|aggregate| Accumulator::new(aggregate, plan.kind(aggregate)))
            .collect();
        accumulators.iter_mut().for_each(|accumulator| accumulator.grow(groups.len()));
        Aggregator { plan, groups, accumulators, selected: Vec::new(), numbers: Vec::new() }
    }

    /// Adds the rows of a batch. Returns how many satisfied the predicate.
    ///
    /// # Errors
    /// [`Overflow`].
    pub fn add(&mut self, batch: &Batch<'_>) -> Result<u64, Overflow> {
        match self.add_while(batch, |_| true) {
            Ok(matched) => Ok(matched),
            Err(Refusal::Overflow(overflow)) => Err(overflow),
            Err(Refusal::Canceled) => unreachable!("the callback never cancels"),
        }
    }

    /// Like [`Aggregator::add`], in chunks of rows. After each chunk it calls `should_continue`
    /// with the bytes of memory that the groups take; `false` cancels.
    ///
    /// # Errors
    /// [`Refusal`]; the aggregator must not be used afterwards.
    pub fn add_while(
        &mut self,
        batch: &Batch<'_>,
        mut should_continue: impl FnMut(usize) -> bool,
    ) -> Result<u64, Refusal> {
        let plan = self.plan.clone();
        let mut selected = std::mem::take(&mut self.selected);
        batch.select(plan.predicate.as_ref(), &mut selected);
        let keys: Vec<&Vector> = plan.group_by.iter().map(|at| &*batch.columns[*at]).collect();
        for rows in selected.chunks(self.chunk_rows()) {
            self.groups.assign(&keys, rows, &mut self.numbers);
            for (accumulator, aggregate) in self.accumulators.iter_mut().zip(&plan.aggregates) {
                accumulator.grow(self.groups.len());
                let vector = aggregate.column.map(|at| &*batch.columns[at]);
                accumulator.add(vector, rows, &self.numbers)?;
            }
            if !should_continue(self.heap_bytes()) {
                return Err(Refusal::Canceled);
            }
        }
        let matched = selected.len() as u64;
        self.selected = selected;
        Ok(matched)
    }

    /// Rows per chunk. A chunk takes little memory even if each of its rows is a new group. Without
    /// grouping there is one group, and one chunk.
    fn chunk_rows(&self) -> usize {
        const CHUNK_BYTES: usize = 4 << 20;
        const GROUP_BYTES: usize = 64;
        match self.plan.group_by.len() {
            0 => usize::MAX,
            columns => (CHUNK_BYTES / (GROUP_BYTES * (columns + self.accumulators.len()))).max(64),
        }
    }

    /// Adds the groups of another aggregator with the same plan.
    ///
    /// # Errors
    /// [`Overflow`]; the aggregator must not be used afterwards.
    pub fn absorb(&mut self, other: Aggregator) -> Result<(), Overflow> {
        let Aggregator { groups, accumulators, .. } = other;
        debug_assert_eq!(accumulators.len(), self.accumulators.len(), "both aggregators have one plan");
        let to = self.groups.absorb(&groups);
        drop(groups);
        for (own, other) in self.accumulators.iter_mut().zip(accumulators) {
            own.grow(self.groups.len());
            own.absorb(other, &to)?;
        }
        Ok(())
    }

    /// Checks that all sums have at most 38 digits. Intermediate sums may have slightly more.
    ///
    /// # Errors
    /// [`Overflow`].
    pub fn check(&self) -> Result<(), Overflow> {
        self.accumulators.iter().try_for_each(Accumulator::check)
    }

    /// Counts rows that were not read, for an aggregation without columns.
    pub fn add_rows(&mut self, rows: u64) {
        self.accumulators.iter_mut().for_each(|accumulator| accumulator.add_rows(rows));
    }

    /// Heap bytes of the groups.
    pub fn heap_bytes(&self) -> usize {
        self.groups.heap_bytes() + self.accumulators.iter().map(Accumulator::heap_bytes).sum::<usize>()
    }

    /// The groups and their states.
    pub fn groups(&self) -> impl Iterator<Item = (Vec<Value>, Vec<State>)> {
        let states = |group| self.accumulators.iter().map(|accumulator| accumulator.state(group)).collect();
        (0..self.groups.len()).map(move |group| (self.groups.key(group), states(group)))
    }

    /// The result.
    pub fn finish(self) -> Partial {
        Partial { groups: self.groups().collect() }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::aggregate::Function;
    use crate::builder::VectorBuilder;
    use crate::column::ColumnLocation;
    use crate::encoding::Encoding;
    use crate::partial::Merger;

    fn column(qualifier: &'static str, encoding: Encoding) -> Column {
        Column {
            location: ColumnLocation::Cell { family: Bytes::new(), qualifier: qualifier.into() },
            encoding,
            scale: 0,
        }
    }

    fn plan() -> Arc<Aggregation> {
        use Function::{Average, Count, Distinct, Max, Min, Quantiles, Sum, Variance};
        let of = |column| move |function| Aggregate { function, column: Some(column) };
        let numbers = [Count, Sum, Min, Max, Average, Variance, Distinct, Quantiles];
        let mut aggregates = vec![Aggregate { function: Count, column: None }];
        aggregates.extend([0, 1, 2].into_iter().flat_map(|column| numbers.map(of(column))));
        aggregates.extend([Count, Min, Max, Distinct].map(of(3)));
        Arc::new(Aggregation {
            columns: vec![
                column("whole", Encoding::TextLong),
                column("real", Encoding::TextDouble),
                column("decimal", Encoding::TextDecimal),
                column("raw", Encoding::Raw),
            ],
            predicate: None,
            group_by: vec![3, 0, 2],
            aggregates,
        })
    }

    /// Rows with few distinct values, including nulls.
    fn vectors(plan: &Aggregation, numbers: std::ops::Range<u64>) -> Vec<Arc<Vector>> {
        let value = |column: usize, number: u64| {
            let mixed = (number * 31 + column as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
            (!mixed.is_multiple_of(5)).then(|| (mixed % 7).to_string())
        };
        let vector = |(at, column): (usize, &Column)| {
            let mut builder = VectorBuilder::new(column);
            for number in numbers.clone() {
                match value(at, number) {
                    Some(value) => builder.push(value.as_bytes()).expect("a number"),
                    None => builder.push_null(),
                }
            }
            Arc::new(builder.finish())
        };
        plan.columns.iter().enumerate().map(vector).collect()
    }

    fn aggregator(plan: &Arc<Aggregation>, numbers: std::ops::Range<u64>) -> Aggregator {
        let mut aggregator = Aggregator::new(plan.clone());
        let vectors = vectors(plan, numbers.clone());
        let len = (numbers.end - numbers.start) as usize;
        aggregator.add(&Batch { len, columns: &vectors, rows: None }).expect("small sums");
        aggregator
    }

    #[test]
    fn absorbed_and_merged_states_are_equal() {
        for group_by in [vec![], vec![3], vec![3, 0, 2]] {
            let plan = Arc::new(Aggregation { group_by, ..Aggregation::clone(&plan()) });
            let parts = [0..2000, 2000..2001, 1500..4000].map(|numbers| aggregator(&plan, numbers));
            let (mut all, mut merger) = (Aggregator::new(plan.clone()), Merger::default());
            for part in parts {
                merger.add(Partial { groups: part.groups().collect() }).expect("small sums");
                all.absorb(part).expect("small sums");
            }
            // Both see groups in the same order. Without grouping, the one empty group exists.
            assert_eq!(all.finish(), merger.finish());
        }
    }

    #[test]
    fn a_column_that_is_named_several_times_exists_once() {
        use crate::predicate::Operator;
        let mut columns = vec![column("a", Encoding::Raw), column("b", Encoding::TextLong)];
        columns.extend(vec![column("a", Encoding::Raw); 3]);
        // Another encoding; a scale that does not matter; a scale that does.
        columns.push(column("b", Encoding::TextDecimal));
        columns.push(Column { scale: 3, ..column("b", Encoding::TextLong) });
        columns.push(Column { scale: 3, ..column("b", Encoding::TextDecimal) });
        let named = Aggregation {
            predicate: Some(Predicate::CompareColumns(6, Operator::Less, 1)),
            group_by: vec![4, 3, 2],
            aggregates: [3, 5, 7].map(|at| Aggregate { function: Function::Max, column: Some(at) }).into(),
            columns,
        };
        assert_eq!(named.check(), Ok(()));
        let used = named.clone().without_unused_columns();
        assert_eq!(used.columns, [1, 2, 5, 7].map(|at| named.columns[at].clone()));
        assert_eq!(used.predicate, Some(Predicate::CompareColumns(0, Operator::Less, 0)));
        assert_eq!(used.group_by, [1, 1, 1]);
        assert!(used.aggregates.iter().map(|aggregate| aggregate.column).eq([Some(1), Some(2), Some(3)]));
        // Also without removing unused columns.
        let all = Aggregation { predicate: None, ..named.clone() }.with_distinct_columns();
        assert_eq!(all.columns, [0, 1, 5, 7].map(|at| named.columns[at].clone()));
        assert_eq!(all.group_by, [0, 0, 0]);
    }

    #[test]
    fn memory_is_reported_in_increments() {
        let plan = plan();
        let vectors = vectors(&plan, 0..50_000);
        let batch = Batch { len: 50_000, columns: &vectors, rows: None };
        let mut aggregator = Aggregator::new(plan.clone());
        let mut reported = Vec::new();
        aggregator
            .add_while(&batch, |bytes| {
                reported.push(bytes);
                true
            })
            .expect("small sums");
        assert!(reported.len() > 10 && reported.is_sorted(), "{reported:?}");
        assert_eq!(*reported.last().expect("some"), aggregator.heap_bytes());
        let mut aggregator = Aggregator::new(plan);
        assert_eq!(aggregator.add_while(&batch, |_| false), Err(Refusal::Canceled));
        assert!(aggregator.heap_bytes() < reported[reported.len() / 2]);
    }
}
