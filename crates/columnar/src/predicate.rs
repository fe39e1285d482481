//! Conditions on rows of typed columns, with SQL's null semantics.

mod evaluate;
mod like;

use std::cmp::Ordering;

use crate::aggregation::ColumnMapping;
use crate::column::Column;
use crate::value::Value;

pub use evaluate::Truth;
pub use like::Pattern;

/// Maximum nesting depth of conditions.
pub const DEPTH_MAX: usize = 64;

/// A condition. Columns are referenced by index.
#[derive(Clone, Debug, PartialEq)]
pub enum Predicate {
    /// All conditions hold; true if empty.
    All(Vec<Predicate>),
    /// At least one condition holds; false if empty.
    Any(Vec<Predicate>),
    /// The condition is false.
    Not(Box<Predicate>),
    /// Compares a column with a value.
    Compare(usize, Operator, Value),
    /// Compares two columns.
    CompareColumns(usize, Operator, usize),
    /// The column's value is one of these.
    In(usize, Vec<Value>),
    /// The column has no value.
    IsNull(usize),
    /// A column of bytes matches a pattern.
    Like(usize, Pattern),
}

/// A comparison operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // The names are clear.
pub enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Operator {
    /// Whether `left operator right` holds, where `ordering` compares left with right.
    #[inline]
    pub fn holds(self, ordering: Ordering) -> bool {
        match self {
            Operator::Equal => ordering.is_eq(),
            Operator::NotEqual => ordering.is_ne(),
            Operator::Less => ordering.is_lt(),
            Operator::LessOrEqual => ordering.is_le(),
            Operator::Greater => ordering.is_gt(),
            Operator::GreaterOrEqual => ordering.is_ge(),
        }
    }
}

impl Predicate {
    /// Checks that all columns exist and that operands have the same kind.
    ///
    /// # Errors
    /// A one-line description of the problem.
    pub fn check(&self, columns: &[Column]) -> Result<(), String> {
        self.check_at(columns, 0)
    }

    fn check_at(&self, columns: &[Column], depth: usize) -> Result<(), String> {
        if depth > DEPTH_MAX {
            return Err(format!("a condition is nested deeper than {DEPTH_MAX}"));
        }
        let kind = |at: usize| {
            columns
                .get(at)
                .map(Column::kind)
                .ok_or_else(|| format!("a condition names column {at}, which does not exist"))
        };
        let check_value = |at: usize, value: &Value| {
            let kind = kind(at)?;
            if value.is_of(kind) {
                return Ok(());
            }
            Err(format!("{} is compared with a value of another kind", columns[at].location))
        };
        match self {
            Predicate::All(parts) | Predicate::Any(parts) => {
                parts.iter().try_for_each(|part| part.check_at(columns, depth + 1))
            }
            Predicate::Not(part) => part.check_at(columns, depth + 1),
            Predicate::Compare(at, _, value) => check_value(*at, value),
            Predicate::CompareColumns(left, _, right) => {
                if kind(*left)? == kind(*right)? {
                    return Ok(());
                }
                Err(format!(
                    "{} and {} are of different kinds",
                    columns[*left].location, columns[*right].location
                ))
            }
            Predicate::In(at, values) => values.iter().try_for_each(|value| check_value(*at, value)),
            Predicate::IsNull(at) => kind(*at).map(|_| ()),
            Predicate::Like(at, _) => check_value(*at, &Value::Raw(bytes::Bytes::new()))
                .map_err(|_| format!("column {at} does not contain bytes")),
        }
    }

    /// Rewrites column indexes to positions among `mapping` columns.
    #[must_use]
    pub fn remap(self, mapping: &ColumnMapping) -> Predicate {
        let each = |parts: Vec<Predicate>| parts.into_iter().map(|part| part.remap(mapping)).collect();
        match self {
            Predicate::All(parts) => Predicate::All(each(parts)),
            Predicate::Any(parts) => Predicate::Any(each(parts)),
            Predicate::Not(part) => Predicate::Not(Box::new(part.remap(mapping))),
            Predicate::Compare(at, operator, value) => {
                Predicate::Compare(mapping.position(at), operator, value)
            }
            Predicate::CompareColumns(left, operator, right) => {
                Predicate::CompareColumns(mapping.position(left), operator, mapping.position(right))
            }
            Predicate::In(at, values) => Predicate::In(mapping.position(at), values),
            Predicate::IsNull(at) => Predicate::IsNull(mapping.position(at)),
            Predicate::Like(at, pattern) => Predicate::Like(mapping.position(at), pattern),
        }
    }

    /// The columns that it reads, sorted, without duplicates.
    pub fn columns(&self) -> Vec<usize> {
        let mut columns = Vec::new();
        self.add_columns(&mut columns);
        columns.sort_unstable();
        columns.dedup();
        columns
    }

    fn add_columns(&self, columns: &mut Vec<usize>) {
        match self {
            Predicate::All(parts) | Predicate::Any(parts) => {
                parts.iter().for_each(|part| part.add_columns(columns));
            }
            Predicate::Not(part) => part.add_columns(columns),
            Predicate::CompareColumns(left, _, right) => columns.extend([*left, *right]),
            Predicate::Compare(at, ..)
            | Predicate::In(at, _)
            | Predicate::IsNull(at)
            | Predicate::Like(at, _) => {
                columns.push(*at);
            }
        }
    }
}
