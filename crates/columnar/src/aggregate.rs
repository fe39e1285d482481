//! Aggregates: what is found of the values of a group.

mod accumulator;
mod distinct;
mod quantiles;

use std::cmp::Ordering;

pub(crate) use accumulator::Accumulator;
pub use distinct::Distinct;
pub use quantiles::Quantiles;

use crate::column::{Column, DECIMAL_DIGITS_MAX};
use crate::value::{Kind, Value};

/// What is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Function {
    /// Rows, or values that are not null where a column is named.
    Count,
    /// The sum of numbers.
    Sum,
    /// The least value.
    Min,
    /// The greatest value.
    Max,
    /// The mean of numbers, as a sum and a count.
    Average,
    /// Count, mean and squared distances of numbers, for variances and deviations.
    Variance,
    /// About how many different values there are.
    Distinct,
    /// About which numbers the quantiles are.
    Quantiles,
}

/// A function over a column, by its place in a list; a count may be without.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Aggregate {
    /// What is found.
    pub function: Function,
    /// Of which column.
    pub column: Option<usize>,
}

/// What was found of one group, so far as somebody has looked; the states of several are put together.
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// Of [`Function::Count`].
    Count(u64),
    /// Of [`Function::Sum`] and [`Function::Average`]: how many values, and their sum: real, or else whole or unscaled in a
    /// decimal.
    Sum(u64, Value),
    /// Of [`Function::Min`].
    Min(Value),
    /// Of [`Function::Max`].
    Max(Value),
    /// Of [`Function::Variance`].
    Variance(Moments),
    /// Of [`Function::Distinct`].
    Distinct(Distinct),
    /// Of [`Function::Quantiles`].
    Quantiles(Quantiles),
}

/// Count, mean, and the sum of squared distances from the mean.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    /// Values.
    pub count: u64,
    /// Their mean; 0 without any.
    pub mean: f64,
    /// The sum of the squares of their distances from it.
    pub squares: f64,
}

/// A sum that is beyond 38 digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a sum has more digits than can be kept (38)")]
pub struct Overflow;

/// The first whole number of more than [`DECIMAL_DIGITS_MAX`] digits.
const SUM_END: u128 = 10_u128.pow(DECIMAL_DIGITS_MAX as u32);

/// Checks that a sum has no more digits than are kept: what 128 bits hold is a little more.
fn check_sum(sum: i128) -> Result<(), Overflow> {
    if sum.unsigned_abs() < SUM_END { Ok(()) } else { Err(Overflow) }
}

impl Aggregate {
    /// Checks that the column is there and of a kind that the function is for.
    ///
    /// # Errors
    /// What is wrong, in a line.
    pub fn check(&self, columns: &[Column]) -> Result<(), String> {
        let Some(at) = self.column else {
            let is_count = self.function == Function::Count;
            return if is_count { Ok(()) } else { Err(format!("{:?} needs a column", self.function)) };
        };
        let column =
            columns.get(at).ok_or_else(|| format!("an aggregate names column {at}, which is not there"))?;
        let needs_numbers =
            !matches!(self.function, Function::Count | Function::Min | Function::Max | Function::Distinct);
        if needs_numbers && column.kind() == Kind::Raw {
            return Err(format!("{:?} is of numbers, and {} is not", self.function, column.place));
        }
        Ok(())
    }

    /// The state where no value was seen, of a column of `kind`.
    pub fn empty(&self, kind: Option<Kind>) -> State {
        match self.function {
            Function::Count => State::Count(0),
            Function::Sum | Function::Average if kind == Some(Kind::Real) => State::Sum(0, Value::Real(0.0)),
            Function::Sum | Function::Average => State::Sum(0, Value::Decimal(0)),
            Function::Min => State::Min(Value::Null),
            Function::Max => State::Max(Value::Null),
            Function::Variance => State::Variance(Moments::default()),
            Function::Distinct => State::Distinct(Distinct::default()),
            Function::Quantiles => State::Quantiles(Quantiles::default()),
        }
    }
}

impl Moments {
    /// One value more.
    #[inline]
    pub fn add(&mut self, value: f64) {
        self.count += 1;
        let distance = value - self.mean;
        self.mean += distance / self.count as f64;
        self.squares += distance * (value - self.mean);
    }

    /// Those of both together.
    pub fn merge(&mut self, other: &Moments) {
        match (self.count, other.count) {
            (_, 0) => return,
            (0, _) => return *self = *other,
            _ => {}
        }
        let (own, others) = (self.count as f64, other.count as f64);
        let distance = other.mean - self.mean;
        self.count = self.count.saturating_add(other.count);
        self.mean += distance * others / (own + others);
        self.squares += other.squares + distance * distance * own * others / (own + others);
    }

    /// The variance of all values there are; `None` without any.
    pub fn of_population(&self) -> Option<f64> {
        (self.count > 0).then(|| self.squares / self.count as f64)
    }

    /// The variance that a sample lets expect; `None` for less than two values.
    pub fn of_sample(&self) -> Option<f64> {
        (self.count > 1).then(|| self.squares / (self.count - 1) as f64)
    }
}

impl State {
    /// Puts the state of the same aggregate over other rows to it.
    ///
    /// # Errors
    /// [`Overflow`]. States of different aggregates are not put together: the own one stays.
    pub fn merge(&mut self, other: &State) -> Result<(), Overflow> {
        match (self, other) {
            (State::Count(own), State::Count(other)) => *own = own.saturating_add(*other),
            (State::Sum(own, sum), State::Sum(other, others)) => {
                *own = own.saturating_add(*other);
                match (sum, others) {
                    (Value::Real(sum), Value::Real(other)) => *sum += other,
                    (Value::Decimal(sum), Value::Decimal(other)) => {
                        *sum = sum.checked_add(*other).ok_or(Overflow)?;
                        check_sum(*sum)?;
                    }
                    _ => {}
                }
            }
            (State::Min(own), State::Min(other)) => {
                replace_if(own, other, Ordering::is_lt);
            }
            (State::Max(own), State::Max(other)) => {
                replace_if(own, other, Ordering::is_gt);
            }
            (State::Variance(own), State::Variance(other)) => own.merge(other),
            (State::Distinct(own), State::Distinct(other)) => own.merge(other),
            (State::Quantiles(own), State::Quantiles(other)) => own.merge(other),
            _ => {}
        }
        Ok(())
    }
}

/// Takes `other` for `own` if that is null, or `other` stands to it as `is_better` says.
fn replace_if(own: &mut Value, other: &Value, is_better: fn(Ordering) -> bool) {
    if *own == Value::Null || other.compare(own).is_some_and(is_better) {
        own.clone_from(other);
    }
}
