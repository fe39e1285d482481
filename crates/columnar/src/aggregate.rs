//! Aggregate functions and their mergeable states.

mod accumulator;
mod distinct;
mod quantiles;

use std::cmp::Ordering;

pub(crate) use accumulator::Accumulator;
pub use distinct::Distinct;
pub use quantiles::Quantiles;

use crate::column::{Column, DECIMAL_DIGITS_MAX};
use crate::value::{Kind, Value};

/// An aggregate function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Function {
    /// Rows, or non-null values if a column is given.
    Count,
    /// Sum of numbers.
    Sum,
    /// Smallest value.
    Min,
    /// Greatest value.
    Max,
    /// Mean of numbers, as a sum and a count.
    Average,
    /// Count, mean and sum of squared deviations of numbers, for variances and standard deviations.
    Variance,
    /// Approximate number of distinct values.
    Distinct,
    /// Approximate quantiles of numbers.
    Quantiles,
}

/// A function and the index of its column in a list. Only `Count` may have no column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Aggregate {
    /// The function.
    pub function: Function,
    /// Index of its column.
    pub column: Option<usize>,
}

/// Intermediate result of an aggregate for one group. States of the same aggregate over different
/// rows can be merged.
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// State of [`Function::Count`].
    Count(u64),
    /// State of [`Function::Sum`] and [`Function::Average`]: the number of values, and their sum.
    /// The sum is real, or a decimal that contains the whole or unscaled sum.
    Sum(u64, Value),
    /// State of [`Function::Min`].
    Min(Value),
    /// State of [`Function::Max`].
    Max(Value),
    /// State of [`Function::Variance`].
    Variance(Moments),
    /// State of [`Function::Distinct`].
    Distinct(Distinct),
    /// State of [`Function::Quantiles`].
    Quantiles(Quantiles),
}

/// Count, mean, and the sum of squared deviations from the mean.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    /// Number of values.
    pub count: u64,
    /// Their mean; 0 for no values.
    pub mean: f64,
    /// Sum of the squared deviations from the mean.
    pub squares: f64,
}

/// A sum has more than 38 digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a sum has more than 38 digits")]
pub struct Overflow;

/// The smallest number with more than [`DECIMAL_DIGITS_MAX`] digits.
const SUM_END: u128 = 10_u128.pow(DECIMAL_DIGITS_MAX as u32);

/// Checks the number of digits of a sum. 128 bits can hold slightly more than the limit.
fn check_sum(sum: i128) -> Result<(), Overflow> {
    if sum.unsigned_abs() < SUM_END { Ok(()) } else { Err(Overflow) }
}

impl Aggregate {
    /// Checks that the column exists and that its kind fits the function.
    ///
    /// # Errors
    /// A one-line description of the problem.
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
            return Err(format!("{:?} is of numbers, and {} is not", self.function, column.location));
        }
        Ok(())
    }

    /// The state for no values of a column of `kind`.
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
    /// Adds one value.
    #[inline]
    pub fn add(&mut self, value: f64) {
        self.count += 1;
        let distance = value - self.mean;
        self.mean += distance / self.count as f64;
        self.squares += distance * (value - self.mean);
    }

    /// Adds the values of `other`.
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

    /// The population variance; `None` for no values.
    pub fn population_variance(&self) -> Option<f64> {
        (self.count > 0).then(|| self.squares / self.count as f64)
    }

    /// The sample variance; `None` for fewer than two values.
    pub fn sample_variance(&self) -> Option<f64> {
        (self.count > 1).then(|| self.squares / (self.count - 1) as f64)
    }
}

impl State {
    /// Adds the state of the same aggregate over other rows.
    ///
    /// # Errors
    /// [`Overflow`]. A state of a different aggregate is ignored.
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

/// Replaces `own` by `other` if `own` is null, or if `is_better` holds for the order of `other` to
/// `own`.
fn replace_if(own: &mut Value, other: &Value, is_better: fn(Ordering) -> bool) {
    if *own == Value::Null || other.compare(own).is_some_and(is_better) {
        own.clone_from(other);
    }
}
