//! What a condition says of the values of one column.

use std::cmp::Ordering;
use std::ops::Bound;

use columnar::{Encoding, Place, Span, Value};
use proto::grampus::Predicate;
use proto::grampus::predicate::{Comparison, In, Like, Operator};
use wire::convert::columns;

use super::key::behind;
use crate::declaration::DeclaredColumn;

/// Comparisons of two lists at most, one with the other; beyond that one of them is left out.
const COMPARED_MAX: usize = 1 << 16;

/// Values between two others.
#[derive(Clone, Debug)]
struct Interval {
    lower: Bound<Value>,
    upper: Bound<Value>,
}

/// Values of which a column has one, if the condition is true.
pub struct Limits(Vec<Interval>);

impl Limits {
    /// What `conjuncts` say of the column in place `at` of the declaration; nothing if it is no part of the row key, or they
    /// do not name it.
    pub fn of(at: u32, column: &DeclaredColumn, conjuncts: &[&Predicate]) -> Option<Limits> {
        if matches!(column.place, Place::Cell { .. }) {
            return None;
        }
        let said = conjuncts.iter().filter_map(|predicate| {
            let comparison = predicate.comparison.as_ref().filter(|one| one.column == Some(at));
            let list = predicate.r#in.as_ref().filter(|list| list.column == Some(at));
            let like = predicate.like.as_ref().filter(|like| like.column == Some(at));
            comparison.and_then(compared).or_else(|| list.and_then(listed)).or_else(|| like.and_then(alike))
        });
        said.reduce(|one, other| intersection(&one, &other)).map(Limits)
    }

    /// Where the bytes of the values lie, in order; nothing if that may be anywhere.
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

/// A text that is filled up with spaces to its length, so that it is one value.
fn filled(column: &DeclaredColumn, lower: &Bound<Value>, upper: &Bound<Value>) -> Option<Vec<u8>> {
    let (Encoding::PhoenixChar, Place::RowBytes { length: Some(length), .. }) =
        (column.encoding, &column.place)
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

fn compared(comparison: &Comparison) -> Option<Vec<Interval>> {
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

fn listed(list: &In) -> Option<Vec<Interval>> {
    let one = |value| {
        let value = columns::value(value).ok()?;
        Some(Interval { lower: Bound::Included(value.clone()), upper: Bound::Included(value) })
    };
    let values = list.value.iter().map(one).collect::<Option<Vec<_>>>()?;
    // No value is equal to null.
    Some(values.into_iter().filter(|one| one.lower != Bound::Included(Value::Null)).collect())
}

/// Like a pattern is only what begins as it does.
fn alike(like: &Like) -> Option<Vec<Interval>> {
    let pattern = like.pattern.as_deref().unwrap_or_default();
    let escape = like.escape.as_deref().unwrap_or_default();
    let is_special = |byte: &u8| matches!(byte, b'%' | b'_') || escape.contains(byte);
    let beginning: Vec<u8> = pattern.iter().copied().take_while(|byte| !is_special(byte)).collect();
    let upper =
        behind(&beginning).map_or(Bound::Unbounded, |bytes| Bound::Excluded(Value::Raw(bytes.into())));
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
    /// What is in both; nothing if there is none.
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

/// The one of two bounds that leaves less: the `further` one, or the one that is itself left out.
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
