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

    /// The same without columns that nothing is asked of, which are then not read.
    #[must_use]
    pub fn of_used_columns(self) -> Aggregation {
        let mut used: Vec<usize> = self.predicate.as_ref().map(Predicate::columns).unwrap_or_default();
        used.extend(&self.group_by);
        used.extend(self.aggregates.iter().filter_map(|aggregate| aggregate.column));
        let used = Used::of(used, &self.columns);
        self.of_columns(&used)
    }

    /// The same with each column once, also those that nothing is asked of.
    #[must_use]
    pub fn of_different_columns(self) -> Aggregation {
        let used = Used::of(0..self.columns.len(), &self.columns);
        self.of_columns(&used)
    }

    fn of_columns(mut self, used: &Used) -> Aggregation {
        self.columns = used.select(&self.columns);
        self.predicate = self.predicate.map(|predicate| predicate.of_columns(used));
        self.group_by.iter_mut().for_each(|at| *at = used.place(*at));
        self.aggregates.iter_mut().for_each(|of| of.column = of.column.map(|at| used.place(at)));
        self
    }

    fn kind_of(&self, aggregate: &Aggregate) -> Option<Kind> {
        aggregate.column.map(|at| self.columns[at].kind())
    }
}

/// Some columns of a list, each once, in order. Those that have the same values are one: whoever names a column a thousand times
/// has it read, and kept, once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Used {
    // Their places in the list, and of each place that was named the place among them.
    columns: Vec<usize>,
    named: BTreeMap<usize, usize>,
}

impl Used {
    /// Those at these places of `list`, which are there.
    pub fn of(places: impl IntoIterator<Item = usize>, list: &[Column]) -> Used {
        let mut used = Used { columns: Vec::new(), named: places.into_iter().map(|at| (at, 0)).collect() };
        let mut known = HashMap::new();
        for (at, place) in &mut used.named {
            let column = &list[*at];
            // Of what is no decimal, the scale says nothing.
            *place = *known.entry((&column.place, column.encoding, column.kind())).or_insert_with(|| {
                used.columns.push(*at);
                used.columns.len() - 1
            });
        }
        used
    }

    /// The columns.
    pub fn select(&self, list: &[Column]) -> Vec<Column> {
        self.columns.iter().map(|at| list[*at].clone()).collect()
    }

    /// Where among them the one is that is at a place of the list.
    pub fn place(&self, of_list: usize) -> usize {
        *self.named.get(&of_list).expect("only columns that are used are named")
    }
}

/// Why rows were not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A sum is too large.
    Overflow(Overflow),
    /// Whoever asked did not want to go on.
    GivenUp,
}

impl From<Overflow> for Refusal {
    fn from(overflow: Overflow) -> Refusal {
        Refusal::Overflow(overflow)
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
        match self.add_while(batch, |_| true) {
            Ok(matched) => Ok(matched),
            Err(Refusal::Overflow(overflow)) => Err(overflow),
            Err(Refusal::GivenUp) => unreachable!("nobody gave up"),
        }
    }

    /// The same, some rows at a time; `goes_on` is asked after each of these parts, and told of the memory that the groups take.
    ///
    /// # Errors
    /// [`Refusal`]; what was added is then of no use.
    pub fn add_while(
        &mut self,
        batch: &Batch<'_>,
        mut goes_on: impl FnMut(usize) -> bool,
    ) -> Result<u64, Refusal> {
        let plan = self.plan.clone();
        let mut selected = std::mem::take(&mut self.selected);
        batch.select(plan.predicate.as_ref(), &mut selected);
        let keys: Vec<&Vector> = plan.group_by.iter().map(|at| &*batch.columns[*at]).collect();
        for rows in selected.chunks(self.rows_at_once()) {
            self.groups.assign(&keys, rows, &mut self.numbers);
            for (accumulator, aggregate) in self.accumulators.iter_mut().zip(&plan.aggregates) {
                accumulator.grow(self.groups.len());
                let vector = aggregate.column.map(|at| &*batch.columns[at]);
                accumulator.add(vector, rows, &self.numbers)?;
            }
            if !goes_on(self.heap_bytes()) {
                return Err(Refusal::GivenUp);
            }
        }
        let matched = selected.len() as u64;
        self.selected = selected;
        Ok(matched)
    }

    /// Rows of which the groups are looked at together: as many as take little memory even if each is a group. Where there can
    /// be but one group, all.
    fn rows_at_once(&self) -> usize {
        const PART_BYTES: usize = 4 << 20;
        const GROUP_BYTES: usize = 64;
        match self.plan.group_by.len() {
            0 => usize::MAX,
            columns => (PART_BYTES / (GROUP_BYTES * (columns + self.accumulators.len()))).max(64),
        }
    }

    /// Takes what another one of the same plan found.
    ///
    /// # Errors
    /// [`Overflow`]; what was found is then of no use.
    pub fn absorb(&mut self, other: Aggregator) -> Result<(), Overflow> {
        let Aggregator { groups, accumulators, .. } = other;
        let to = self.groups.absorb(&groups);
        drop(groups);
        for (own, other) in self.accumulators.iter_mut().zip(accumulators) {
            own.grow(self.groups.len());
            own.absorb(other, &to)?;
        }
        Ok(())
    }

    /// Checks that no sum has more digits than can be kept; until then some are.
    ///
    /// # Errors
    /// [`Overflow`].
    pub fn check(&self) -> Result<(), Overflow> {
        self.accumulators.iter().try_for_each(Accumulator::check)
    }

    /// Takes rows of which nothing is asked, of an aggregation without columns.
    pub fn add_rows(&mut self, rows: u64) {
        self.accumulators.iter_mut().for_each(|accumulator| accumulator.add_rows(rows));
    }

    /// Bytes of memory that the groups take.
    pub fn heap_bytes(&self) -> usize {
        self.groups.heap_bytes() + self.accumulators.iter().map(Accumulator::heap_bytes).sum::<usize>()
    }

    /// The groups, one by one, with their states.
    pub fn groups(&self) -> impl Iterator<Item = (Vec<Value>, Vec<State>)> {
        let states = |group| self.accumulators.iter().map(|accumulator| accumulator.state(group)).collect();
        (0..self.groups.len()).map(move |group| (self.groups.key(group), states(group)))
    }

    /// What was found.
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
    use crate::column::Place;
    use crate::encoding::Encoding;
    use crate::partial::Merger;

    fn column(qualifier: &'static str, encoding: Encoding) -> Column {
        Column {
            place: Place::Cell { family: Bytes::new(), qualifier: qualifier.into() },
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

    /// Rows of few different values, some of them null.
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
    fn what_was_absorbed_is_as_what_was_merged() {
        for group_by in [vec![], vec![3], vec![3, 0, 2]] {
            let plan = Arc::new(Aggregation { group_by, ..Aggregation::clone(&plan()) });
            let parts = [0..2000, 2000..2001, 1500..4000].map(|numbers| aggregator(&plan, numbers));
            let (mut all, mut merger) = (Aggregator::new(plan.clone()), Merger::default());
            for part in parts {
                merger.add(Partial { groups: part.groups().collect() }).expect("small sums");
                all.absorb(part).expect("small sums");
            }
            // Both meet groups in the same order; what was empty is there without columns.
            assert_eq!(all.finish(), merger.finish());
        }
    }

    #[test]
    fn a_column_that_is_named_often_is_there_once() {
        use crate::predicate::Operator;
        let mut columns = vec![column("a", Encoding::Raw), column("b", Encoding::TextLong)];
        columns.extend(vec![column("a", Encoding::Raw); 3]);
        // Of another encoding; of a scale that says nothing; of one that does.
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
        let used = named.clone().of_used_columns();
        assert_eq!(used.columns, [1, 2, 5, 7].map(|at| named.columns[at].clone()));
        assert_eq!(used.predicate, Some(Predicate::CompareColumns(0, Operator::Less, 0)));
        assert_eq!(used.group_by, [1, 1, 1]);
        assert!(used.aggregates.iter().map(|aggregate| aggregate.column).eq([Some(1), Some(2), Some(3)]));
        // Also where those that nothing is asked of count.
        let all = Aggregation { predicate: None, ..named.clone() }.of_different_columns();
        assert_eq!(all.columns, [0, 1, 5, 7].map(|at| named.columns[at].clone()));
        assert_eq!(all.group_by, [0, 0, 0]);
    }

    #[test]
    fn memory_is_told_in_parts() {
        let plan = plan();
        let vectors = vectors(&plan, 0..50_000);
        let batch = Batch { len: 50_000, columns: &vectors, rows: None };
        let mut aggregator = Aggregator::new(plan.clone());
        let mut told = Vec::new();
        aggregator
            .add_while(&batch, |bytes| {
                told.push(bytes);
                true
            })
            .expect("small sums");
        assert!(told.len() > 10 && told.is_sorted(), "{told:?}");
        assert_eq!(*told.last().expect("some"), aggregator.heap_bytes());
        let mut aggregator = Aggregator::new(plan);
        assert_eq!(aggregator.add_while(&batch, |_| false), Err(Refusal::GivenUp));
        assert!(aggregator.heap_bytes() < told[told.len() / 2]);
    }
}
