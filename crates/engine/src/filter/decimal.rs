//! Decimal numbers in HBase's format: four bytes of scale, then the unscaled number in two's
//! complement, big-endian.
//!
//! They are only compared, so no library for big numbers is needed. Their bytes come from clients
//! and cells, so digits are limited, because bringing two numbers to one scale costs the square of
//! their length.

use std::cmp::Ordering;

use super::{FilterError, FilterResult};

/// Maximum bytes of an unscaled number that is compared: about 2,400 decimal digits.
const UNSCALED_LEN_MAX: usize = 1024;
/// Number of decimal digits that fit in one limb.
const LIMB_DIGITS: u64 = 9;

/// A decimal number.
pub(super) struct Decimal {
    negative: bool,
    // The magnitude, little-endian, without leading zero limbs; empty for zero.
    limbs: Vec<u32>,
    scale: i32,
}

impl Decimal {
    pub(super) fn parse(bytes: &[u8]) -> FilterResult<Decimal> {
        let error = || FilterError::Decimal(bytes.len());
        let (scale, unscaled) = bytes.split_first_chunk::<4>().ok_or_else(error)?;
        let first = *unscaled.first().ok_or_else(error)?;
        if unscaled.len() > UNSCALED_LEN_MAX {
            return Err(error());
        }
        let negative = first & 0x80 != 0;
        let mut limbs: Vec<u32> = unscaled
            .rchunks(4)
            .map(|chunk| {
                let fill = if negative { 0xff } else { 0 };
                let mut limb = [fill; 4];
                limb[4 - chunk.len()..].copy_from_slice(chunk);
                u32::from_be_bytes(limb)
            })
            .collect();
        if negative {
            negate(&mut limbs);
        }
        trim(&mut limbs);
        Ok(Decimal { negative, limbs, scale: i32::from_be_bytes(*scale) })
    }

    /// Compares by value: scales do not matter.
    pub(super) fn compare(&self, other: &Decimal) -> FilterResult<Ordering> {
        let sign = |number: &Decimal| match (number.limbs.is_empty(), number.negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        };
        let (left, right) = (sign(self), sign(other));
        if left != right || left == 0 {
            return Ok(left.cmp(&right));
        }
        let magnitudes = self.compare_magnitude(other)?;
        Ok(if left < 0 { magnitudes.reverse() } else { magnitudes })
    }

    fn compare_magnitude(&self, other: &Decimal) -> FilterResult<Ordering> {
        // Bounds of the decimal exponents. They decide for numbers that are far apart.
        let (low, high) = self.exponents();
        let (other_low, other_high) = other.exponents();
        if high < other_low {
            return Ok(Ordering::Less);
        }
        if other_high < low {
            return Ok(Ordering::Greater);
        }
        // Now the scales differ by no more than the digits of the longer number.
        let difference = i64::from(other.scale) - i64::from(self.scale);
        let order = match difference {
            0 => compare_limbs(&self.limbs, &other.limbs),
            1.. => compare_limbs(&times_power_of_ten(&self.limbs, difference.unsigned_abs()), &other.limbs),
            _ => compare_limbs(&self.limbs, &times_power_of_ten(&other.limbs, difference.unsigned_abs())),
        };
        Ok(order)
    }

    /// Bounds of the decimal exponent of a number that is not zero.
    fn exponents(&self) -> (i64, i64) {
        let last = self.limbs.last().expect("not zero");
        let bits = self.limbs.len() as i64 * 32 - i64::from(last.leading_zeros());
        // log10(2) lies between 0.30102 and 0.30103.
        let (low, high) = ((bits - 1) * 30102 / 100_000, bits * 30103 / 100_000 + 1);
        (low - i64::from(self.scale), high - i64::from(self.scale))
    }
}

fn negate(limbs: &mut [u32]) {
    let mut carry = true;
    for limb in limbs {
        (*limb, carry) = (!*limb).overflowing_add(u32::from(carry));
    }
}

fn trim(limbs: &mut Vec<u32>) {
    while limbs.last() == Some(&0) {
        limbs.pop();
    }
}

fn compare_limbs(left: &[u32], right: &[u32]) -> Ordering {
    left.len().cmp(&right.len()).then_with(|| left.iter().rev().cmp(right.iter().rev()))
}

fn times_power_of_ten(limbs: &[u32], mut exponent: u64) -> Vec<u32> {
    let mut product = limbs.to_vec();
    while exponent > 0 {
        let digits = exponent.min(LIMB_DIGITS);
        let factor = 10u64.pow(digits as u32);
        let mut carry = 0u64;
        for limb in &mut product {
            let value = u64::from(*limb) * factor + carry;
            *limb = value as u32;
            carry = value >> 32;
        }
        if carry > 0 {
            product.push(carry as u32);
        }
        exponent -= digits;
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(scale: i32, unscaled: &[u8]) -> Decimal {
        Decimal::parse(&[&scale.to_be_bytes()[..], unscaled].concat()).unwrap()
    }

    fn number(scale: i32, unscaled: i128) -> Decimal {
        decimal(scale, &unscaled.to_be_bytes())
    }

    #[test]
    fn decimals_of_different_scales_compare() {
        let ordered = [
            number(-30, -1),
            number(0, -200),
            number(2, -10_001),
            number(1, -1000),
            number(0, -1),
            number(40, -1),
            number(7, 0),
            number(3, 1),
            number(2, 1),
            number(0, 99),
            number(1, 991),
            number(0, 100),
            number(3, 100_001),
            number(-20, 12),
            number(0, i128::MAX),
            number(i32::MIN, 1),
        ];
        for (at, left) in ordered.iter().enumerate() {
            for (right_at, right) in ordered.iter().enumerate() {
                assert_eq!(left.compare(right), Ok(at.cmp(&right_at)), "{at} {right_at}");
            }
        }
        assert_eq!(number(0, 5).compare(&number(3, 5000)), Ok(Ordering::Equal));
        assert_eq!(number(-2, -5).compare(&decimal(0, &[0xfe, 0x0c])), Ok(Ordering::Equal));
        assert_eq!(number(i32::MAX, 0).compare(&number(i32::MIN, 0)), Ok(Ordering::Equal));
    }

    #[test]
    fn invalid_decimals_are_rejected() {
        assert!(Decimal::parse(&[0, 0, 0, 1]).is_err());
        assert!(Decimal::parse(&[]).is_err());
        assert!(Decimal::parse(&[1; 2000]).is_err());
    }
}
