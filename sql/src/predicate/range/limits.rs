//! The limits that a condition sets on the values of one column.

use std::cmp::Ordering;
use std::ops::Bound;

use columnar::{ColumnLocation, Encoding, Span, Value};
use proto::grampus::Predicate;
use proto::grampus::predicate::{Comparison, In, Like, Operator};
use wire::convert::columns;

use super::key::prefix_successor;
use crate::declaration::DeclaredColumn;

/// Maximum number of comparisons to intersect two lists; beyond it one list is ignored.
const COMPARED_MAX: usize = 1 << 16;

/// An interval of values.
#[derive(Clone, Debug)]
struct Interval {
    lower: Bound<Value>,
    upper: Bound<Value>,
}

/// The intervals that must contain the column's value if the condition is true.
pub struct Limits(Vec<Interval>);

impl Limits {
    /// The limits that `conjuncts` set on the column with index `at` in the declaration; `None` if
    /// the column is not part of the row key, or the conjuncts do not restrict it.
    pub fn new(at: u32, column: &DeclaredColumn, conjuncts: &[&Predicate]) -> Option<Limits> {
        if matches!(column.location, ColumnLocation::Cell { .. }) {
            return None;
        }
        let restrictions = conjuncts.iter().filter_map(|predicate| {
            let comparison = predicate.comparison.as_ref().filter(|one| one.column == Some(at));
            let list = predicate.r#in.as_ref().filter(|list| list.column == Some(at));
            let like = predicate.like.as_ref().filter(|like| like.column == Some(at));
            comparison
                .and_then(comparison_intervals)
                .or_else(|| list.and_then(list_intervals))
                .or_else(|| like.and_then(like_intervals))
        });
        restrictions.reduce(|one, other| intersection(&one, &other)).map(Limits)
    }

    /// The ranges of the values' bytes, in order; `None` if they are not restricted.
    pub fn spans(&self, column: &DeclaredColumn) -> Option<Vec<Span>> {
        let scale = column.sql_type.scale();
        let mut spans = Vec::new();
        for Interval { lower, upper } in &self.0 {
            match filled(column, lower, upper) {
                Some(value) => spans.push(Span::including(value.clone(), value)),
                None => spans.extend(column.encoding.spans(lower.as_ref(), upper.as_ref(), scale)?),
            }
        }
        let begin = |span: &Span| match &span.lower {
            Bound::Unbounded => Vec::new(),
            Bound::Included(bytes) | Bound::Excluded(bytes) => bytes.clone(),
        };
        spans.sort_by_cached_key(begin);
        spans.dedup();
        Some(spans)
    }
}

/// The value padded with spaces to the column's length, if the interval is a single text.
fn filled(column: &DeclaredColumn, lower: &Bound<Value>, upper: &Bound<Value>) -> Option<Vec<u8>> {
    let (Encoding::PhoenixChar, ColumnLocation::RowBytes { length: Some(length), .. }) =
        (column.encoding, &column.location)
    else {
        return None;
    };
    let (Bound::Included(Value::Raw(one)), Bound::Included(Value::Raw(other))) = (lower, upper) else {
        return None;
    };
    let mut bytes = one.to_vec();
    bytes.resize(bytes.len().max(*length), b' ');
    (one == other).then_some(bytes)
}

fn comparison_intervals(comparison: &Comparison) -> Option<Vec<Interval>> {
    let value = columns::value(comparison.value.as_ref()?).ok()?;
    let (lower, upper) = match comparison.operator() {
        _ if value == Value::Null => return None,
        Operator::NotEqual => return None,
        Operator::Equal => (Bound::Included(value.clone()), Bound::Included(value)),
        Operator::Less => (Bound::Unbounded, Bound::Excluded(value)),
        Operator::LessOrEqual => (Bound::Unbounded, Bound::Included(value)),
        Operator::Greater => (Bound::Excluded(value), Bound::Unbounded),
        Operator::GreaterOrEqual => (Bound::Included(value), Bound::Unbounded),
    };
    Some(vec![Interval { lower, upper }])
}

fn list_intervals(list: &In) -> Option<Vec<Interval>> {
    let one = |value| {
        let value = columns::value(value).ok()?;
        Some(Interval { lower: Bound::Included(value.clone()), upper: Bound::Included(value) })
    };
    let values = list.value.iter().map(one).collect::<Option<Vec<_>>>()?;
    // No value equals null.
    Some(values.into_iter().filter(|one| one.lower != Bound::Included(Value::Null)).collect())
}

/// A value that matches a pattern starts with the pattern's literal prefix.
fn like_intervals(like: &Like) -> Option<Vec<Interval>> {
    let pattern = like.pattern.as_deref().unwrap_or_default();
    let escape = like.escape.as_deref().unwrap_or_default();
    let is_special = |byte: &u8| matches!(byte, b'%' | b'_') || escape.contains(byte);
    let beginning: Vec<u8> = pattern.iter().copied().take_while(|byte| !is_special(byte)).collect();
    let upper = prefix_successor(&beginning)
        .map_or(Bound::Unbounded, |bytes| Bound::Excluded(Value::Raw(bytes.into())));
    (!beginning.is_empty())
        .then(|| vec![Interval { lower: Bound::Included(Value::Raw(beginning.into())), upper }])
}

fn intersection(one: &[Interval], other: &[Interval]) -> Vec<Interval> {
    if one.len() * other.len() > COMPARED_MAX {
        return one.to_vec();
    }
    let both = one.iter().flat_map(|one| other.iter().filter_map(|other| one.intersection(other)));
    both.collect()
}

impl Interval {
    /// The intersection; `None` if it is empty.
    fn intersection(&self, other: &Interval) -> Option<Interval> {
        let lower = stricter(&self.lower, &other.lower, Ordering::Greater);
        let upper = stricter(&self.upper, &other.upper, Ordering::Less);
        let is_empty = match (&lower, &upper) {
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
            (Bound::Included(lower), Bound::Included(upper)) => {
                lower.compare(upper).is_some_and(Ordering::is_gt)
            }
            (
                Bound::Included(lower) | Bound::Excluded(lower),
                Bound::Included(upper) | Bound::Excluded(upper),
            ) => lower.compare(upper).is_some_and(Ordering::is_ge),
        };
        (!is_empty).then_some(Interval { lower, upper })
    }
}

/// The stricter of two bounds: the `further` one, or the exclusive one if their values are equal.
fn stricter(one: &Bound<Value>, other: &Bound<Value>, further: Ordering) -> Bound<Value> {
    let (one_value, other_value) = match (one, other) {
        (Bound::Unbounded, bound) | (bound, Bound::Unbounded) => return bound.clone(),
        (Bound::Included(one) | Bound::Excluded(one), Bound::Included(other) | Bound::Excluded(other)) => {
            (one, other)
        }
    };
    match one_value.compare(other_value) {
        Some(order) if order == further => one.clone(),
        Some(Ordering::Equal) if matches!(one, Bound::Excluded(_)) => one.clone(),
        _ => other.clone(),
    }
}
