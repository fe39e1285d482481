//! Encodings of `org.apache.hadoop.hbase.util.Bytes`: big-endian, two's complement. Phoenix's
//! `UNSIGNED_` types are the same.
//!
//! A decimal is a 4-byte scale, which may be negative, followed by the unscaled number in as many
//! bytes as it needs.

use super::Encoding;
use super::decimal::{Digits, Fault, scaled};

/// Maximum bytes of an unscaled number. Conversion to decimal digits takes quadratic time, and a
/// longer number has more than a thousand digits, which no column accepts.
const UNSCALED_BYTES_MAX: usize = 512;

/// Divisor for the conversion to decimal digits, and its number of digits.
const CHUNK: u64 = 1_000_000_000;
const CHUNK_DIGITS: u32 = 9;

#[inline]
pub(super) fn boolean(bytes: &[u8]) -> Option<i64> {
    byte(bytes).map(|byte| i64::from(byte != 0))
}

#[inline]
pub(super) fn byte(bytes: &[u8]) -> Option<i64> {
    Some(i8::from_be_bytes(bytes.try_into().ok()?).into())
}

#[inline]
pub(super) fn short(bytes: &[u8]) -> Option<i64> {
    Some(i16::from_be_bytes(bytes.try_into().ok()?).into())
}

#[inline]
pub(super) fn int(bytes: &[u8]) -> Option<i64> {
    Some(i32::from_be_bytes(bytes.try_into().ok()?).into())
}

#[inline]
pub(super) fn long(bytes: &[u8]) -> Option<i64> {
    Some(i64::from_be_bytes(bytes.try_into().ok()?))
}

#[inline]
pub(super) fn float(bytes: &[u8]) -> Option<f64> {
    Some(f32::from_be_bytes(bytes.try_into().ok()?).into())
}

#[inline]
pub(super) fn double(bytes: &[u8]) -> Option<f64> {
    Some(f64::from_be_bytes(bytes.try_into().ok()?))
}

pub(super) fn decimal(bytes: &[u8], scale: u8) -> Result<i128, Fault> {
    let (own, unscaled) = bytes.split_first_chunk().ok_or(Fault::Form)?;
    let exponent = -i64::from(i32::from_be_bytes(*own));
    let first = *unscaled.first().ok_or(Fault::Form)?;
    let fill = if first >= 0x80 { 0xff } else { 0 };
    if unscaled.len() <= size_of::<i128>() {
        let mut wide = [fill; size_of::<i128>()];
        wide[size_of::<i128>() - unscaled.len()..].copy_from_slice(unscaled);
        let number = i128::from_be_bytes(wide);
        return scaled(number < 0, number.unsigned_abs(), exponent, scale);
    }
    let filling = unscaled.iter().take_while(|byte| **byte == fill).count();
    let limbs = magnitude(&unscaled[filling..], fill)?;
    digits(limbs).scaled(fill != 0, exponent, scale)
}

/// The absolute value in 32-bit limbs, most significant first. `fill` is 0xff for a negative
/// number, else 0.
fn magnitude(bytes: &[u8], fill: u8) -> Result<Vec<u32>, Fault> {
    if bytes.len() > UNSCALED_BYTES_MAX {
        return Err(Fault::Digits);
    }
    // An extra limb for the carry of the two's complement.
    let mut limbs = vec![0];
    let (odd, whole) = bytes.split_at(bytes.len() % 4);
    limbs.push(odd.iter().fold(0, |limb, byte| limb << 8 | u32::from(byte ^ fill)));
    limbs.extend(
        whole
            .chunks_exact(4)
            .map(|four| four.iter().fold(0, |limb, byte| limb << 8 | u32::from(byte ^ fill))),
    );
    let mut carry = fill != 0;
    for limb in limbs.iter_mut().rev() {
        (*limb, carry) = limb.overflowing_add(u32::from(carry));
    }
    Ok(limbs)
}

fn digits(mut limbs: Vec<u32>) -> Digits {
    let mut chunks = Vec::new();
    while limbs.iter().any(|limb| *limb != 0) {
        let mut rest = 0;
        for limb in &mut limbs {
            let part = rest << 32 | u64::from(*limb);
            // Less than 2^32, because `rest` is less than the divisor.
            *limb = (part / CHUNK) as u32;
            rest = part % CHUNK;
        }
        chunks.push(rest);
    }
    let mut digits = Digits::default();
    for chunk in chunks.iter().rev() {
        for at in (0..CHUNK_DIGITS).rev() {
            digits.push((chunk / 10u64.pow(at) % 10) as u8);
        }
    }
    digits
}

pub(super) fn write_whole(encoding: Encoding, value: i64) -> Option<Vec<u8>> {
    Some(match encoding {
        // Source: Bytes.toBytes(boolean).
        Encoding::BytesBoolean => match value {
            0 => vec![0],
            1 => vec![0xff],
            _ => return None,
        },
        Encoding::BytesByte => i8::try_from(value).ok()?.to_be_bytes().to_vec(),
        Encoding::BytesShort => i16::try_from(value).ok()?.to_be_bytes().to_vec(),
        Encoding::BytesInt => i32::try_from(value).ok()?.to_be_bytes().to_vec(),
        Encoding::BytesLong => value.to_be_bytes().to_vec(),
        _ => return None,
    })
}

pub(super) fn write_real(encoding: Encoding, value: f64) -> Option<Vec<u8>> {
    match encoding {
        Encoding::BytesFloat => Some(float_bits(value)?.to_be_bytes().to_vec()),
        Encoding::BytesDouble => Some(double_bits(value).to_be_bytes().to_vec()),
        _ => None,
    }
}

/// The bits of a number in single precision; `None` if it has none. All NaNs become Java's
/// canonical NaN.
pub(super) fn float_bits(value: f64) -> Option<u32> {
    let single = value as f32;
    match value.is_nan() {
        true => Some(0x7fc0_0000),
        false => (f64::from(single) == value).then_some(single.to_bits()),
    }
}

/// The bits of a number. All NaNs become Java's canonical NaN.
pub(super) fn double_bits(value: f64) -> u64 {
    if value.is_nan() { 0x7ff8_0000_0000_0000 } else { value.to_bits() }
}

pub(super) fn write_decimal(unscaled: i128, scale: u8) -> Vec<u8> {
    let wide = unscaled.to_be_bytes();
    // Skip leading bytes that only repeat the sign of the next byte.
    let needless =
        wide.windows(2).take_while(|pair| matches!((pair[0], pair[1]), (0, ..0x80) | (0xff, 0x80..))).count();
    let mut bytes = i32::from(scale).to_be_bytes().to_vec();
    bytes.extend_from_slice(&wide[needless..]);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes a scale and an unscaled number at scale 2.
    fn read(own: i32, unscaled: &[u8]) -> Result<i128, Fault> {
        decimal(&[&own.to_be_bytes()[..], unscaled].concat(), 2)
    }

    #[test]
    fn a_scale_may_be_negative_or_absurd() {
        assert_eq!(read(-3, &[5]), Ok(500_000));
        assert_eq!(read(3, &[50]), Ok(5));
        assert_eq!(read(3, &[51]), Err(Fault::Scale));
        assert_eq!(read(i32::MIN, &[1]), Err(Fault::Digits));
        assert_eq!(read(i32::MAX, &[1]), Err(Fault::Scale));
        assert_eq!(read(i32::MIN, &[0]), Ok(0));
    }

    #[test]
    fn numbers_longer_than_they_need_be() {
        assert_eq!(read(2, &[0; 100]), Ok(0));
        assert_eq!(read(2, &[&[0xff; 100][..], &[0xfe]].concat()), Ok(-2));
        assert_eq!(read(2, &[0xff; 600]), Ok(-1));
        assert_eq!(read(2, &[&[0; 600][..], &[0x80]].concat()), Ok(128));
        // 2^128 and -(2^128).
        assert_eq!(read(2, &[&[1][..], &[0; 16]].concat()), Err(Fault::Digits));
        assert_eq!(read(2, &[&[0xff][..], &[0; 16]].concat()), Err(Fault::Digits));
        assert_eq!(read(2, &[&[1][..], &[0; 513]].concat()), Err(Fault::Digits));
    }

    #[test]
    fn zeros_after_a_point_far_to_the_left() {
        // 7 followed by a thousand zeros, in base 256.
        let mut number = vec![7u8];
        for _ in 0..1000 {
            let mut carry = 0;
            for byte in number.iter_mut().rev() {
                let product = u32::from(*byte) * 10 + carry;
                (*byte, carry) = (product as u8, product >> 8);
            }
            number.insert(0, carry as u8);
        }
        assert_eq!(read(1000, &number), Ok(700));
        assert_eq!(read(1002, &number), Ok(7));
        assert_eq!(read(1003, &number), Err(Fault::Scale));
        let negative: Vec<u8> = complement(&number);
        assert_eq!(read(1000, &negative), Ok(-700));
    }

    fn complement(bytes: &[u8]) -> Vec<u8> {
        let mut bytes: Vec<u8> = bytes.iter().map(|byte| !byte).collect();
        for byte in bytes.iter_mut().rev() {
            *byte = byte.wrapping_add(1);
            if *byte != 0 {
                break;
            }
        }
        bytes
    }

    #[test]
    fn no_number_at_all() {
        assert_eq!(decimal(&[], 0), Err(Fault::Form));
        assert_eq!(decimal(&[0, 0, 0, 1], 0), Err(Fault::Form));
    }
}
