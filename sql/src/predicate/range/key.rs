//! Row keys with certain values at certain positions.

use std::ops::Bound;

use bytes::Bytes;
use client::columns::RowRange;
use columnar::{ColumnLocation, Span};

/// A column of the row key, and the ranges of its values' bytes.
pub struct Limited {
    /// The position in the key.
    pub location: ColumnLocation,
    /// The byte ranges, in order.
    pub spans: Vec<Span>,
}

impl Limited {
    /// Whether all its values are known, so that the position of the next part is known.
    pub fn is_of_points(&self) -> bool {
        let is_rest = matches!(self.location, ColumnLocation::RowBytes { length: None, .. });
        !is_rest && self.spans.iter().all(|span| span.point().is_some())
    }
}

/// Prefixes of row keys.
pub struct Prefixes {
    bytes: Vec<Vec<u8>>,
    /// For separated parts: the start offset, the separator, and the index of the next part.
    parts: Option<(usize, Bytes, usize)>,
}

impl Default for Prefixes {
    /// One empty prefix.
    fn default() -> Prefixes {
        Prefixes { bytes: vec![Vec::new()], parts: None }
    }
}

impl Prefixes {
    /// Whether a column starts where the prefixes end.
    pub fn are_followed_by(&self, location: &ColumnLocation) -> bool {
        // All prefixes have the same length, unless they consist of separated parts.
        let end = self.bytes.first().map(Vec::len);
        match (location, &self.parts) {
            (ColumnLocation::RowBytes { offset, .. }, None) => Some(*offset) == end,
            (ColumnLocation::RowPart { offset, part: 0, .. }, None) => Some(*offset) == end,
            (ColumnLocation::RowPart { offset, separator, part }, Some((start, between, next))) => {
                offset == start && separator == between && part == next
            }
            _ => false,
        }
    }

    /// Appends each of the column's values to each prefix. Does nothing and returns false if values
    /// are unknown or the result would exceed `most` prefixes.
    pub fn extend(&mut self, column: &Limited, most: usize) -> bool {
        if !column.is_of_points() || self.bytes.len() * column.spans.len() > most {
            return false;
        }
        let length = match column.location {
            ColumnLocation::RowBytes { length, .. } => length,
            _ => None,
        };
        let values = column.spans.iter().filter_map(Span::point);
        // A fixed-length column has no values of another length.
        let values: Vec<&[u8]> =
            values.filter(|value| length.is_none_or(|length| value.len() == length)).collect();
        let start =
            self.parts.as_ref().map_or_else(|| self.bytes.first().map_or(0, Vec::len), |(start, ..)| *start);
        let extended = self.bytes.iter().flat_map(|prefix| {
            let before = self.with_separator(prefix);
            values.iter().map(move |value| [&before[..], value].concat())
        });
        self.bytes = extended.collect();
        if let ColumnLocation::RowPart { separator, part, .. } = &column.location {
            self.parts = Some((start, separator.clone(), part + 1));
        }
        true
    }

    /// The prefix, followed by the separator if another part follows.
    fn with_separator(&self, prefix: &[u8]) -> Vec<u8> {
        let separator = self.parts.as_ref().map(|(_, separator, _)| &separator[..]);
        [prefix, separator.unwrap_or_default()].concat()
    }

    /// The rows that start with the prefixes.
    pub fn rows(&self) -> Vec<RowRange> {
        let rows = |prefix: &Vec<u8>| {
            // A separator or nothing may follow the last part.
            let stop = prefix_successor(&self.with_separator(prefix)).unwrap_or_default();
            RowRange { start: prefix.clone().into(), stop: stop.into() }
        };
        self.bytes.iter().map(rows).collect()
    }

    /// The rows that start with the prefixes, followed by a value of the column; about `most`
    /// ranges.
    pub fn rows_with_values(&self, column: &Limited, most: usize) -> Vec<RowRange> {
        let share = column.spans.len().div_ceil((most / self.bytes.len().max(1)).max(1)).max(1);
        let spans: Vec<Span> = column.spans.chunks(share).map(around).collect();
        let prefixes = self.bytes.iter().map(|prefix| self.with_separator(prefix));
        prefixes
            .flat_map(|prefix| {
                spans.iter().filter_map(|span| rows(&prefix, span, &column.location)).collect::<Vec<_>>()
            })
            .collect()
    }
}

/// The smallest span that covers all of `spans`.
fn around(spans: &[Span]) -> Span {
    Span { lower: spans[0].lower.clone(), upper: spans[spans.len() - 1].upper.clone() }
}

/// The rows that start with `prefix` followed by a value of `span`; `None` if there are none.
fn rows(prefix: &[u8], span: &Span, location: &ColumnLocation) -> Option<RowRange> {
    let start = start(prefix, &span.lower, location)?;
    match stop(prefix, span, location) {
        None => Some(RowRange { start: start.into(), stop: Bytes::new() }),
        Some(stop) => (start < stop).then(|| RowRange { start: start.into(), stop: stop.into() }),
    }
}

fn start(prefix: &[u8], lower: &Bound<Vec<u8>>, location: &ColumnLocation) -> Option<Vec<u8>> {
    let with = |value: &[u8]| [prefix, value].concat();
    match (lower, location) {
        (Bound::Unbounded, _) => Some(prefix.to_vec()),
        (Bound::Excluded(value), ColumnLocation::RowBytes { length: None, .. }) => {
            Some(with(&[value, &[0][..]].concat()))
        }
        (Bound::Excluded(value), ColumnLocation::RowBytes { length: Some(length), .. })
            if value.len() == *length =>
        {
            prefix_successor(&with(value))
        }
        (Bound::Included(value) | Bound::Excluded(value), _) => Some(with(value)),
    }
}

/// The first row after the range; `None` if the range has no end.
fn stop(prefix: &[u8], span: &Span, location: &ColumnLocation) -> Option<Vec<u8>> {
    let with = |value: &[u8]| [prefix, value].concat();
    let (value, is_included) = match &span.upper {
        Bound::Unbounded => return prefix_successor(prefix),
        Bound::Included(value) => (value, true),
        Bound::Excluded(value) => (value, false),
    };
    match location {
        ColumnLocation::RowBytes { length: None, .. } if is_included => {
            Some(with(&[value, &[0][..]].concat()))
        }
        // A value of this length may be less than a longer bound and equal its beginning.
        ColumnLocation::RowBytes { length: Some(length), .. } if value.len() > *length => {
            prefix_successor(&with(&value[..*length]))
        }
        ColumnLocation::RowBytes { length: Some(length), .. } if is_included && value.len() == *length => {
            prefix_successor(&with(value))
        }
        ColumnLocation::RowPart { separator, .. } => {
            let least = match &span.lower {
                Bound::Unbounded => &[][..],
                Bound::Included(least) | Bound::Excluded(least) => least,
            };
            // A prefix of a part is less than the part, but followed by the separator it may be
            // greater.
            let shorter = (0..value.len() + usize::from(is_included)).map(|length| &value[..length]);
            let followed =
                shorter.filter(|part| *part >= least).map(|part| with(&[part, &separator[..]].concat()));
            followed
                .map(|row| prefix_successor(&row))
                .try_fold(with(value), |furthest, stop| Some(furthest.max(stop?)))
        }
        _ => Some(with(value)),
    }
}

/// The first row after all rows that start with `prefix`; `None` if there is none.
pub fn prefix_successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte < u8::MAX)?;
    let mut bytes = prefix[..=last].to_vec();
    bytes[last] += 1;
    Some(bytes)
}
