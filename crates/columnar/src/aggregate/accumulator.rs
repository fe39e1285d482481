//! States of one aggregate for all groups, side by side.

use bytes::Bytes;

use crate::aggregate::{Aggregate, Distinct, Function, Moments, Overflow, Quantiles, State, check_sum};
use crate::value::{Kind, Value, compare_reals};
use crate::vector::{Values, Vector};

/// What the allocator and the sharing of it add to a byte string.
const ALLOCATION_BYTES: usize = 32;

/// States of one aggregate by group.
pub(crate) enum Accumulator {
    Rows(Vec<u64>),
    Count(Vec<u64>),
    WholeSum(Vec<(u64, i128)>),
    RealSum(Vec<(u64, f64)>),
    /// Least or greatest values.
    WholeExtreme(bool, Vec<Option<i64>>),
    RealExtreme(bool, Vec<Option<f64>>),
    DecimalExtreme(bool, Vec<Option<i128>>),
    RawExtreme(bool, Owners<Option<Bytes>>),
    /// Of numbers divided by this.
    Moments(f64, Vec<Moments>),
    Distinct(Owners<Distinct>),
    Quantiles(f64, Owners<Quantiles>),
}

/// States that have memory of their own.
pub(crate) struct Owners<T> {
    states: Vec<T>,
    // Of all states, beside the list.
    bytes: usize,
}

/// What has memory of its own.
pub(crate) trait Owner {
    /// Bytes of it.
    fn owned(&self) -> usize;
}

impl Owner for Option<Bytes> {
    fn owned(&self) -> usize {
        self.as_ref().map_or(0, |bytes| bytes.len() + ALLOCATION_BYTES)
    }
}

impl Owner for Distinct {
    fn owned(&self) -> usize {
        self.heap_len()
    }
}

impl Owner for Quantiles {
    fn owned(&self) -> usize {
        self.heap_len()
    }
}

impl<T: Owner + Default + Clone> Owners<T> {
    fn new() -> Owners<T> {
        Owners { states: Vec::new(), bytes: 0 }
    }

    fn change(&mut self, group: usize, change: impl FnOnce(&mut T)) {
        let state = &mut self.states[group];
        let before = state.owned();
        change(state);
        self.bytes = self.bytes + state.owned() - before;
    }

    fn heap_bytes(&self) -> usize {
        self.states.capacity() * size_of::<T>() + self.bytes
    }
}

impl Accumulator {
    /// Without groups; `kind` is the column's.
    pub(crate) fn new(aggregate: &Aggregate, kind: Option<Kind>) -> Accumulator {
        let divisor = match kind {
            Some(Kind::Decimal { scale }) => 10_f64.powi(i32::from(scale)),
            _ => 1.0,
        };
        let is_max = aggregate.function == Function::Max;
        match (aggregate.function, kind) {
            (Function::Count, None) => Accumulator::Rows(Vec::new()),
            (Function::Count, Some(_)) => Accumulator::Count(Vec::new()),
            (Function::Sum | Function::Average, Some(Kind::Real)) => Accumulator::RealSum(Vec::new()),
            (Function::Sum | Function::Average, _) => Accumulator::WholeSum(Vec::new()),
            (Function::Min | Function::Max, Some(Kind::Real)) => Accumulator::RealExtreme(is_max, Vec::new()),
            (Function::Min | Function::Max, Some(Kind::Decimal { .. })) => {
                Accumulator::DecimalExtreme(is_max, Vec::new())
            }
            (Function::Min | Function::Max, Some(Kind::Raw)) => {
                Accumulator::RawExtreme(is_max, Owners::new())
            }
            (Function::Min | Function::Max, _) => Accumulator::WholeExtreme(is_max, Vec::new()),
            (Function::Variance, _) => Accumulator::Moments(divisor, Vec::new()),
            (Function::Distinct, _) => Accumulator::Distinct(Owners::new()),
            (Function::Quantiles, _) => Accumulator::Quantiles(divisor, Owners::new()),
        }
    }

    /// Makes room for so many groups.
    pub(crate) fn grow(&mut self, groups: usize) {
        match self {
            Accumulator::Rows(states) | Accumulator::Count(states) => states.resize(groups, 0),
            Accumulator::WholeSum(states) => states.resize(groups, (0, 0)),
            Accumulator::RealSum(states) => states.resize(groups, (0, 0.0)),
            Accumulator::WholeExtreme(_, states) => states.resize(groups, None),
            Accumulator::RealExtreme(_, states) => states.resize(groups, None),
            Accumulator::DecimalExtreme(_, states) => states.resize(groups, None),
            Accumulator::RawExtreme(_, of) => of.states.resize(groups, None),
            Accumulator::Moments(_, states) => states.resize(groups, Moments::default()),
            Accumulator::Distinct(of) => of.states.resize(groups, Distinct::default()),
            Accumulator::Quantiles(_, of) => of.states.resize(groups, Quantiles::default()),
        }
    }

    /// Adds the values of `rows`, each to the group at the same place of `groups`. A count of rows is given no vector.
    ///
    /// # Errors
    /// [`Overflow`].
    pub(crate) fn add(
        &mut self,
        vector: Option<&Vector>,
        rows: &[u32],
        groups: &[u32],
    ) -> Result<(), Overflow> {
        let Some(vector) = vector else {
            if let Accumulator::Rows(counts) = self {
                groups.iter().for_each(|group| counts[*group as usize] += 1);
            }
            return Ok(());
        };
        let there = rows
            .iter()
            .zip(groups)
            .map(|(row, group)| (*row as usize, *group as usize))
            .filter(|(row, _)| vector.has(*row));
        match (self, vector.values()) {
            (Accumulator::Count(counts), _) => there.for_each(|(_, group)| counts[group] += 1),
            (Accumulator::WholeSum(sums), Values::Whole(values)) => {
                // A sum of 2^64 values of 64 bits has at most 128.
                there.for_each(|(row, group)| {
                    sums[group].0 += 1;
                    sums[group].1 += i128::from(values[row]);
                });
            }
            (Accumulator::WholeSum(sums), Values::Decimal(values)) => {
                for (row, group) in there {
                    sums[group].0 += 1;
                    sums[group].1 = sums[group].1.checked_add(values[row]).ok_or(Overflow)?;
                }
            }
            (Accumulator::RealSum(sums), Values::Real(values)) => there.for_each(|(row, group)| {
                sums[group].0 += 1;
                sums[group].1 += values[row];
            }),
            (Accumulator::WholeExtreme(is_max, states), Values::Whole(values)) => {
                there.for_each(|(row, group)| raise(&mut states[group], values[row], *is_max, i64::cmp));
            }
            (Accumulator::RealExtreme(is_max, states), Values::Real(values)) => {
                there.for_each(|(row, group)| {
                    raise(&mut states[group], values[row], *is_max, |left, right| {
                        compare_reals(*left, *right)
                    });
                })
            }
            (Accumulator::DecimalExtreme(is_max, states), Values::Decimal(values)) => {
                there.for_each(|(row, group)| raise(&mut states[group], values[row], *is_max, i128::cmp));
            }
            (Accumulator::RawExtreme(is_max, of), Values::Raw(raws)) => there.for_each(|(row, group)| {
                let raw = raws.get(row);
                if is_behind(raw, of.states[group].as_ref(), *is_max) {
                    of.change(group, |state| *state = Some(Bytes::copy_from_slice(raw)));
                }
            }),
            (Accumulator::Moments(divisor, states), _) => there.for_each(|(row, group)| {
                if let Some(number) = number(vector, row, *divisor) {
                    states[group].add(number);
                }
            }),
            (Accumulator::Distinct(of), _) => {
                there.for_each(|(row, group)| of.change(group, |state| state.add(&vector.get(row))));
            }
            (Accumulator::Quantiles(divisor, of), _) => there.for_each(|(row, group)| {
                if let Some(number) = number(vector, row, *divisor) {
                    of.change(group, |state| state.add(number));
                }
            }),
            // The request was checked: a column has one kind.
            _ => {}
        }
        Ok(())
    }

    /// Adds to the only group what `rows` rows count that nobody looked at.
    pub(crate) fn add_rows(&mut self, rows: u64) {
        if let Accumulator::Rows(counts) = self {
            counts[0] += rows;
        }
    }

    /// The state of a group.
    pub(crate) fn state(&self, group: usize) -> State {
        match self {
            Accumulator::Rows(states) | Accumulator::Count(states) => State::Count(states[group]),
            Accumulator::WholeSum(states) => State::Sum(states[group].0, Value::Decimal(states[group].1)),
            Accumulator::RealSum(states) => State::Sum(states[group].0, Value::Real(states[group].1)),
            Accumulator::WholeExtreme(is_max, states) => extreme(*is_max, states[group].map(Value::Whole)),
            Accumulator::RealExtreme(is_max, states) => extreme(*is_max, states[group].map(Value::Real)),
            Accumulator::DecimalExtreme(is_max, states) => {
                extreme(*is_max, states[group].map(Value::Decimal))
            }
            Accumulator::RawExtreme(is_max, of) => extreme(*is_max, of.states[group].clone().map(Value::Raw)),
            Accumulator::Moments(_, states) => State::Variance(states[group]),
            Accumulator::Distinct(of) => State::Distinct(of.states[group].clone()),
            Accumulator::Quantiles(_, of) => State::Quantiles(of.states[group].clone()),
        }
    }

    /// Checks that no sum has more digits than can be kept.
    ///
    /// # Errors
    /// [`Overflow`].
    pub(crate) fn check(&self) -> Result<(), Overflow> {
        match self {
            Accumulator::WholeSum(states) => states.iter().try_for_each(|(_, sum)| check_sum(*sum)),
            _ => Ok(()),
        }
    }

    /// Takes the states of the same aggregate over other rows; `to` has the own group of each of theirs.
    ///
    /// # Errors
    /// [`Overflow`].
    pub(crate) fn absorb(&mut self, other: Accumulator, to: &[u32]) -> Result<(), Overflow> {
        match (self, other) {
            (Accumulator::Rows(own), Accumulator::Rows(other))
            | (Accumulator::Count(own), Accumulator::Count(other)) => {
                each(own, other, to, |own, count| *own += count)
            }
            (Accumulator::WholeSum(own), Accumulator::WholeSum(other)) => {
                for ((count, sum), group) in other.into_iter().zip(to) {
                    let own = &mut own[*group as usize];
                    *own = (own.0 + count, own.1.checked_add(sum).ok_or(Overflow)?);
                }
            }
            (Accumulator::RealSum(own), Accumulator::RealSum(other)) => {
                each(own, other, to, |own, (count, sum)| *own = (own.0 + count, own.1 + sum));
            }
            (Accumulator::WholeExtreme(is_max, own), Accumulator::WholeExtreme(_, other)) => {
                each_value(own, other, to, |own, value| raise(own, value, *is_max, i64::cmp));
            }
            (Accumulator::RealExtreme(is_max, own), Accumulator::RealExtreme(_, other)) => {
                let compare = |left: &f64, right: &f64| compare_reals(*left, *right);
                each_value(own, other, to, |own, value| raise(own, value, *is_max, compare));
            }
            (Accumulator::DecimalExtreme(is_max, own), Accumulator::DecimalExtreme(_, other)) => {
                each_value(own, other, to, |own, value| raise(own, value, *is_max, i128::cmp));
            }
            (Accumulator::RawExtreme(is_max, own), Accumulator::RawExtreme(_, other)) => {
                for (raw, group) in other.states.into_iter().zip(to) {
                    let group = *group as usize;
                    if let Some(raw) = raw
                        && is_behind(&raw, own.states[group].as_ref(), *is_max)
                    {
                        own.change(group, |state| *state = Some(raw));
                    }
                }
            }
            (Accumulator::Moments(_, own), Accumulator::Moments(_, other)) => {
                each(own, other, to, |own, moments| own.merge(&moments));
            }
            (Accumulator::Distinct(own), Accumulator::Distinct(other)) => {
                let states = other.states.iter().zip(to);
                states.for_each(|(other, group)| own.change(*group as usize, |state| state.merge(other)));
            }
            (Accumulator::Quantiles(_, own), Accumulator::Quantiles(_, other)) => {
                let states = other.states.iter().zip(to);
                states.for_each(|(other, group)| own.change(*group as usize, |state| state.merge(other)));
            }
            _ => unreachable!("both are of one aggregate"),
        }
        Ok(())
    }

    /// Bytes of memory that it takes.
    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            Accumulator::Rows(states) | Accumulator::Count(states) => list_bytes(states),
            Accumulator::WholeSum(states) => list_bytes(states),
            Accumulator::RealSum(states) => list_bytes(states),
            Accumulator::WholeExtreme(_, states) => list_bytes(states),
            Accumulator::RealExtreme(_, states) => list_bytes(states),
            Accumulator::DecimalExtreme(_, states) => list_bytes(states),
            Accumulator::RawExtreme(_, of) => of.heap_bytes(),
            Accumulator::Moments(_, states) => list_bytes(states),
            Accumulator::Distinct(of) => of.heap_bytes(),
            Accumulator::Quantiles(_, of) => of.heap_bytes(),
        }
    }
}

fn list_bytes<T>(list: &Vec<T>) -> usize {
    list.capacity() * size_of::<T>()
}

/// Puts each of `other` to the own one of its group.
fn each<T>(own: &mut [T], other: Vec<T>, to: &[u32], put: impl Fn(&mut T, T)) {
    other.into_iter().zip(to).for_each(|(other, group)| put(&mut own[*group as usize], other));
}

/// The same for those that are there.
fn each_value<T>(own: &mut [Option<T>], other: Vec<Option<T>>, to: &[u32], put: impl Fn(&mut Option<T>, T)) {
    for (other, group) in other.into_iter().zip(to) {
        if let Some(value) = other {
            put(&mut own[*group as usize], value);
        }
    }
}

/// Whether bytes are better than the best so far.
fn is_behind(raw: &[u8], best: Option<&Bytes>, is_max: bool) -> bool {
    best.is_none_or(|best| if is_max { raw > best.as_ref() } else { raw < best.as_ref() })
}

fn raise<T>(best: &mut Option<T>, value: T, is_max: bool, compare: impl Fn(&T, &T) -> std::cmp::Ordering) {
    let is_better = |best: &T| {
        let order = compare(&value, best);
        if is_max { order.is_gt() } else { order.is_lt() }
    };
    if best.as_ref().is_none_or(is_better) {
        *best = Some(value);
    }
}

fn extreme(is_max: bool, value: Option<Value>) -> State {
    let value = value.unwrap_or(Value::Null);
    if is_max { State::Max(value) } else { State::Min(value) }
}

fn number(vector: &Vector, row: usize, divisor: f64) -> Option<f64> {
    match vector.values() {
        Values::Whole(values) => Some(values[row] as f64),
        Values::Real(values) => Some(values[row]),
        Values::Decimal(values) => Some(values[row] as f64 / divisor),
        Values::Raw(_) => None,
    }
}
