//! Row keys that have certain values in certain places.

use std::ops::Bound;

use bytes::Bytes;
use client::columns::RowRange;
use columnar::{Place, Span};

/// A column of the row key, and where the bytes of its values lie.
pub struct Limited {
    /// Where in the key.
    pub place: Place,
    /// The bytes, in order.
    pub spans: Vec<Span>,
}

impl Limited {
    /// Whether its values are known, so that they tell where the next part is.
    pub fn is_of_points(&self) -> bool {
        let is_rest = matches!(self.place, Place::RowBytes { length: None, .. });
        !is_rest && self.spans.iter().all(|span| span.point().is_some())
    }
}

/// What row keys begin with.
pub struct Prefixes {
    bytes: Vec<Vec<u8>>,
    /// Where the parts begin whose beginning they are, what is between them, and the number of the next.
    parts: Option<(usize, Bytes, usize)>,
}

impl Default for Prefixes {
    /// Nothing at all.
    fn default() -> Prefixes {
        Prefixes { bytes: vec![Vec::new()], parts: None }
    }
}

impl Prefixes {
    /// Whether a column begins where they end.
    pub fn are_followed_by(&self, place: &Place) -> bool {
        // All of them have one length, unless there are parts.
        let end = self.bytes.first().map(Vec::len);
        match (place, &self.parts) {
            (Place::RowBytes { offset, .. }, None) => Some(*offset) == end,
            (Place::RowPart { offset, part: 0, .. }, None) => Some(*offset) == end,
            (Place::RowPart { offset, separator, part }, Some((start, between, next))) => {
                offset == start && separator == between && part == next
            }
            _ => false,
        }
    }

    /// Puts each of the column's values behind each of them; not if values are not known, or that were more than `most`.
    pub fn extend(&mut self, column: &Limited, most: usize) -> bool {
        if !column.is_of_points() || self.bytes.len() * column.spans.len() > most {
            return false;
        }
        let wanted = match column.place {
            Place::RowBytes { length, .. } => length,
            _ => None,
        };
        let values = column.spans.iter().filter_map(Span::point);
        // No value has another length.
        let values: Vec<&[u8]> =
            values.filter(|value| wanted.is_none_or(|length| value.len() == length)).collect();
        let start =
            self.parts.as_ref().map_or_else(|| self.bytes.first().map_or(0, Vec::len), |(start, ..)| *start);
        let extended = self.bytes.iter().flat_map(|prefix| {
            let before = self.before_next(prefix);
            values.iter().map(move |value| [&before[..], value].concat())
        });
        self.bytes = extended.collect();
        if let Place::RowPart { separator, part, .. } = &column.place {
            self.parts = Some((start, separator.clone(), part + 1));
        }
        true
    }

    /// With the separator, if there is to be one more part.
    fn before_next(&self, prefix: &[u8]) -> Vec<u8> {
        let separator = self.parts.as_ref().map(|(_, separator, _)| &separator[..]);
        [prefix, separator.unwrap_or_default()].concat()
    }

    /// The rows that begin with them.
    pub fn rows(&self) -> Vec<RowRange> {
        let rows = |prefix: &Vec<u8>| {
            // The last part may be followed by a separator, or by nothing.
            let stop = behind(&self.before_next(prefix)).unwrap_or_default();
            RowRange { start: prefix.clone().into(), stop: stop.into() }
        };
        self.bytes.iter().map(rows).collect()
    }

    /// The rows that begin with them and have a value of the column behind that; about `most` ranges.
    pub fn rows_of(&self, column: &Limited, most: usize) -> Vec<RowRange> {
        let share = column.spans.len().div_ceil((most / self.bytes.len().max(1)).max(1)).max(1);
        let spans: Vec<Span> = column.spans.chunks(share).map(around).collect();
        let prefixes = self.bytes.iter().map(|prefix| self.before_next(prefix));
        prefixes
            .flat_map(|prefix| {
                spans.iter().filter_map(|span| rows(&prefix, span, &column.place)).collect::<Vec<_>>()
            })
            .collect()
    }
}

/// What reaches from the first of some to the last.
fn around(spans: &[Span]) -> Span {
    Span { lower: spans[0].lower.clone(), upper: spans[spans.len() - 1].upper.clone() }
}

/// The rows that begin with `prefix` and have a value of `span` behind it; nothing if there can be none.
fn rows(prefix: &[u8], span: &Span, place: &Place) -> Option<RowRange> {
    let start = start(prefix, &span.lower, place)?;
    match stop(prefix, span, place) {
        None => Some(RowRange { start: start.into(), stop: Bytes::new() }),
        Some(stop) => (start < stop).then(|| RowRange { start: start.into(), stop: stop.into() }),
    }
}

fn start(prefix: &[u8], lower: &Bound<Vec<u8>>, place: &Place) -> Option<Vec<u8>> {
    let with = |value: &[u8]| [prefix, value].concat();
    match (lower, place) {
        (Bound::Unbounded, _) => Some(prefix.to_vec()),
        (Bound::Excluded(value), Place::RowBytes { length: None, .. }) => {
            Some(with(&[value, &[0][..]].concat()))
        }
        (Bound::Excluded(value), Place::RowBytes { length: Some(length), .. }) if value.len() == *length => {
            behind(&with(value))
        }
        (Bound::Included(value) | Bound::Excluded(value), _) => Some(with(value)),
    }
}

/// The row behind the last; `None` if there is none.
fn stop(prefix: &[u8], span: &Span, place: &Place) -> Option<Vec<u8>> {
    let with = |value: &[u8]| [prefix, value].concat();
    let (value, is_included) = match &span.upper {
        Bound::Unbounded => return behind(prefix),
        Bound::Included(value) => (value, true),
        Bound::Excluded(value) => (value, false),
    };
    match place {
        Place::RowBytes { length: None, .. } if is_included => Some(with(&[value, &[0][..]].concat())),
        // A value of this length that is less than a longer one may be its beginning.
        Place::RowBytes { length: Some(length), .. } if value.len() > *length => {
            behind(&with(&value[..*length]))
        }
        Place::RowBytes { length: Some(length), .. } if is_included && value.len() == *length => {
            behind(&with(value))
        }
        Place::RowPart { separator, .. } => {
            let least = match &span.lower {
                Bound::Unbounded => &[][..],
                Bound::Included(least) | Bound::Excluded(least) => least,
            };
            // What a part begins with is less than it, and with what follows it may be more.
            let shorter = (0..value.len() + usize::from(is_included)).map(|length| &value[..length]);
            let followed =
                shorter.filter(|part| *part >= least).map(|part| with(&[part, &separator[..]].concat()));
            followed.map(|row| behind(&row)).try_fold(with(value), |furthest, stop| Some(furthest.max(stop?)))
        }
        _ => Some(with(value)),
    }
}

/// The first row behind all that begin with `prefix`; `None` if there is none.
pub fn behind(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte < u8::MAX)?;
    let mut bytes = prefix[..=last].to_vec();
    bytes[last] += 1;
    Some(bytes)
}
