//! Encodings of Apache Phoenix's types in ascending columns: the bytes are in value order.
//!
//! Each value has exactly one form here, so that a comparison can be a range of row keys. Forms
//! that Phoenix does not write are rejected, even if Phoenix would read them.

use super::Encoding;
use super::bytes::{double_bits, float_bits};
use super::decimal::{Digits, Fault, Pairs};

/// Nanoseconds per millisecond.
const MILLISECOND_NS: i64 = 1_000_000;

// DECIMAL: sign and exponent 1 | pairs of digits | 102 if negative and shorter than 21 bytes so
// far.
//
// A positive number 0.PPPP * 100^E has the exponent byte 192 + E and the bytes 1 + P. A negative
// one has 63 - E and 101 - P. Source: PDataType's EXP_BYTE_OFFSET, POS_DIGIT_OFFSET,
// NEG_DIGIT_OFFSET, NEG_TERMINAL_BYTE, ZERO_BYTE, MAX_BIG_DECIMAL_BYTES.
const DECIMAL_ZERO: u8 = 0x80;
const POSITIVE_EXPONENT: i64 = 192;
const NEGATIVE_EXPONENT: i64 = 63;
const POSITIVE_PAIR: u8 = 1;
const NEGATIVE_PAIR: u8 = 101;
const NEGATIVE_END: u8 = 102;
const DECIMAL_BYTES_MAX: usize = 21;

#[inline]
pub(super) fn boolean(bytes: &[u8]) -> Option<i64> {
    match bytes {
        [value @ 0..=1] => Some(i64::from(*value)),
        _ => None,
    }
}

#[inline]
pub(super) fn tinyint(bytes: &[u8]) -> Option<i64> {
    Some((i8::from_be_bytes(bytes.try_into().ok()?) ^ i8::MIN).into())
}

#[inline]
pub(super) fn smallint(bytes: &[u8]) -> Option<i64> {
    Some((i16::from_be_bytes(bytes.try_into().ok()?) ^ i16::MIN).into())
}

#[inline]
pub(super) fn integer(bytes: &[u8]) -> Option<i64> {
    Some((i32::from_be_bytes(bytes.try_into().ok()?) ^ i32::MIN).into())
}

#[inline]
pub(super) fn bigint(bytes: &[u8]) -> Option<i64> {
    Some(i64::from_be_bytes(bytes.try_into().ok()?) ^ i64::MIN)
}

#[inline]
pub(super) fn timestamp(bytes: &[u8]) -> Option<i64> {
    let (milliseconds, nanoseconds) = bytes.split_first_chunk::<8>()?;
    let nanoseconds = i64::from(u32::from_be_bytes(nanoseconds.try_into().ok()?));
    if nanoseconds >= MILLISECOND_NS {
        return None;
    }
    // For the earliest timestamp, the milliseconds alone would overflow.
    let milliseconds = i128::from(bigint(milliseconds)?);
    i64::try_from(milliseconds * i128::from(MILLISECOND_NS) + i128::from(nanoseconds)).ok()
}

#[inline]
pub(super) fn float(bytes: &[u8]) -> Option<f64> {
    let stored = i32::from_be_bytes(bytes.try_into().ok()?).wrapping_sub(1);
    Some(f32::from_bits((stored ^ (!stored >> 31 | i32::MIN)) as u32).into())
}

#[inline]
pub(super) fn double(bytes: &[u8]) -> Option<f64> {
    let stored = i64::from_be_bytes(bytes.try_into().ok()?).wrapping_sub(1);
    Some(f64::from_bits((stored ^ (!stored >> 63 | i64::MIN)) as u64))
}

/// The text without trailing spaces; `None` for no bytes.
#[inline]
pub(super) fn char(bytes: &[u8]) -> Option<&[u8]> {
    let end = bytes.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
    (!bytes.is_empty()).then_some(&bytes[..end])
}

pub(super) fn decimal(bytes: &[u8], scale: u8) -> Result<i128, Fault> {
    let (first, rest) = bytes.split_first().ok_or(Fault::Form)?;
    if bytes.len() > DECIMAL_BYTES_MAX {
        return Err(Fault::Form);
    }
    let first_exponent = i64::from(*first);
    match *first {
        DECIMAL_ZERO if rest.is_empty() => Ok(0),
        ..=0x7f => {
            let pairs = match rest.split_last() {
                Some((&NEGATIVE_END, pairs)) => pairs,
                _ if bytes.len() == DECIMAL_BYTES_MAX => rest,
                _ => return Err(Fault::Form),
            };
            pairs_of(pairs, NEGATIVE_EXPONENT - first_exponent, |byte| NEGATIVE_PAIR.wrapping_sub(byte))?
                .scaled(true, scale)
        }
        _ => pairs_of(rest, first_exponent - POSITIVE_EXPONENT, |byte| byte.wrapping_sub(POSITIVE_PAIR))?
            .scaled(false, scale),
    }
}

/// Digits, and the base-10 exponent of the last one.
struct ScaledDigits {
    digits: Digits,
    exponent: i64,
}

impl ScaledDigits {
    fn scaled(&self, negative: bool, scale: u8) -> Result<i128, Fault> {
        self.digits.scaled(negative, self.exponent, scale)
    }
}

/// Decodes pairs of digits with `pair`. The first and the last pair must not be 0.
fn pairs_of(bytes: &[u8], exponent: i64, pair: impl Fn(u8) -> u8) -> Result<ScaledDigits, Fault> {
    let ends = [bytes.first(), bytes.last()];
    if ends.iter().any(|end| end.is_none_or(|byte| pair(*byte) == 0))
        || bytes.iter().any(|byte| pair(*byte) > 99)
    {
        return Err(Fault::Form);
    }
    let digits = Digits::of_pairs(bytes.iter().map(|byte| pair(*byte)));
    Ok(ScaledDigits { digits, exponent: 2 * (exponent - bytes.len() as i64) })
}

pub(super) fn write_whole(encoding: Encoding, value: i64) -> Option<Vec<u8>> {
    Some(match encoding {
        Encoding::PhoenixBoolean if (0..=1).contains(&value) => vec![value as u8],
        Encoding::PhoenixTinyint => (i8::try_from(value).ok()? ^ i8::MIN).to_be_bytes().to_vec(),
        Encoding::PhoenixSmallint => (i16::try_from(value).ok()? ^ i16::MIN).to_be_bytes().to_vec(),
        Encoding::PhoenixInteger => (i32::try_from(value).ok()? ^ i32::MIN).to_be_bytes().to_vec(),
        Encoding::PhoenixBigint | Encoding::PhoenixDate => (value ^ i64::MIN).to_be_bytes().to_vec(),
        Encoding::PhoenixTimestamp => {
            let milliseconds = value.div_euclid(MILLISECOND_NS) ^ i64::MIN;
            let nanoseconds = value.rem_euclid(MILLISECOND_NS) as u32;
            [&milliseconds.to_be_bytes()[..], &nanoseconds.to_be_bytes()].concat()
        }
        _ => return None,
    })
}

pub(super) fn write_real(encoding: Encoding, value: f64) -> Option<Vec<u8>> {
    match encoding {
        Encoding::PhoenixFloat => {
            let bits = float_bits(value)? as i32;
            Some((bits ^ (bits >> 31 | i32::MIN)).wrapping_add(1).to_be_bytes().to_vec())
        }
        Encoding::PhoenixDouble => {
            let bits = double_bits(value) as i64;
            Some((bits ^ (bits >> 63 | i64::MIN)).wrapping_add(1).to_be_bytes().to_vec())
        }
        _ => None,
    }
}

pub(super) fn write_decimal(unscaled: i128, scale: u8) -> Option<Vec<u8>> {
    if unscaled == 0 {
        return Some(vec![DECIMAL_ZERO]);
    }
    let Pairs { exponent, pairs, .. } = Pairs::new(unscaled.unsigned_abs(), -i64::from(scale));
    let mut bytes = Vec::with_capacity(DECIMAL_BYTES_MAX);
    if unscaled > 0 {
        bytes.push(in_half(POSITIVE_EXPONENT + exponent, 0x80)?);
        bytes.extend(pairs.iter().map(|pair| pair + POSITIVE_PAIR));
    } else {
        bytes.push(in_half(NEGATIVE_EXPONENT - exponent, 0)?);
        bytes.extend(pairs.iter().map(|pair| NEGATIVE_PAIR - pair));
        if bytes.len() < DECIMAL_BYTES_MAX {
            bytes.push(NEGATIVE_END);
        }
    }
    Some(bytes)
}

/// An exponent byte, if it is in the half of the byte range that has the sign.
fn in_half(exponent: i64, half: u8) -> Option<u8> {
    u8::try_from(exponent).ok().filter(|byte| byte & 0x80 == half)
}

/// Not padded, because the column's length is unknown here. `None` for text that would not be read
/// back unchanged.
pub(super) fn write_char(value: &[u8]) -> Option<Vec<u8>> {
    value.last().is_some_and(|last| *last != b' ').then(|| value.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decimal_has_one_form() {
        assert_eq!(decimal(&[0xc1, 2], 2), Ok(100));
        assert_eq!(decimal(&[0x3e, 100, 102], 2), Ok(-100));
        let wrong: &[&[u8]] = &[
            &[0xc1],
            &[0xc1, 2, 1],
            &[0xc2, 1, 2],
            &[0xc1, 0],
            &[0xc1, 101],
            &[0x3e],
            &[0x3e, 102],
            &[0x3e, 100],
            &[0x3e, 100, 101, 102],
            &[0x3d, 101, 100, 102],
            &[0x3e, 1, 102],
            &[0x3e, 103, 102],
            &[2; 22],
        ];
        for bytes in wrong {
            assert_eq!(decimal(bytes, 2), Err(Fault::Form), "{bytes:x?}");
        }
    }

    #[test]
    fn decimals_out_of_bounds() {
        assert_eq!(decimal(&[0xff, 2], 0), Err(Fault::Digits));
        assert_eq!(decimal(&[0x80, 2], 38), Err(Fault::Scale));
        assert_eq!(decimal(&[0, 100, 102], 0), Err(Fault::Digits));
    }

    #[test]
    fn the_first_and_the_last_timestamp() {
        for end in [i64::MIN, i64::MAX] {
            let bytes = write_whole(Encoding::PhoenixTimestamp, end).expect("a time");
            assert_eq!(timestamp(&bytes), Some(end));
        }
        let beyond = [&(9_223_372_036_854 ^ i64::MIN).to_be_bytes()[..], &775_808u32.to_be_bytes()].concat();
        assert_eq!(timestamp(&beyond), None);
        assert_eq!(timestamp(&[&[0x80][..], &[0; 7], &1_000_000u32.to_be_bytes()].concat()), None);
    }

    #[test]
    fn trailing_spaces_are_not_part_of_a_char() {
        assert_eq!(char(b" a b  "), Some(&b" a b"[..]));
        assert_eq!(char(b"   "), Some(&b""[..]));
        assert_eq!(char(b""), None);
        assert_eq!(write_char(b"a "), None);
        assert_eq!(write_char(b""), None);
    }
}
