//! Converts a range of values to ranges of encoded bytes, so that a condition on a part of a row
//! key becomes a range of rows.
//!
//! The result may be several spans. An OrderedBytes value may be ascending or descending, and the
//! column does not declare which. In `Bytes` encodings negative numbers sort after the others.
//! Bytes outside all spans never encode a value in the range. Bytes inside a span usually do.
//!
//! Variable-length numbers (`encodeNumeric`) are assumed to be in HBase's form, without zero pairs
//! at either end.

use std::ops::Bound;

use super::{Encoding, Family, ordered};
use crate::value::{Kind, Value};

/// A range of encoded bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The lower bound.
    pub lower: Bound<Vec<u8>>,
    /// The upper bound.
    pub upper: Bound<Vec<u8>>,
}

impl Span {
    /// The range from `first` to `last`, inclusive.
    pub fn including(first: Vec<u8>, last: Vec<u8>) -> Span {
        Span { lower: Bound::Included(first), upper: Bound::Included(last) }
    }

    /// The only value in the span, if there is exactly one.
    pub fn point(&self) -> Option<&[u8]> {
        match (&self.lower, &self.upper) {
            (Bound::Included(first), Bound::Included(last)) if first == last => Some(first),
            _ => None,
        }
    }

    /// Whether the span contains `bytes`.
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
                Bound::Excluded(end) => bytes < &end[..],
            }
    }
}

impl Encoding {
    /// The spans that contain the encoded form of every non-null value between two bounds; empty if
    /// there are no such values. `None` if the values may be anywhere, or if a bound has another
    /// kind.
    pub fn spans(self, lower: Bound<&Value>, upper: Bound<&Value>, scale: u8) -> Option<Vec<Span>> {
        match self.kind(scale) {
            Kind::Whole => {
                self.spans_of_whole(map_bound(lower, Value::whole)?, map_bound(upper, Value::whole)?)
            }
            Kind::Real => {
                let real = |value: &Value| if let Value::Real(value) = value { Some(*value) } else { None };
                let (first, last) =
                    (real::Key::first(map_bound(lower, real)?), real::Key::last(map_bound(upper, real)?));
                self.spans_of_real(first, last)
            }
            Kind::Decimal { .. } => {
                let is_decimal = |value: &Value| matches!(value, Value::Decimal(_)).then_some(());
                map_bound(lower, is_decimal)?;
                map_bound(upper, is_decimal)?;
                let write_bound = |bound: Bound<&Value>| match bound {
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
                        Some(vec![Span { lower: write_bound(lower), upper: write_bound(upper) }])
                    }
                    Encoding::OrderedDecimal => Some(spans_of_both_orders(
                        ordered::NUMERIC_HEADERS,
                        write_bound(lower),
                        write_bound(upper),
                    )),
                    _ => None,
                }
            }
            Kind::Raw => {
                let raw = |value: &Value| value.raw().map(<[u8]>::to_vec);
                self.spans_of_raw(map_bound(lower, raw)?, map_bound(upper, raw)?)
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
        let write = |value: i64| self.write(&Value::Whole(value), 0).expect("a number within the width");
        let span =
            |first: i64, last: i64| (first <= last).then(|| Span::including(write(first), write(last)));
        match family {
            Family::Phoenix => Some(span(first, last).into_iter().collect()),
            Family::Ordered => Some(span(first, last).map(with_descending).unwrap_or_default()),
            Family::Bytes if self == Encoding::BytesBoolean => {
                // All byte values except 0 are true.
                let truths = [(0, 0, 0), (1, 1, u8::MAX)];
                let selected = truths.iter().filter(|(truth, ..)| (first..=last).contains(truth));
                Some(selected.map(|(_, first, last)| Span::including(vec![*first], vec![*last])).collect())
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
            return Some(if first > last { Vec::new() } else { with_descending(numeric(first, last)) });
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

    /// Spans of numbers, from key bits whose order is the numeric order.
    fn spans_of_bits(self, first: u64, last: u64, width: u32) -> Vec<Span> {
        let bytes = |bits: u64| bits.to_be_bytes()[(u64::BITS - width) as usize / 8..].to_vec();
        let greatest = u64::MAX >> (u64::BITS - width);
        match self.family() {
            // Phoenix stores the bits plus 1. A NaN that Java does not produce therefore wraps
            // around to the first position.
            Family::Phoenix => {
                let first = if first == 0 { 0 } else { first.saturating_add(1).min(greatest) };
                vec![Span::including(bytes(first), bytes(last.saturating_add(1).min(greatest)))]
            }
            Family::Ordered => {
                let zero = self.write(&Value::Real(0.0), 0).expect("zero");
                let with_header = |bits: u64| [&zero[..1], &bytes(bits)].concat();
                with_descending(Span::including(with_header(first), with_header(last)))
            }
            // `Bytes`: positive numbers in ascending order, then negative ones in descending order.
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
                // A bound that contains a zero byte cannot be encoded. Its prefix before that byte
                // can, and no text lies between the two.
                let until_zero = |mut value: Vec<u8>| match value.iter().position(|byte| *byte == 0) {
                    Some(at) => {
                        value.truncate(at);
                        (value, true)
                    }
                    None => (value, false),
                };
                let write = |value| write(value).expect("text without a byte 0");
                let lower = match lower {
                    Bound::Unbounded => Bound::Unbounded,
                    Bound::Included(value) => match until_zero(value) {
                        (value, false) => Bound::Included(write(value)),
                        (value, true) => Bound::Excluded(write(value)),
                    },
                    Bound::Excluded(value) => Bound::Excluded(write(until_zero(value).0)),
                };
                let upper = match upper {
                    Bound::Unbounded => Bound::Unbounded,
                    Bound::Included(value) => Bound::Included(write(until_zero(value).0)),
                    Bound::Excluded(value) => match until_zero(value) {
                        (value, false) => Bound::Excluded(write(value)),
                        (value, true) => Bound::Included(write(value)),
                    },
                };
                Some(spans_of_both_orders(ordered::STRING_HEADERS, lower, upper))
            }
            // The last byte of a value has no continuation bit, so only values of equal length are
            // in order.
            Encoding::OrderedBlob => match (lower, upper) {
                (Bound::Included(one), Bound::Included(other)) if one == other => {
                    let encoded = write(one).expect("all bytes can be written");
                    Some(with_descending(Span::including(encoded.clone(), encoded)))
                }
                _ => None,
            },
            Encoding::OrderedBlobCopy => {
                let write = |value| write(value).expect("all bytes can be written");
                let (lower, upper) = (lower.map(write), upper.map(write));
                let [ascending, _] =
                    ascending_and_descending(ordered::BLOB_COPY_HEADERS, lower.clone(), upper.clone());
                // Descending values have a terminator and contain no zero byte.
                let terminated = |bound: Bound<Vec<u8>>| match bound {
                    Bound::Included(bytes) | Bound::Excluded(bytes) if bytes.contains(&0) => Bound::Unbounded,
                    bound => bound.map(|mut bytes| {
                        bytes.push(0);
                        bytes
                    }),
                };
                let [_, descending] = ascending_and_descending(
                    ordered::BLOB_COPY_HEADERS,
                    terminated(lower),
                    terminated(upper),
                );
                Some(vec![ascending, descending])
            }
            _ => None,
        }
    }
}

/// Applies `take` to the value of a bound; `None` if `take` fails.
fn map_bound<T>(bound: Bound<&Value>, take: impl Fn(&Value) -> Option<T>) -> Option<Bound<T>> {
    Some(match bound {
        Bound::Unbounded => Bound::Unbounded,
        Bound::Included(value) => Bound::Included(take(value)?),
        Bound::Excluded(value) => Bound::Excluded(take(value)?),
    })
}

/// A span of ascending values, and the span of the same values in descending order. No encoded
/// value is a prefix of another.
fn with_descending(ascending: Span) -> Vec<Span> {
    let inverted = |bound: &Bound<Vec<u8>>| bound.as_ref().map(|bytes| inverted(bytes));
    let descending = Span { lower: inverted(&ascending.upper), upper: inverted(&ascending.lower) };
    vec![ascending, descending]
}

fn inverted(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|byte| !byte).collect()
}

/// Like [`with_descending`], for bounds that may be missing. Values begin with one of the
/// `headers`, which then serve as bounds.
fn spans_of_both_orders(headers: (u8, u8), lower: Bound<Vec<u8>>, upper: Bound<Vec<u8>>) -> Vec<Span> {
    ascending_and_descending(headers, lower, upper).into()
}

fn ascending_and_descending(
    (first, last): (u8, u8),
    lower: Bound<Vec<u8>>,
    upper: Bound<Vec<u8>>,
) -> [Span; 2] {
    let or = |bound: &Bound<Vec<u8>>, without: Bound<Vec<u8>>| match bound {
        Bound::Unbounded => without,
        bound => bound.clone(),
    };
    let inverted = |bound: &Bound<Vec<u8>>| bound.as_ref().map(|bytes| inverted(bytes));
    [
        Span {
            lower: or(&lower, Bound::Included(vec![first])),
            upper: or(&upper, Bound::Excluded(vec![last + 1])),
        },
        Span {
            lower: or(&inverted(&upper), Bound::Included(vec![!last])),
            upper: or(&inverted(&lower), Bound::Excluded(vec![!first + 1])),
        },
    ]
}

/// The span of text with padding spaces, which sort after some characters.
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
    // A prefix of `end` is less than `end`. Padded with spaces it may sort after `end`, if `end`
    // continues with a smaller byte than a space.
    let least = if let Bound::Included(least) = &lower { &least[..] } else { &[] };
    let shorter = (0..end.len() + usize::from(is_included)).map(|length| &end[..length]);
    let furthest = shorter.filter(|text| *text >= least).map(|text| [text, b"!"].concat()).max();
    if let Some(furthest) = furthest.filter(|furthest| *furthest > end) {
        end = furthest;
    }
    Span { lower, upper: Bound::Excluded(end) }
}

/// The span of variable-length numbers that round to a double in the range. It extends to the
/// adjacent doubles, because numbers between two doubles may round to either.
fn numeric(first: real::Key, last: real::Key) -> Span {
    let encode = |key: real::Key| {
        Encoding::OrderedDouble.write(&Value::Real(key.value()), 0).expect("all reals can be written")
    };
    Span::including(encode(first.before()), encode(last.next()))
}

/// Keys whose order is the order of real numbers.
mod real {
    use std::ops::Bound;

    /// Key order: negative NaN, negative numbers, -0, 0, positive numbers, NaN.
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

        /// The first key that satisfies a lower bound. The two zeros are equal. All NaNs are equal,
        /// and greater than all numbers.
        pub fn first(bound: Bound<f64>) -> Option<Key> {
            match bound {
                Bound::Unbounded => Some(Key::of(f64::NEG_INFINITY)),
                Bound::Included(value) if value.is_nan() => Some(Key(Key::of(f64::INFINITY).0 + 1)),
                Bound::Excluded(value) if value.is_nan() => None,
                Bound::Included(value) => Some(Key::of(if value == 0.0 { -0.0 } else { value })),
                Bound::Excluded(value) => Some(Key(Key::of(value + 0.0).0 + 1)),
            }
        }

        /// The last key that satisfies an upper bound.
        pub fn last(bound: Bound<f64>) -> Option<Key> {
            match bound {
                Bound::Unbounded => Some(Key(u64::MAX)),
                Bound::Included(value) if value.is_nan() => Some(Key(u64::MAX)),
                Bound::Excluded(value) if value.is_nan() => Some(Key::of(f64::INFINITY)),
                Bound::Included(value) => Some(Key::of(value + 0.0)),
                Bound::Excluded(value) => Some(Key(Key::of(if value == 0.0 { -0.0 } else { value }).0 - 1)),
            }
        }

        /// The preceding number; negative infinity and NaN are returned unchanged.
        pub fn before(self) -> Key {
            if self.value().is_nan() { self } else { Key((self.0 - 1).max(Key::of(f64::NEG_INFINITY).0)) }
        }

        pub fn next(self) -> Key {
            Key(self.0.saturating_add(1))
        }

        /// The first single-precision key that is not before this key.
        pub fn single_from(self) -> u32 {
            match self.single() {
                (key, single) if single.is_nan() || f64::from(single) >= self.value() => key,
                (key, _) => key + 1,
            }
        }

        /// The last single-precision key that is not after this key.
        pub fn single_up_to(self) -> u32 {
            match self.single() {
                (_, single) if single.is_nan() && self.0 & SIGN != 0 => u32::MAX,
                // The last NaN before negative infinity.
                (_, single) if single.is_nan() => !f32::NEG_INFINITY.to_bits() - 1,
                (key, single) if f64::from(single) <= self.value() => key,
                (key, _) => key - 1,
            }
        }

        /// Key and value of the nearest single-precision number. For a NaN, the key is the first
        /// NaN key of its sign.
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

    /// The range from `first` to `last`. If it contains NaNs, negative NaNs are added.
    pub fn with_negative_nans(first: Key, last: Key) -> impl Iterator<Item = (Key, Key)> {
        let has_nans = first <= last && last > Key::of(f64::INFINITY);
        let negative = has_nans.then(|| (Key(0), Key(Key::of(f64::NEG_INFINITY).0 - 1)));
        [Some((first, last)), negative].into_iter().flatten()
    }
}
