//! States of one aggregate for all groups, in columnar layout.

use bytes::Bytes;

use crate::aggregate::{Aggregate, Distinct, Function, Moments, Overflow, Quantiles, State, check_sum};
use crate::value::{Kind, Value, compare_reals};
use crate::vector::{Values, Vector};

/// Allocator and reference counting overhead of a byte string.
const ALLOCATION_BYTES: usize = 32;

/// States of one aggregate, indexed by group.
pub(crate) enum Accumulator {
    Rows(Vec<u64>),
    Count(Vec<u64>),
    WholeSum(Vec<(u64, i128)>),
    RealSum(Vec<(u64, f64)>),
    /// Smallest or greatest values; the flag is true for greatest.
    WholeExtreme(bool, Vec<Option<i64>>),
    RealExtreme(bool, Vec<Option<f64>>),
    DecimalExtreme(bool, Vec<Option<i128>>),
    RawExtreme(bool, HeapStates<Option<Bytes>>),
    /// States of numbers that are divided by this divisor.
    Moments(f64, Vec<Moments>),
    Distinct(HeapStates<Distinct>),
    Quantiles(f64, HeapStates<Quantiles>),
}

/// States that own heap memory.
pub(crate) struct HeapStates<T> {
    states: Vec<T>,
    // Heap bytes that the states own, excluding the list.
    bytes: usize,
}

/// A state that may own heap memory.
pub(crate) trait HeapSize {
    /// Bytes of this memory.
    fn heap_size(&self) -> usize;
}

impl HeapSize for Option<Bytes> {
    fn heap_size(&self) -> usize {
        self.as_ref().map_or(0, |bytes| bytes.len() + ALLOCATION_BYTES)
    }
}

impl HeapSize for Distinct {
    fn heap_size(&self) -> usize {
        self.heap_len()
    }
}

impl HeapSize for Quantiles {
    fn heap_size(&self) -> usize {
        self.heap_len()
    }
}

impl<T: HeapSize + Default + Clone> HeapStates<T> {
    fn new() -> HeapStates<T> {
        HeapStates { states: Vec::new(), bytes: 0 }
    }

    fn change(&mut self, group: usize, change: impl FnOnce(&mut T)) {
        let state = &mut self.states[group];
        let before = state.heap_size();
        change(state);
        self.bytes = self.bytes + state.heap_size() - before;
    }

    fn heap_bytes(&self) -> usize {
        self.states.capacity() * size_of::<T>() + self.bytes
    }
}

impl Accumulator {
    /// An accumulator without groups, for a column of `kind`.
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
                Accumulator::RawExtreme(is_max, HeapStates::new())
            }
            (Function::Min | Function::Max, _) => Accumulator::WholeExtreme(is_max, Vec::new()),
            (Function::Variance, _) => Accumulator::Moments(divisor, Vec::new()),
            (Function::Distinct, _) => Accumulator::Distinct(HeapStates::new()),
            (Function::Quantiles, _) => Accumulator::Quantiles(divisor, HeapStates::new()),
        }
    }

    /// Extends the lists to this number of groups.
    pub(crate) fn grow(&mut self, groups: usize) {
        match self {
            Accumulator::Rows(states) | Accumulator::Count(states) => states.resize(groups, 0),
            Accumulator::WholeSum(states) => states.resize(groups, (0, 0)),
            Accumulator::RealSum(states) => states.resize(groups, (0, 0.0)),
            Accumulator::WholeExtreme(_, states) => states.resize(groups, None),
            Accumulator::RealExtreme(_, states) => states.resize(groups, None),
            Accumulator::DecimalExtreme(_, states) => states.resize(groups, None),
            Accumulator::RawExtreme(_, heap) => heap.states.resize(groups, None),
            Accumulator::Moments(_, states) => states.resize(groups, Moments::default()),
            Accumulator::Distinct(heap) => heap.states.resize(groups, Distinct::default()),
            Accumulator::Quantiles(_, heap) => heap.states.resize(groups, Quantiles::default()),
        }
    }

    /// Adds the values of `rows`; `groups` has the group of each row. A row count has no vector.
    ///
    /// # Errors
    /// [`Overflow`].
    pub(crate) fn add(
        &mut self,
        vector: Option<&Vector>,
        rows: &[u32],
        groups: &[u32],
    ) -> Result<(), Overflow> {
        debug_assert_eq!(rows.len(), groups.len(), "each row has a group");
        let Some(vector) = vector else {
            if let Accumulator::Rows(counts) = self {
                groups.iter().for_each(|group| counts[*group as usize] += 1);
            }
            return Ok(());
        };
        let present = rows
            .iter()
            .zip(groups)
            .map(|(row, group)| (*row as usize, *group as usize))
            .filter(|(row, _)| vector.has(*row));
        match (self, vector.values()) {
            (Accumulator::Count(counts), _) => present.for_each(|(_, group)| counts[group] += 1),
            (Accumulator::WholeSum(sums), Values::Whole(values)) => {
                // A sum of 2^64 values of 64 bits has at most 128 bits.
                present.for_each(|(row, group)| {
                    sums[group].0 += 1;
                    sums[group].1 += i128::from(values[row]);
                });
            }
            (Accumulator::WholeSum(sums), Values::Decimal(values)) => {
                for (row, group) in present {
                    sums[group].0 += 1;
                    sums[group].1 = sums[group].1.checked_add(values[row]).ok_or(Overflow)?;
                }
            }
            (Accumulator::RealSum(sums), Values::Real(values)) => present.for_each(|(row, group)| {
                sums[group].0 += 1;
                sums[group].1 += values[row];
            }),
            (Accumulator::WholeExtreme(is_max, states), Values::Whole(values)) => {
                present.for_each(|(row, group)| {
                    update_extreme(&mut states[group], values[row], *is_max, i64::cmp)
                });
            }
            (Accumulator::RealExtreme(is_max, states), Values::Real(values)) => {
                present.for_each(|(row, group)| {
                    update_extreme(&mut states[group], values[row], *is_max, |left, right| {
                        compare_reals(*left, *right)
                    });
                })
            }
            (Accumulator::DecimalExtreme(is_max, states), Values::Decimal(values)) => {
                present.for_each(|(row, group)| {
                    update_extreme(&mut states[group], values[row], *is_max, i128::cmp)
                });
            }
            (Accumulator::RawExtreme(is_max, heap), Values::Raw(raws)) => present.for_each(|(row, group)| {
                let raw = raws.get(row);
                if is_better(raw, heap.states[group].as_ref(), *is_max) {
                    heap.change(group, |state| *state = Some(Bytes::copy_from_slice(raw)));
                }
            }),
            (Accumulator::Moments(divisor, states), _) => present.for_each(|(row, group)| {
                if let Some(number) = number(vector, row, *divisor) {
                    states[group].add(number);
                }
            }),
            (Accumulator::Distinct(heap), _) => {
                present.for_each(|(row, group)| heap.change(group, |state| state.add(&vector.get(row))));
            }
            (Accumulator::Quantiles(divisor, heap), _) => present.for_each(|(row, group)| {
                if let Some(number) = number(vector, row, *divisor) {
                    heap.change(group, |state| state.add(number));
                }
            }),
            // A checked request has one kind per column.
            _ => {}
        }
        Ok(())
    }

    /// Adds a count of rows that were not read to the only group.
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
            Accumulator::RawExtreme(is_max, heap) => {
                extreme(*is_max, heap.states[group].clone().map(Value::Raw))
            }
            Accumulator::Moments(_, states) => State::Variance(states[group]),
            Accumulator::Distinct(heap) => State::Distinct(heap.states[group].clone()),
            Accumulator::Quantiles(_, heap) => State::Quantiles(heap.states[group].clone()),
        }
    }

    /// Checks that all sums have at most 38 digits.
    ///
    /// # Errors
    /// [`Overflow`].
    pub(crate) fn check(&self) -> Result<(), Overflow> {
        match self {
            Accumulator::WholeSum(states) => states.iter().try_for_each(|(_, sum)| check_sum(*sum)),
            _ => Ok(()),
        }
    }

    /// Adds the states of the same aggregate over other rows. `to` maps their groups to groups of
    /// this accumulator.
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
                each_value(own, other, to, |own, value| update_extreme(own, value, *is_max, i64::cmp));
            }
            (Accumulator::RealExtreme(is_max, own), Accumulator::RealExtreme(_, other)) => {
                let compare = |left: &f64, right: &f64| compare_reals(*left, *right);
                each_value(own, other, to, |own, value| update_extreme(own, value, *is_max, compare));
            }
            (Accumulator::DecimalExtreme(is_max, own), Accumulator::DecimalExtreme(_, other)) => {
                each_value(own, other, to, |own, value| update_extreme(own, value, *is_max, i128::cmp));
            }
            (Accumulator::RawExtreme(is_max, own), Accumulator::RawExtreme(_, other)) => {
                for (raw, group) in other.states.into_iter().zip(to) {
                    let group = *group as usize;
                    if let Some(raw) = raw
                        && is_better(&raw, own.states[group].as_ref(), *is_max)
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
            _ => unreachable!("both accumulators have the same aggregate"),
        }
        Ok(())
    }

    /// Heap bytes of this accumulator.
    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            Accumulator::Rows(states) | Accumulator::Count(states) => list_bytes(states),
            Accumulator::WholeSum(states) => list_bytes(states),
            Accumulator::RealSum(states) => list_bytes(states),
            Accumulator::WholeExtreme(_, states) => list_bytes(states),
            Accumulator::RealExtreme(_, states) => list_bytes(states),
            Accumulator::DecimalExtreme(_, states) => list_bytes(states),
            Accumulator::RawExtreme(_, heap) => heap.heap_bytes(),
            Accumulator::Moments(_, states) => list_bytes(states),
            Accumulator::Distinct(heap) => heap.heap_bytes(),
            Accumulator::Quantiles(_, heap) => heap.heap_bytes(),
        }
    }
}

fn list_bytes<T>(list: &Vec<T>) -> usize {
    list.capacity() * size_of::<T>()
}

/// Applies `put` to each entry of `other` and the own entry of its group.
fn each<T>(own: &mut [T], other: Vec<T>, to: &[u32], put: impl Fn(&mut T, T)) {
    other.into_iter().zip(to).for_each(|(other, group)| put(&mut own[*group as usize], other));
}

/// Like [`each`], for the entries that are not `None`.
fn each_value<T>(own: &mut [Option<T>], other: Vec<Option<T>>, to: &[u32], put: impl Fn(&mut Option<T>, T)) {
    for (other, group) in other.into_iter().zip(to) {
        if let Some(value) = other {
            put(&mut own[*group as usize], value);
        }
    }
}

/// Whether `raw` is better than the best value so far.
fn is_better(raw: &[u8], best: Option<&Bytes>, is_max: bool) -> bool {
    best.is_none_or(|best| if is_max { raw > best.as_ref() } else { raw < best.as_ref() })
}

fn update_extreme<T>(
    best: &mut Option<T>,
    value: T,
    is_max: bool,
    compare: impl Fn(&T, &T) -> std::cmp::Ordering,
) {
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
