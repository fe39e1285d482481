//! Where the bytes of values lie that are between two others, so that a condition on a part of a row key is a range of rows.
//!
//! It may be more than one place: OrderedBytes writes a value ascending or descending, and who reads is not told which; numbers of
//! `Bytes` have those less than zero behind the others. What is outside of all places is no value between the two. What is inside
//! mostly is one.
//!
//! Numbers of any length (`encodeNumeric`) are taken to be written as HBase does it: without pairs of zeros at either end.

use std::ops::Bound;

use super::{Encoding, Family, ordered};
use crate::value::{Kind, Value};

/// Bytes from a first to a last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Where they begin.
    pub lower: Bound<Vec<u8>>,
    /// Where they end.
    pub upper: Bound<Vec<u8>>,
}

impl Span {
    /// From a first to a last one, both of them in it.
    pub fn including(first: Vec<u8>, last: Vec<u8>) -> Span {
        Span { lower: Bound::Included(first), upper: Bound::Included(last) }
    }

    /// The only bytes that are in it, if they are the only ones.
    pub fn point(&self) -> Option<&[u8]> {
        match (&self.lower, &self.upper) {
            (Bound::Included(first), Bound::Included(last)) if first == last => Some(first),
            _ => None,
        }
    }

    /// Whether bytes are in it.
    pub fn contains(&self, bytes: &[u8]) -> bool {
        let begins = match &self.lower {
            Bound::Unbounded => true,
            Bound::Included(first) => bytes >= &first[..],
            Bound::Excluded(before) => bytes > &before[..],
        };
        begins
            && match &self.upper {
                Bound::Unbounded => true,
                Bound::Included(last) => bytes <= &last[..],
                Bound::Excluded(behind) => bytes < &behind[..],
            }
    }
}

impl Encoding {
    /// Where the bytes of all values between two lie, none of which is null: in no place if there are no such values. `None` if
    /// they lie anywhere, or a bound is of another kind.
    pub fn spans(self, lower: Bound<&Value>, upper: Bound<&Value>, scale: u8) -> Option<Vec<Span>> {
        match self.kind(scale) {
            Kind::Whole => self.spans_of_whole(taken(lower, Value::whole)?, taken(upper, Value::whole)?),
            Kind::Real => {
                let real = |value: &Value| if let Value::Real(value) = value { Some(*value) } else { None };
                let (first, last) =
                    (real::Key::first(taken(lower, real)?), real::Key::last(taken(upper, real)?));
                self.spans_of_real(first, last)
            }
            Kind::Decimal { .. } => {
                let is_decimal = |value: &Value| matches!(value, Value::Decimal(_)).then_some(());
                taken(lower, is_decimal)?;
                taken(upper, is_decimal)?;
                let written = |bound: Bound<&Value>| match bound {
                    Bound::Unbounded => Bound::Unbounded,
                    Bound::Included(value) => {
                        self.write(value, scale).map_or(Bound::Unbounded, Bound::Included)
                    }
                    Bound::Excluded(value) => {
                        self.write(value, scale).map_or(Bound::Unbounded, Bound::Excluded)
                    }
                };
                match self {
                    Encoding::PhoenixDecimal => {
                        Some(vec![Span { lower: written(lower), upper: written(upper) }])
                    }
                    Encoding::OrderedDecimal => {
                        Some(either_way(ordered::NUMERIC_HEADERS, written(lower), written(upper)))
                    }
                    _ => None,
                }
            }
            Kind::Raw => {
                let raw = |value: &Value| value.raw().map(<[u8]>::to_vec);
                self.spans_of_raw(taken(lower, raw)?, taken(upper, raw)?)
            }
        }
    }

    fn spans_of_whole(self, lower: Bound<i64>, upper: Bound<i64>) -> Option<Vec<Span>> {
        let family = self.family();
        let is_boolean = matches!(self, Encoding::BytesBoolean | Encoding::PhoenixBoolean);
        let header = usize::from(matches!(family, Family::Ordered));
        let spare_bits = 64 - 8 * (self.width()? - header).min(8);
        let (least, greatest) = match is_boolean {
            true => (0, 1),
            false => (i64::MIN >> spare_bits, i64::MAX >> spare_bits),
        };
        let first = match lower {
            Bound::Unbounded => Some(least),
            Bound::Included(value) => Some(value.max(least)),
            Bound::Excluded(value) => value.checked_add(1).map(|next| next.max(least)),
        };
        let last = match upper {
            Bound::Unbounded => Some(greatest),
            Bound::Included(value) => Some(value.min(greatest)),
            Bound::Excluded(value) => value.checked_sub(1).map(|next| next.min(greatest)),
        };
        let (Some(first), Some(last)) = (first, last) else { return Some(Vec::new()) };
        let written = |value: i64| self.write(&Value::Whole(value), 0).expect("a number within the width");
        let span =
            |first: i64, last: i64| (first <= last).then(|| Span::including(written(first), written(last)));
        match family {
            Family::Phoenix => Some(span(first, last).into_iter().collect()),
            Family::Ordered => Some(span(first, last).map(turned_too).unwrap_or_default()),
            Family::Bytes if self == Encoding::BytesBoolean => {
                // All bytes but one are true.
                let truths = [(0, 0, 0), (1, 1, u8::MAX)];
                let wanted = truths.iter().filter(|(truth, ..)| (first..=last).contains(truth));
                Some(wanted.map(|(_, first, last)| Span::including(vec![*first], vec![*last])).collect())
            }
            Family::Bytes => {
                Some([span(first.max(0), last), span(first, last.min(-1))].into_iter().flatten().collect())
            }
            Family::Raw | Family::Text => None,
        }
    }

    fn spans_of_real(self, first: Option<real::Key>, last: Option<real::Key>) -> Option<Vec<Span>> {
        if matches!(self.family(), Family::Raw | Family::Text) {
            return None;
        }
        let (Some(first), Some(last)) = (first, last) else { return Some(Vec::new()) };
        if self == Encoding::OrderedDouble {
            return Some(if first > last { Vec::new() } else { turned_too(numeric(first, last)) });
        }
        let is_single =
            matches!(self, Encoding::BytesFloat | Encoding::OrderedFloat32 | Encoding::PhoenixFloat);
        let mut spans = Vec::new();
        for (first, last) in real::with_negative_nans(first, last) {
            let (first, last) = match is_single {
                true => (u64::from(first.single_from()), u64::from(last.single_up_to())),
                false => (first.0, last.0),
            };
            if first <= last {
                spans.extend(self.spans_of_bits(first, last, if is_single { u32::BITS } else { u64::BITS }));
            }
        }
        Some(spans)
    }

    /// Of numbers by the bits that are ordered as they are.
    fn spans_of_bits(self, first: u64, last: u64, width: u32) -> Vec<Span> {
        let bytes = |bits: u64| bits.to_be_bytes()[(u64::BITS - width) as usize / 8..].to_vec();
        let greatest = u64::MAX >> (u64::BITS - width);
        match self.family() {
            // One more, which makes a NaN of those that Java has not the first of all.
            Family::Phoenix => {
                let first = if first == 0 { 0 } else { first.saturating_add(1).min(greatest) };
                vec![Span::including(bytes(first), bytes(last.saturating_add(1).min(greatest)))]
            }
            Family::Ordered => {
                let written = self.write(&Value::Real(0.0), 0).expect("zero");
                let with_header = |bits: u64| [&written[..1], &bytes(bits)].concat();
                turned_too(Span::including(with_header(first), with_header(last)))
            }
            // The sign, and the size of negative ones too.
            _ => {
                let sign = 1 << (width - 1);
                let mut spans = Vec::new();
                if last >= sign {
                    spans.push(Span::including(bytes(first.max(sign) ^ sign), bytes(last ^ sign)));
                }
                if first < sign {
                    spans.push(Span::including(bytes(!last.min(sign - 1)), bytes(!first)));
                }
                spans
            }
        }
    }

    fn spans_of_raw(self, lower: Bound<Vec<u8>>, upper: Bound<Vec<u8>>) -> Option<Vec<Span>> {
        let write = |value: Vec<u8>| self.write(&Value::Raw(value.into()), 0);
        match self {
            Encoding::Raw => Some(vec![Span { lower, upper }]),
            Encoding::PhoenixChar => Some(vec![padded(lower, upper)]),
            Encoding::OrderedString => {
                // What is up to a byte 0 is text; there is none between it and the same with that byte.
                let up_to_zero = |mut value: Vec<u8>| match value.iter().position(|byte| *byte == 0) {
                    Some(at) => {
                        value.truncate(at);
                        (value, true)
                    }
                    None => (value, false),
                };
                let write = |value| write(value).expect("text without a byte 0");
                let lower = match lower {
                    Bound::Unbounded => Bound::Unbounded,
                    Bound::Included(value) => match up_to_zero(value) {
                        (value, false) => Bound::Included(write(value)),
                        (value, true) => Bound::Excluded(write(value)),
                    },
                    Bound::Excluded(value) => Bound::Excluded(write(up_to_zero(value).0)),
                };
                let upper = match upper {
                    Bound::Unbounded => Bound::Unbounded,
                    Bound::Included(value) => Bound::Included(write(up_to_zero(value).0)),
                    Bound::Excluded(value) => match up_to_zero(value) {
                        (value, false) => Bound::Excluded(write(value)),
                        (value, true) => Bound::Included(write(value)),
                    },
                };
                Some(either_way(ordered::STRING_HEADERS, lower, upper))
            }
            // A byte that is the last of a value is less than any that is not: only of one length they are in order.
            Encoding::OrderedBlob => match (lower, upper) {
                (Bound::Included(one), Bound::Included(other)) if one == other => {
                    let written = write(one).expect("all bytes can be written");
                    Some(turned_too(Span::including(written.clone(), written)))
                }
                _ => None,
            },
            Encoding::OrderedBlobCopy => {
                let write = |value| write(value).expect("all bytes can be written");
                let (lower, upper) = (lower.map(write), upper.map(write));
                let [ascending, _] = both_ways(ordered::BLOB_COPY_HEADERS, lower.clone(), upper.clone());
                // Descending ones have an end, and no byte 0.
                let ended = |bound: Bound<Vec<u8>>| match bound {
                    Bound::Included(bytes) | Bound::Excluded(bytes) if bytes.contains(&0) => Bound::Unbounded,
                    bound => bound.map(|mut bytes| {
                        bytes.push(0);
                        bytes
                    }),
                };
                let [_, descending] = both_ways(ordered::BLOB_COPY_HEADERS, ended(lower), ended(upper));
                Some(vec![ascending, descending])
            }
            _ => None,
        }
    }
}

/// The value of a bound; `None` if it has none of the kind.
fn taken<T>(bound: Bound<&Value>, take: impl Fn(&Value) -> Option<T>) -> Option<Bound<T>> {
    Some(match bound {
        Bound::Unbounded => Bound::Unbounded,
        Bound::Included(value) => Bound::Included(take(value)?),
        Bound::Excluded(value) => Bound::Excluded(take(value)?),
    })
}

/// Ascending bytes, and those of the same values descending. No value's bytes are the beginning of another's.
fn turned_too(ascending: Span) -> Vec<Span> {
    let turned = |bound: &Bound<Vec<u8>>| bound.as_ref().map(|bytes| turned(bytes));
    let descending = Span { lower: turned(&ascending.upper), upper: turned(&ascending.lower) };
    vec![ascending, descending]
}

fn turned(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|byte| !byte).collect()
}

/// The same of bounds that may be none, where values begin with one of some headers.
fn either_way(headers: (u8, u8), lower: Bound<Vec<u8>>, upper: Bound<Vec<u8>>) -> Vec<Span> {
    both_ways(headers, lower, upper).into()
}

fn both_ways((first, last): (u8, u8), lower: Bound<Vec<u8>>, upper: Bound<Vec<u8>>) -> [Span; 2] {
    let or = |bound: &Bound<Vec<u8>>, without: Bound<Vec<u8>>| match bound {
        Bound::Unbounded => without,
        bound => bound.clone(),
    };
    let turned = |bound: &Bound<Vec<u8>>| bound.as_ref().map(|bytes| turned(bytes));
    [
        Span {
            lower: or(&lower, Bound::Included(vec![first])),
            upper: or(&upper, Bound::Excluded(vec![last + 1])),
        },
        Span {
            lower: or(&turned(&upper), Bound::Included(vec![!last])),
            upper: or(&turned(&lower), Bound::Excluded(vec![!first + 1])),
        },
    ]
}

/// Text that spaces follow, which are greater than some characters.
fn padded(lower: Bound<Vec<u8>>, upper: Bound<Vec<u8>>) -> Span {
    let lower = match lower {
        Bound::Excluded(value) => Bound::Included(value),
        bound => bound,
    };
    let (mut end, is_included) = match upper {
        Bound::Unbounded => return Span { lower, upper: Bound::Unbounded },
        Bound::Included(value) => (value, true),
        Bound::Excluded(value) => (value, false),
    };
    // What a value begins with is less than it, and followed by a space may be greater.
    let least = if let Bound::Included(least) = &lower { &least[..] } else { &[] };
    let shorter = (0..end.len() + usize::from(is_included)).map(|length| &end[..length]);
    let furthest = shorter.filter(|text| *text >= least).map(|text| [text, b"!"].concat()).max();
    if let Some(furthest) = furthest.filter(|furthest| *furthest > end) {
        end = furthest;
    }
    Span { lower, upper: Bound::Excluded(end) }
}

/// Numbers of any length that are read as the nearest of double precision: up to those which are read as the next.
fn numeric(first: real::Key, last: real::Key) -> Span {
    let written = |key: real::Key| {
        Encoding::OrderedDouble.write(&Value::Real(key.value()), 0).expect("all reals can be written")
    };
    Span::including(written(first.before()), written(last.next()))
}

/// Bits that are ordered as reals are.
mod real {
    use std::ops::Bound;

    /// Negative NaN, negative numbers, -0, 0, positive numbers, NaN.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub struct Key(pub u64);

    const SIGN: u64 = 1 << 63;
    const SINGLE_SIGN: u32 = 1 << 31;

    impl Key {
        fn of(value: f64) -> Key {
            let bits = value.to_bits();
            Key(if bits & SIGN == 0 { bits | SIGN } else { !bits })
        }

        pub fn value(self) -> f64 {
            f64::from_bits(if self.0 & SIGN == 0 { !self.0 } else { self.0 ^ SIGN })
        }

        /// The first that meets a lower bound. Zeros are equal; all NaN are, and greater than what else there is.
        pub fn first(bound: Bound<f64>) -> Option<Key> {
            match bound {
                Bound::Unbounded => Some(Key::of(f64::NEG_INFINITY)),
                Bound::Included(value) if value.is_nan() => Some(Key(Key::of(f64::INFINITY).0 + 1)),
                Bound::Excluded(value) if value.is_nan() => None,
                Bound::Included(value) => Some(Key::of(if value == 0.0 { -0.0 } else { value })),
                Bound::Excluded(value) => Some(Key(Key::of(value + 0.0).0 + 1)),
            }
        }

        /// The last that meets an upper bound.
        pub fn last(bound: Bound<f64>) -> Option<Key> {
            match bound {
                Bound::Unbounded => Some(Key(u64::MAX)),
                Bound::Included(value) if value.is_nan() => Some(Key(u64::MAX)),
                Bound::Excluded(value) if value.is_nan() => Some(Key::of(f64::INFINITY)),
                Bound::Included(value) => Some(Key::of(value + 0.0)),
                Bound::Excluded(value) => Some(Key(Key::of(if value == 0.0 { -0.0 } else { value }).0 - 1)),
            }
        }

        /// The number before it; the least for the least.
        pub fn before(self) -> Key {
            if self.value().is_nan() { self } else { Key((self.0 - 1).max(Key::of(f64::NEG_INFINITY).0)) }
        }

        pub fn next(self) -> Key {
            Key(self.0.saturating_add(1))
        }

        /// The first of single precision that is not before it.
        pub fn single_from(self) -> u32 {
            match self.single() {
                (key, single) if single.is_nan() || f64::from(single) >= self.value() => key,
                (key, _) => key + 1,
            }
        }

        /// The last of single precision that is not behind it.
        pub fn single_up_to(self) -> u32 {
            match self.single() {
                (_, single) if single.is_nan() && self.0 & SIGN != 0 => u32::MAX,
                // Up to the last before negative infinity.
                (_, single) if single.is_nan() => !f32::NEG_INFINITY.to_bits() - 1,
                (key, single) if f64::from(single) <= self.value() => key,
                (key, _) => key - 1,
            }
        }

        /// The nearest of single precision, by its bits in order; of all NaN of a sign the first.
        fn single(self) -> (u32, f32) {
            let single = self.value() as f32;
            let key = match (single.is_nan(), self.0 & SIGN == 0) {
                (true, true) => 0,
                (true, false) => (f32::INFINITY.to_bits() | SINGLE_SIGN) + 1,
                (false, _) => {
                    let bits = single.to_bits();
                    if bits & SINGLE_SIGN == 0 { bits | SINGLE_SIGN } else { !bits }
                }
            };
            (key, single)
        }
    }

    /// All that is from one to another; if NaN are among it, those with a sign too.
    pub fn with_negative_nans(first: Key, last: Key) -> impl Iterator<Item = (Key, Key)> {
        let has_nans = first <= last && last > Key::of(f64::INFINITY);
        let negative = has_nans.then(|| (Key(0), Key(Key::of(f64::NEG_INFINITY).0 - 1)));
        [Some((first, last)), negative].into_iter().flatten()
    }
}
