//! Conditions on rows of typed columns, with null as SQL has it.

mod evaluate;
mod like;

use std::cmp::Ordering;

use crate::aggregation::Used;
use crate::column::Column;
use crate::value::Value;

pub use evaluate::Truth;
pub use like::Pattern;

/// How deep conditions may be nested.
pub const DEPTH_MAX: usize = 64;

/// A condition. Columns are named by their places in a list.
#[derive(Clone, Debug, PartialEq)]
pub enum Predicate {
    /// All hold; without any, true.
    All(Vec<Predicate>),
    /// At least one holds; without any, false.
    Any(Vec<Predicate>),
    /// It is false.
    Not(Box<Predicate>),
    /// A column against a value.
    Compare(usize, Operator, Value),
    /// Two columns.
    CompareColumns(usize, Operator, usize),
    /// A column is one of these.
    In(usize, Vec<Value>),
    /// A column has no value.
    IsNull(usize),
    /// A column of bytes is like a pattern.
    Like(usize, Pattern),
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // Say what they are.
pub enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Operator {
    /// Whether it holds for a left value that stands so to the right one.
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
    /// Checks that all columns are there and that what is compared is of one kind.
    ///
    /// # Errors
    /// What is wrong, in a line.
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
                .ok_or_else(|| format!("a condition names column {at}, which is not there"))
        };
        let check_value = |at: usize, value: &Value| {
            let kind = kind(at)?;
            if value.is_of(kind) {
                return Ok(());
            }
            Err(format!("{} is compared with a value of another kind", columns[at].place))
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
                Err(format!("{} and {} are of different kinds", columns[*left].place, columns[*right].place))
            }
            Predicate::In(at, values) => values.iter().try_for_each(|value| check_value(*at, value)),
            Predicate::IsNull(at) => kind(*at).map(|_| ()),
            Predicate::Like(at, _) => check_value(*at, &Value::Raw(bytes::Bytes::new()))
                .map_err(|_| format!("column {at} is not of bytes")),
        }
    }

    /// The same over a list of those columns only.
    #[must_use]
    pub fn of_columns(self, used: &Used) -> Predicate {
        let each = |parts: Vec<Predicate>| parts.into_iter().map(|part| part.of_columns(used)).collect();
        match self {
            Predicate::All(parts) => Predicate::All(each(parts)),
            Predicate::Any(parts) => Predicate::Any(each(parts)),
            Predicate::Not(part) => Predicate::Not(Box::new(part.of_columns(used))),
            Predicate::Compare(at, operator, value) => Predicate::Compare(used.place(at), operator, value),
            Predicate::CompareColumns(left, operator, right) => {
                Predicate::CompareColumns(used.place(left), operator, used.place(right))
            }
            Predicate::In(at, values) => Predicate::In(used.place(at), values),
            Predicate::IsNull(at) => Predicate::IsNull(used.place(at)),
            Predicate::Like(at, pattern) => Predicate::Like(used.place(at), pattern),
        }
    }

    /// The columns it looks at, each once, in order.
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
