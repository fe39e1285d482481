//! Which rows can meet a condition, by their keys.
//!
//! A row key is taken from its beginning: as long as the condition says which values a part has, the bytes of each are put
//! behind one another; the part behind them may lie between bounds. The condition itself is still looked at, so the ranges
//! may be too wide, never too narrow.
//!
//! `limits` is what a condition says of a column, `key` how that becomes rows.

mod key;
mod limits;

use bytes::Bytes;
use client::columns::RowRange;
use proto::grampus::Predicate;

use crate::declaration::{Declaration, DeclaredColumn};
use crate::predicate::conjuncts;
use key::{Limited, Prefixes};
use limits::Limits;

/// Ranges at most: each is asked for by itself.
const RANGES_MAX: usize = 64;

/// The rows outside of which the condition is true for none: ranges in order and apart, at least one.
pub fn of(predicate: &Predicate, declaration: &Declaration) -> Vec<RowRange> {
    let conjuncts: Vec<&Predicate> = conjuncts(predicate).iter().collect();
    let mut ranges = of_all(&conjuncts, declaration);
    for alternatives in conjuncts.iter().filter_map(|part| part.any.as_ref()) {
        // Each of the alternatives together with all the rest.
        let of_one = |part| {
            let both: Vec<&Predicate> = conjuncts.iter().copied().chain(self::conjuncts(part)).collect();
            of_all(&both, declaration)
        };
        let either = alternatives.predicate.iter().flat_map(of_one).collect();
        ranges = intersection(&ranges, &joined(either));
    }
    match ranges.is_empty() {
        // One is asked all the same, so that there is an answer: of a count, zero.
        true => vec![RowRange { start: Bytes::from_static(&[0]), stop: Bytes::from_static(&[0, 0]) }],
        false => few(ranges),
    }
}

/// The rows that can meet all conditions of a list.
fn of_all(conjuncts: &[&Predicate], declaration: &Declaration) -> Vec<RowRange> {
    let limited = |(at, column): (usize, &DeclaredColumn)| {
        let limits = Limits::of(at as u32, column, conjuncts)?;
        Some(Limited { place: column.place.clone(), spans: limits.spans(column)? })
    };
    let columns: Vec<Limited> = declaration.columns.iter().enumerate().filter_map(limited).collect();
    let first = Prefixes::default();
    // Several columns may begin where the key does: the whole key, and its first part.
    let chains = columns.iter().filter(|column| first.are_followed_by(&column.place));
    chains.fold(vec![RowRange::default()], |ranges, column| {
        intersection(&ranges, &joined(from(column, &columns)))
    })
}

/// The rows that `first` and the columns behind it leave.
fn from<'a>(first: &'a Limited, columns: &'a [Limited]) -> Vec<RowRange> {
    let (mut prefixes, mut column) = (Prefixes::default(), first);
    loop {
        if !prefixes.extend(column, RANGES_MAX) {
            return prefixes.rows_of(column, RANGES_MAX);
        }
        let following = columns.iter().filter(|column| prefixes.are_followed_by(&column.place));
        // One whose values are known leads further.
        match following.max_by_key(|column| column.is_of_points()) {
            Some(next) => column = next,
            None => return prefixes.rows(),
        }
    }
}

/// Ranges in order, those that touch made one.
fn joined(mut ranges: Vec<RowRange>) -> Vec<RowRange> {
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
    joined(both.collect())
}

/// Not more than there may be, by taking in what is between neighbours.
fn few(ranges: Vec<RowRange>) -> Vec<RowRange> {
    let share = ranges.len().div_ceil(RANGES_MAX).max(1);
    let around = |near: &[RowRange]| RowRange {
        start: near[0].start.clone(),
        stop: near[near.len() - 1].stop.clone(),
    };
    ranges.chunks(share).map(around).collect()
}

#[cfg(test)]
mod tests;
