//! Which rows can meet a condition, by their keys.
//!
//! A row key is taken from its beginning: as long as the condition says which value a part has, its bytes are put behind
//! one another; the part behind them may be bounded from two sides. The condition itself is still looked at, so the
//! range may be too wide, never too narrow.

use bytes::Bytes;
use client::columns::RowRange;
use columnar::{Encoding, Kind, Place};
use proto::grampus::predicate::Operator;
use proto::grampus::{Predicate, Value};

use crate::declaration::{Declaration, DeclaredColumn};
use crate::predicate::conjuncts;

/// The rows outside of which the condition is true for none.
pub fn of(predicate: &Predicate, declaration: &Declaration) -> RowRange {
    let columns = declaration.columns.iter().enumerate().filter_map(|(at, column)| {
        let limits = Limits::of(at as u32, column, conjuncts(predicate));
        (!limits.is_none()).then_some((column, limits))
    });
    let columns: Vec<(&DeclaredColumn, Limits)> = columns.collect();
    let mut prefix = Prefix::default();
    loop {
        let found = columns.iter().filter(|(column, _)| prefix.is_followed_by(&column.place));
        // Several columns may begin here; one whose value is known leads further.
        let best = found.max_by_key(|(column, limits)| limits.extends(&column.place));
        let Some((column, limits)) = best else { return prefix.rows() };
        if !limits.extends(&column.place) {
            return limits.rows(&prefix, &column.place);
        }
        prefix.extend(limits.equal.as_ref().expect("what extends has a value"), &column.place);
    }
}

/// The bytes that a row key begins with.
#[derive(Default)]
struct Prefix {
    bytes: Vec<u8>,
    /// Where the parts begin whose beginning it is, what is between them, and the number of the next.
    parts: Option<(usize, Bytes, usize)>,
}

impl Prefix {
    fn is_followed_by(&self, place: &Place) -> bool {
        match (place, &self.parts) {
            (Place::RowBytes { offset, .. }, None) => *offset == self.bytes.len(),
            (Place::RowPart { offset, part: 0, .. }, None) => *offset == self.bytes.len(),
            (Place::RowPart { offset, separator, part }, Some((start, between, next))) => {
                offset == start && separator == between && part == next
            }
            _ => false,
        }
    }

    fn extend(&mut self, value: &[u8], place: &Place) {
        let start = self.parts.as_ref().map_or(self.bytes.len(), |(start, ..)| *start);
        self.bytes = self.before_next();
        self.bytes.extend_from_slice(value);
        if let Place::RowPart { separator, part, .. } = place {
            self.parts = Some((start, separator.clone(), part + 1));
        }
    }

    /// With the separator, if there is to be one more part.
    fn before_next(&self) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        if let Some((_, separator, _)) = &self.parts {
            bytes.extend_from_slice(separator);
        }
        bytes
    }

    fn rows(&self) -> RowRange {
        match self.bytes.is_empty() {
            true => RowRange::default(),
            // The last part may be followed by a separator, or by nothing.
            false => RowRange { start: self.bytes.clone().into(), stop: behind(&self.before_next()) },
        }
    }
}

/// What a condition says of a column of the row key, in bytes.
#[derive(Default, Debug)]
struct Limits {
    equal: Option<Vec<u8>>,
    lower: Option<(Vec<u8>, bool)>,
    upper: Option<(Vec<u8>, bool)>,
    begins_with: Option<Vec<u8>>,
}

impl Limits {
    fn of(at: u32, column: &DeclaredColumn, conjuncts: &[Predicate]) -> Limits {
        let mut limits = Limits::default();
        if matches!(column.place, Place::Cell { .. }) {
            return limits;
        }
        let mut numbers = (i64::MIN, i64::MAX);
        for predicate in conjuncts {
            if let Some(comparison) = predicate.comparison.as_ref().filter(|one| one.column == Some(at))
                && let Some(value) = &comparison.value
            {
                limits.compared(comparison.operator(), value, &mut numbers);
            }
            if let Some(list) = predicate.r#in.as_ref().filter(|list| list.column == Some(at)) {
                limits.listed(&list.value, &mut numbers);
            }
            if let Some(like) = predicate.like.as_ref().filter(|like| like.column == Some(at)) {
                limits.begins_with = Some(beginning(like));
            }
        }
        if column.encoding != Encoding::Raw {
            limits = Limits::of_numbers(numbers, column.encoding);
        }
        limits
    }

    fn compared(&mut self, operator: Operator, value: &Value, numbers: &mut (i64, i64)) {
        if let Some(whole) = value.whole {
            match operator {
                Operator::Equal => *numbers = (numbers.0.max(whole), numbers.1.min(whole)),
                Operator::Less => numbers.1 = numbers.1.min(whole.saturating_sub(1)),
                Operator::LessOrEqual => numbers.1 = numbers.1.min(whole),
                Operator::Greater => numbers.0 = numbers.0.max(whole.saturating_add(1)),
                Operator::GreaterOrEqual => numbers.0 = numbers.0.max(whole),
                Operator::NotEqual => {}
            }
        }
        let Some(bytes) = &value.raw else { return };
        let bytes = bytes.to_vec();
        match operator {
            Operator::Equal => self.equal = Some(bytes),
            Operator::Less => raise(&mut self.upper, (bytes, false), false),
            Operator::LessOrEqual => raise(&mut self.upper, (bytes, true), false),
            Operator::Greater => raise(&mut self.lower, (bytes, false), true),
            Operator::GreaterOrEqual => raise(&mut self.lower, (bytes, true), true),
            Operator::NotEqual => {}
        }
    }

    /// One of several: from the least to the greatest.
    fn listed(&mut self, values: &[Value], numbers: &mut (i64, i64)) {
        if let Some(wholes) = values.iter().map(|value| value.whole).collect::<Option<Vec<_>>>()
            && let (Some(least), Some(greatest)) = (wholes.iter().min(), wholes.iter().max())
        {
            *numbers = (numbers.0.max(*least), numbers.1.min(*greatest));
        }
        if let Some(raws) = values.iter().map(|value| value.raw.as_ref()).collect::<Option<Vec<_>>>()
            && let (Some(least), Some(greatest)) = (raws.iter().min(), raws.iter().max())
        {
            raise(&mut self.lower, (least.to_vec(), true), true);
            raise(&mut self.upper, (greatest.to_vec(), true), false);
        }
    }

    /// Limits of whole numbers, from the first to the last, in an encoding of a fixed length.
    fn of_numbers((first, last): (i64, i64), encoding: Encoding) -> Limits {
        let is_twos_complement = matches!(
            encoding,
            Encoding::BytesByte | Encoding::BytesShort | Encoding::BytesInt | Encoding::BytesLong
        );
        let Some(width) = encoding.width().filter(|_| is_twos_complement || encoding.keeps_order()) else {
            return Limits::default();
        };
        let spare_bits = 64 - 8 * width.min(8);
        let (least, greatest) = (i64::MIN >> spare_bits, i64::MAX >> spare_bits);
        let (first, last) = (first.max(least), last.min(greatest));
        // Two's complement is in order on each side of zero only.
        let ordered = !is_twos_complement || first >= 0 || last < 0;
        if encoding.kind(0) != Kind::Whole || first > last || (first, last) == (least, greatest) || !ordered {
            return Limits::default();
        }
        let written = |number: i64| encoding.write(&columnar::Value::Whole(number), 0);
        let (Some(lower), Some(upper)) = (written(first), written(last)) else { return Limits::default() };
        Limits {
            equal: (first == last).then(|| lower.clone()),
            lower: Some((lower, true)),
            upper: Some((upper, true)),
            begins_with: None,
        }
    }

    fn is_none(&self) -> bool {
        let Limits { equal, lower, upper, begins_with } = self;
        equal.is_none() && lower.is_none() && upper.is_none() && begins_with.is_none()
    }

    /// Whether the next part's place is known behind this one.
    fn extends(&self, place: &Place) -> bool {
        match (&self.equal, place) {
            (Some(value), Place::RowBytes { length: Some(length), .. }) => value.len() == *length,
            (Some(_), Place::RowPart { .. }) => true,
            _ => false,
        }
    }

    /// The rows that begin with `prefix` and have a value within the limits behind it.
    fn rows(&self, prefix: &Prefix, place: &Place) -> RowRange {
        let prefix = prefix.before_next();
        let with = |value: &[u8]| [&prefix[..], value].concat();
        let is_rest = matches!(place, Place::RowBytes { length: None, .. });
        if let Some(value) = &self.equal {
            let stop = if is_rest { next(with(value)) } else { behind(&with(value)) };
            return RowRange { start: with(value).into(), stop };
        }
        let within = RowRange { start: prefix.clone().into(), stop: behind(&prefix) };
        let lower = self.lower.as_ref().map(|(value, inclusive)| match *inclusive || !is_rest {
            true => RowRange { start: with(value).into(), stop: Bytes::new() },
            false => RowRange { start: next(with(value)), stop: Bytes::new() },
        });
        let upper = self.upper.as_ref().map(|(value, inclusive)| {
            let stop = match (place, *inclusive) {
                (Place::RowBytes { length: None, .. }, true) => next(with(value)),
                (Place::RowBytes { length: None, .. }, false) => with(value).into(),
                (Place::RowBytes { length: Some(length), .. }, _) if value.len() > *length => {
                    behind(&with(&value[..*length]))
                }
                (Place::RowBytes { .. }, true) => behind(&with(value)),
                (Place::RowBytes { .. }, false) => with(value).into(),
                // A part that is less may, with what follows it, be more.
                _ => Bytes::new(),
            };
            RowRange { start: Bytes::new(), stop }
        });
        let beginning = self
            .begins_with
            .as_ref()
            .map(|value| RowRange { start: with(value).into(), stop: behind(&with(value)) });
        let limits = [lower, upper, beginning].into_iter().flatten();
        // Limits that leave nothing between them are the server's to find nothing in.
        limits.fold(within, |range, limit| range.intersection(&limit).unwrap_or(range))
    }
}

/// Takes a bound that says more.
fn raise(own: &mut Option<(Vec<u8>, bool)>, other: (Vec<u8>, bool), to_greater: bool) {
    let better = own.as_ref().is_none_or(|own| match to_greater {
        true => (&other.0, !other.1) > (&own.0, !own.1),
        false => (&other.0, other.1) < (&own.0, own.1),
    });
    if better {
        *own = Some(other);
    }
}

/// What all that is like a pattern begins with.
fn beginning(like: &proto::grampus::predicate::Like) -> Vec<u8> {
    let pattern = like.pattern.as_deref().unwrap_or_default();
    let escape = like.escape.as_deref().unwrap_or_default();
    let is_special = |byte: &u8| matches!(byte, b'%' | b'_') || escape.contains(byte);
    pattern.iter().copied().take_while(|byte| !is_special(byte)).collect()
}

/// The first row behind all that begin with `prefix`; empty if there is none.
fn behind(prefix: &[u8]) -> Bytes {
    let mut bytes = prefix.to_vec();
    while let Some(last) = bytes.pop() {
        if last < u8::MAX {
            bytes.push(last + 1);
            break;
        }
    }
    bytes.into()
}

/// The row next to this one.
fn next(mut row: Vec<u8>) -> Bytes {
    row.push(0);
    row.into()
}

#[cfg(test)]
mod tests;
