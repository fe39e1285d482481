//! Encodings of `org.apache.hadoop.hbase.util.OrderedBytes`: a header for the type, then bytes in
//! value order. A descending value has all bits inverted, including the header, which identifies
//! it.
//!
//! Variable-length numbers are in `numeric`.

mod numeric;

use std::borrow::Cow;

use super::Encoding;
use super::bytes::{double_bits, float_bits};

pub(super) use numeric::{decimal, double, write_decimal};

// Source: the constants of OrderedBytes. They define an order across types: null, numbers, text,
// blobs.
const NULL: u8 = 0x05;
const FIXED_INT8: u8 = 0x29;
const FIXED_INT16: u8 = 0x2a;
const FIXED_INT32: u8 = 0x2b;
const FIXED_INT64: u8 = 0x2c;
const FIXED_FLOAT32: u8 = 0x30;
const FIXED_FLOAT64: u8 = 0x31;
const TEXT: u8 = 0x34;
const BLOB_VAR: u8 = 0x37;
const BLOB_COPY: u8 = 0x38;
/// The first and the last header of the values of a type.
pub(super) const NUMERIC_HEADERS: (u8, u8) = numeric::HEADERS;
pub(super) const STRING_HEADERS: (u8, u8) = (TEXT, TEXT);
pub(super) const BLOB_COPY_HEADERS: (u8, u8) = (BLOB_COPY, BLOB_COPY);
/// Terminator of text, and of a descending blob copy.
const END: u8 = 0;

/// Set in all bytes of a blob except the last.
const BLOB_CONTINUES: u8 = 0x80;
/// Data bits in each byte of a blob.
const BLOB_BITS: usize = 7;

pub(super) fn is_null(bytes: &[u8]) -> bool {
    matches!(bytes, [first] if *first == NULL || *first == !NULL)
}

pub(super) fn write_null() -> Vec<u8> {
    vec![NULL]
}

/// The bytes after the header of a fixed-width value, in ascending form.
#[inline]
fn fixed<const WIDTH: usize>(header: u8, bytes: &[u8]) -> Option<[u8; WIDTH]> {
    let (first, rest) = bytes.split_first()?;
    let rest: [u8; WIDTH] = rest.try_into().ok()?;
    match *first {
        first if first == header => Some(rest),
        first if first == !header => Some(rest.map(|byte| !byte)),
        _ => None,
    }
}

#[inline]
pub(super) fn int8(bytes: &[u8]) -> Option<i64> {
    Some((i8::from_be_bytes(fixed(FIXED_INT8, bytes)?) ^ i8::MIN).into())
}

#[inline]
pub(super) fn int16(bytes: &[u8]) -> Option<i64> {
    Some((i16::from_be_bytes(fixed(FIXED_INT16, bytes)?) ^ i16::MIN).into())
}

#[inline]
pub(super) fn int32(bytes: &[u8]) -> Option<i64> {
    Some((i32::from_be_bytes(fixed(FIXED_INT32, bytes)?) ^ i32::MIN).into())
}

#[inline]
pub(super) fn int64(bytes: &[u8]) -> Option<i64> {
    Some(i64::from_be_bytes(fixed(FIXED_INT64, bytes)?) ^ i64::MIN)
}

// Negative numbers have all bits inverted, other numbers only the sign bit.

#[inline]
pub(super) fn float32(bytes: &[u8]) -> Option<f64> {
    let stored = i32::from_be_bytes(fixed(FIXED_FLOAT32, bytes)?);
    Some(f32::from_bits((stored ^ (!stored >> 31 | i32::MIN)) as u32).into())
}

#[inline]
pub(super) fn float64(bytes: &[u8]) -> Option<f64> {
    let stored = i64::from_be_bytes(fixed(FIXED_FLOAT64, bytes)?);
    Some(f64::from_bits((stored ^ (!stored >> 63 | i64::MIN)) as u64))
}

pub(super) fn string(bytes: &[u8]) -> Option<Cow<'_, [u8]>> {
    match bytes {
        [TEXT, text @ .., END] => (!text.contains(&END)).then_some(Cow::Borrowed(text)),
        [first, rest @ ..] if *first == !TEXT => until_end(rest),
        _ => None,
    }
}

pub(super) fn blob_copy(bytes: &[u8]) -> Option<Cow<'_, [u8]>> {
    match bytes {
        [BLOB_COPY, rest @ ..] => Some(Cow::Borrowed(rest)),
        [first, rest @ ..] if *first == !BLOB_COPY => until_end(rest),
        _ => None,
    }
}

/// Descending bytes up to their terminator, which occurs only at the end.
fn until_end(descending: &[u8]) -> Option<Cow<'_, [u8]>> {
    let (last, rest) = descending.split_last()?;
    let ends = *last == !END && !rest.contains(&!END);
    ends.then(|| Cow::Owned(rest.iter().map(|byte| !byte).collect()))
}

pub(super) fn blob(bytes: &[u8]) -> Option<Vec<u8>> {
    let (first, parts) = bytes.split_first()?;
    let turned = match *first {
        BLOB_VAR => 0,
        first if first == !BLOB_VAR => 0xff,
        _ => return None,
    };
    let length = parts.len() * BLOB_BITS / 8;
    let last = parts.len().checked_sub(1)?;
    if parts.len() != blob_parts(length) {
        return None;
    }
    let mut value = Vec::with_capacity(length);
    // Bits that do not form a complete byte yet.
    let (mut bits, mut count) = (0u16, 0);
    for (at, part) in parts.iter().enumerate() {
        let part = part ^ turned;
        if (part & BLOB_CONTINUES != 0) != (at != last) {
            return None;
        }
        bits = bits << BLOB_BITS | u16::from(part & !BLOB_CONTINUES);
        count += BLOB_BITS;
        if count >= 8 {
            count -= 8;
            value.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    // The padding bits of the last part are 0.
    (bits == 0).then_some(value)
}

/// Number of parts of a blob of `length` bytes; at least 1.
fn blob_parts(length: usize) -> usize {
    (length * 8).div_ceil(BLOB_BITS).max(1)
}

pub(super) fn write_whole(encoding: Encoding, value: i64) -> Option<Vec<u8>> {
    Some(match encoding {
        Encoding::OrderedInt8 => with(FIXED_INT8, &(i8::try_from(value).ok()? ^ i8::MIN).to_be_bytes()),
        Encoding::OrderedInt16 => with(FIXED_INT16, &(i16::try_from(value).ok()? ^ i16::MIN).to_be_bytes()),
        Encoding::OrderedInt32 => with(FIXED_INT32, &(i32::try_from(value).ok()? ^ i32::MIN).to_be_bytes()),
        Encoding::OrderedInt64 => with(FIXED_INT64, &(value ^ i64::MIN).to_be_bytes()),
        _ => return None,
    })
}

pub(super) fn write_real(encoding: Encoding, value: f64) -> Option<Vec<u8>> {
    match encoding {
        Encoding::OrderedFloat32 => {
            let bits = float_bits(value)? as i32;
            Some(with(FIXED_FLOAT32, &(bits ^ (bits >> 31 | i32::MIN)).to_be_bytes()))
        }
        Encoding::OrderedFloat64 => {
            let bits = double_bits(value) as i64;
            Some(with(FIXED_FLOAT64, &(bits ^ (bits >> 63 | i64::MIN)).to_be_bytes()))
        }
        Encoding::OrderedDouble => Some(numeric::write_double(value)),
        _ => None,
    }
}

pub(super) fn write_string(value: &[u8]) -> Option<Vec<u8>> {
    if value.contains(&END) {
        return None;
    }
    let mut bytes = with(TEXT, value);
    bytes.push(END);
    Some(bytes)
}

pub(super) fn write_blob_copy(value: &[u8]) -> Vec<u8> {
    with(BLOB_COPY, value)
}

pub(super) fn write_blob(value: &[u8]) -> Vec<u8> {
    let parts = blob_parts(value.len());
    let mut bytes = Vec::with_capacity(1 + parts);
    bytes.push(BLOB_VAR);
    for part in 0..parts {
        // The part's bits are in this byte and the next.
        let (at, shift) = (part * BLOB_BITS / 8, part * BLOB_BITS % 8);
        let two = [value.get(at), value.get(at + 1)].map(|byte| byte.copied().unwrap_or(0));
        let bits = (u16::from_be_bytes(two) << shift >> 9) as u8;
        bytes.push(if part + 1 < parts { bits | BLOB_CONTINUES } else { bits });
    }
    bytes
}

fn with(header: u8, rest: &[u8]) -> Vec<u8> {
    [&[header][..], rest].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_the_header_of_their_encoding() {
        assert_eq!(int8(&[FIXED_INT8, 0x80]), Some(0));
        assert_eq!(int8(&[FIXED_INT16, 0x80]), None);
        assert_eq!(int8(&[FIXED_INT8, 0x80, 0]), None);
        assert_eq!(string(&[BLOB_COPY, 0]), None);
        assert_eq!(int64(&[]), None);
    }

    #[test]
    fn text_ends_where_its_end_is() {
        assert_eq!(string(&[TEXT]), None);
        assert_eq!(string(&[TEXT, 1]), None);
        assert_eq!(string(&[TEXT, 1, END, 2, END]), None);
        assert_eq!(string(&[!TEXT, !END, !END]), None);
        assert_eq!(blob_copy(&[!BLOB_COPY, 1]), None);
        assert_eq!(blob_copy(&[!BLOB_COPY]), None);
    }

    #[test]
    fn a_blob_has_no_excess_parts() {
        assert_eq!(blob(&[BLOB_VAR, 0]), Some(vec![]));
        assert_eq!(blob(&[BLOB_VAR]), None);
        assert_eq!(blob(&[BLOB_VAR, 0x80, 0x80]), None, "the last part has a continuation bit");
        assert_eq!(blob(&[BLOB_VAR, 0x01, 0x40]), None, "a part follows the last one");
        assert_eq!(blob(&[BLOB_VAR, 0x80, 0x01]), None, "a padding bit is set");
        let mut nine = [0x80; 10];
        (nine[0], nine[9]) = (BLOB_VAR, 0);
        assert_eq!(blob(&nine), None, "7 bytes have 8 parts");
    }
}
