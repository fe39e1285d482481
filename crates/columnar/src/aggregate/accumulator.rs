//! States of one aggregate for all groups, side by side.

use bytes::Bytes;

use crate::aggregate::{Aggregate, Distinct, Function, Moments, Overflow, Quantiles, State};
use crate::value::{Kind, Value, compare_reals};
use crate::vector::{Values, Vector};

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
    RawExtreme(bool, Vec<Option<Bytes>>),
    /// Of numbers divided by this.
    Moments(f64, Vec<Moments>),
    Distinct(Vec<Distinct>),
    Quantiles(f64, Vec<Quantiles>),
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
            (Function::Min | Function::Max, Some(Kind::Raw)) => Accumulator::RawExtreme(is_max, Vec::new()),
            (Function::Min | Function::Max, _) => Accumulator::WholeExtreme(is_max, Vec::new()),
            (Function::Variance, _) => Accumulator::Moments(divisor, Vec::new()),
            (Function::Distinct, _) => Accumulator::Distinct(Vec::new()),
            (Function::Quantiles, _) => Accumulator::Quantiles(divisor, Vec::new()),
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
            Accumulator::RawExtreme(_, states) => states.resize(groups, None),
            Accumulator::Moments(_, states) => states.resize(groups, Moments::default()),
            Accumulator::Distinct(states) => states.resize(groups, Distinct::default()),
            Accumulator::Quantiles(_, states) => states.resize(groups, Quantiles::default()),
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
            (Accumulator::RawExtreme(is_max, states), Values::Raw(raws)) => there.for_each(|(row, group)| {
                let (raw, state) = (raws.get(row), &mut states[group]);
                let is_behind =
                    |best: &Bytes| if *is_max { raw > best.as_ref() } else { raw < best.as_ref() };
                if state.as_ref().is_none_or(is_behind) {
                    *state = Some(Bytes::copy_from_slice(raw));
                }
            }),
            (Accumulator::Moments(divisor, states), _) => there.for_each(|(row, group)| {
                if let Some(number) = number(vector, row, *divisor) {
                    states[group].add(number);
                }
            }),
            (Accumulator::Distinct(states), _) => {
                there.for_each(|(row, group)| states[group].add(&vector.get(row)));
            }
            (Accumulator::Quantiles(divisor, states), _) => there.for_each(|(row, group)| {
                if let Some(number) = number(vector, row, *divisor) {
                    states[group].add(number);
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
            Accumulator::RawExtreme(is_max, states) => {
                extreme(*is_max, states[group].clone().map(Value::Raw))
            }
            Accumulator::Moments(_, states) => State::Variance(states[group]),
            Accumulator::Distinct(states) => State::Distinct(states[group].clone()),
            Accumulator::Quantiles(_, states) => State::Quantiles(states[group].clone()),
        }
    }

    /// About how many bytes of memory it takes.
    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            Accumulator::Rows(states) | Accumulator::Count(states) => states.len() * 8,
            Accumulator::WholeSum(states) => states.len() * 32,
            Accumulator::RealSum(states) => states.len() * 16,
            Accumulator::WholeExtreme(_, states) => states.len() * 16,
            Accumulator::RealExtreme(_, states) => states.len() * 16,
            Accumulator::DecimalExtreme(_, states) => states.len() * 32,
            Accumulator::RawExtreme(_, states) => {
                states.iter().map(|state| size_of_val(state) + state.as_ref().map_or(0, Bytes::len)).sum()
            }
            Accumulator::Moments(_, states) => states.len() * size_of::<Moments>(),
            Accumulator::Distinct(states) => {
                states.iter().map(|state| size_of_val(state) + state.heap_len()).sum()
            }
            Accumulator::Quantiles(_, states) => {
                states.iter().map(|state| size_of_val(state) + state.heap_len()).sum()
            }
        }
    }
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
