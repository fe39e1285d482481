//! The row ranges that can meet a condition.
//!
//! A row key is composed from its beginning. While the condition determines the values of a part,
//! the bytes of each value are appended. The part after them may lie between bounds. The condition
//! itself is still evaluated, so ranges may be too wide but never too narrow.
//!
//! `limits` derives what a condition implies for a column; `key` converts that to rows.

mod key;
mod limits;

use bytes::Bytes;
use client::columns::RowRange;
use proto::grampus::Predicate;

use crate::declaration::{Declaration, DeclaredColumn};
use crate::predicate::conjuncts;
use key::{Limited, Prefixes};
use limits::Limits;

/// Maximum number of ranges: each needs separate requests.
const RANGES_MAX: usize = 64;

/// The row ranges outside of which no row meets the condition: sorted, disjoint, at least one.
pub fn row_ranges(predicate: &Predicate, declaration: &Declaration) -> Vec<RowRange> {
    let conjuncts: Vec<&Predicate> = conjuncts(predicate).iter().collect();
    let mut ranges = ranges_of_all(&conjuncts, declaration);
    for alternatives in conjuncts.iter().filter_map(|part| part.any.as_ref()) {
        // Combine each alternative with all other conditions.
        let ranges_with = |part| {
            let both: Vec<&Predicate> = conjuncts.iter().copied().chain(self::conjuncts(part)).collect();
            ranges_of_all(&both, declaration)
        };
        let either = alternatives.predicate.iter().flat_map(ranges_with).collect();
        ranges = intersection(&ranges, &merge(either));
    }
    match ranges.is_empty() {
        // Still query one range, so that there is a response: a count of zero, for example.
        true => vec![RowRange { start: Bytes::from_static(&[0]), stop: Bytes::from_static(&[0, 0]) }],
        false => limit_count(ranges),
    }
}

/// The rows that can meet all conditions of a list.
fn ranges_of_all(conjuncts: &[&Predicate], declaration: &Declaration) -> Vec<RowRange> {
    let limited = |(at, column): (usize, &DeclaredColumn)| {
        let limits = Limits::new(at as u32, column, conjuncts)?;
        Some(Limited { location: column.location.clone(), spans: limits.spans(column)? })
    };
    let columns: Vec<Limited> = declaration.columns.iter().enumerate().filter_map(limited).collect();
    let first = Prefixes::default();
    // Several columns may start at the beginning of the key: the whole key, and its first part.
    let chains = columns.iter().filter(|column| first.are_followed_by(&column.location));
    chains.fold(vec![RowRange::default()], |ranges, column| {
        intersection(&ranges, &merge(from(column, &columns)))
    })
}

/// The rows that remain with the limits of `first` and the columns after it.
fn from<'a>(first: &'a Limited, columns: &'a [Limited]) -> Vec<RowRange> {
    let (mut prefixes, mut column) = (Prefixes::default(), first);
    loop {
        if !prefixes.extend(column, RANGES_MAX) {
            return prefixes.rows_with_values(column, RANGES_MAX);
        }
        let following = columns.iter().filter(|column| prefixes.are_followed_by(&column.location));
        // A column with known values allows further columns after it.
        match following.max_by_key(|column| column.is_of_points()) {
            Some(next) => column = next,
            None => return prefixes.rows(),
        }
    }
}

/// Sorts ranges, and merges those that touch or overlap.
fn merge(mut ranges: Vec<RowRange>) -> Vec<RowRange> {
    ranges.sort_by(|one, other| one.start.cmp(&other.start));
    let mut joined: Vec<RowRange> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match joined.last_mut().filter(|last| last.stop.is_empty() || range.start <= last.stop) {
            None => joined.push(range),
            Some(last) if last.stop.is_empty() || range.stop.is_empty() => last.stop = Bytes::new(),
            Some(last) => last.stop = (&last.stop).max(&range.stop).clone(),
        }
    }
    joined
}

fn intersection(one: &[RowRange], other: &[RowRange]) -> Vec<RowRange> {
    let both = one.iter().flat_map(|range| other.iter().filter_map(|other| range.intersection(other)));
    merge(both.collect())
}

/// Reduces the number of ranges to the maximum by merging neighbours with the gap between them.
fn limit_count(ranges: Vec<RowRange>) -> Vec<RowRange> {
    let share = ranges.len().div_ceil(RANGES_MAX).max(1);
    let around = |neighbours: &[RowRange]| RowRange {
        start: neighbours[0].start.clone(),
        stop: neighbours[neighbours.len() - 1].stop.clone(),
    };
    ranges.chunks(share).map(around).collect()
}

#[cfg(test)]
mod tests;
