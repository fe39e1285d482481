//! Decimal numbers in HBase's encoding: 4 bytes of scale, then the unscaled number in big-endian
//! two's complement.
//!
//! The number of digits is limited, because the input is untrusted: changing the scale takes time
//! quadratic in the length.

use std::cmp::Ordering;

use super::integer::Integer;

/// Maximum number of digits, both stored and after rounding.
pub(super) const DIGITS_MAX: u64 = 4096;
/// Number of bytes that always contain more digits than that.
const UNSCALED_LEN_MAX: usize = 2048;

/// A decimal number: an integer divided by a power of ten.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Decimal {
    unscaled: Integer,
    scale: i32,
}

/// Reason why bytes cannot be used as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DecimalError {
    /// Too few bytes.
    Short,
    /// The number has too many digits.
    Long,
}

impl Decimal {
    pub(super) fn new(unscaled: i128, scale: i32) -> Decimal {
        Decimal { unscaled: Integer::Small(unscaled), scale }
    }

    pub(super) fn read(bytes: &[u8]) -> Result<Decimal, DecimalError> {
        let (scale, unscaled) = bytes.split_first_chunk::<4>().ok_or(DecimalError::Short)?;
        match unscaled.len() {
            0 => Err(DecimalError::Short),
            1..=UNSCALED_LEN_MAX => {
                Ok(Decimal { unscaled: Integer::from_bytes(unscaled), scale: i32::from_be_bytes(*scale) })
            }
            _ => Err(DecimalError::Long),
        }
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        [&self.scale.to_be_bytes()[..], &self.unscaled.to_bytes()].concat()
    }

    /// Rounds to `places` decimal places, half to even.
    pub(super) fn round_to(self, places: i32) -> Result<Decimal, DecimalError> {
        let further = i64::from(places) - i64::from(self.scale);
        let (least, most) = self.unscaled.digits();
        let unscaled = match u64::try_from(further) {
            Ok(0) => self.unscaled,
            Ok(_) if self.unscaled.is_zero() => self.unscaled,
            Ok(up) if least + up > DIGITS_MAX => return Err(DecimalError::Long),
            Ok(up) => self.unscaled.scale_up(up),
            // Less than 0.1 units of the last place.
            Err(_) if most < further.unsigned_abs() => Integer::Small(0),
            Err(_) => self.unscaled.scale_down(further.unsigned_abs()),
        };
        Ok(Decimal { unscaled, scale: places })
    }

    /// Compares two numbers with the same scale.
    pub(super) fn compare(&self, other: &Decimal) -> Ordering {
        debug_assert_eq!(self.scale, other.scale);
        self.unscaled.cmp(&other.unscaled)
    }

    /// Adds two numbers with the same scale.
    pub(super) fn add(&self, other: &Decimal) -> Decimal {
        debug_assert_eq!(self.scale, other.scale);
        Decimal { unscaled: self.unscaled.add(&other.unscaled), scale: self.scale }
    }

    /// Multiplies two numbers with `places` decimal places; the result is rounded to `places`.
    pub(super) fn multiply(&self, other: &Decimal, places: i32) -> Decimal {
        debug_assert_eq!((self.scale, other.scale), (places, places));
        let unscaled = self.unscaled.multiply(&other.unscaled).scale_down(places.unsigned_abs().into());
        Decimal { unscaled, scale: places }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounded(unscaled: i128, scale: i32) -> Result<Decimal, DecimalError> {
        Decimal::new(unscaled, scale).round_to(2)
    }

    #[test]
    fn numbers_are_rounded_whatever_their_scale() {
        for (unscaled, scale, expected) in [
            (5, 3, 0),
            (15, 3, 2),
            (-25, 3, -2),
            (-51, 4, -1),
            (1, 0, 100),
            (7, -3, 700_000),
            (0, 400, 0),
            (0, i32::MIN, 0),
            (0, i32::MAX, 0),
            (i128::MAX, i32::MAX, 0),
            (99, 400, 0),
        ] {
            assert_eq!(rounded(unscaled, scale), Ok(Decimal::new(expected, 2)), "{unscaled} {scale}");
        }
        assert_eq!(rounded(1, i32::MIN), Err(DecimalError::Long));
        assert_eq!(rounded(1, -10_000), Err(DecimalError::Long));
        assert!(rounded(1, -4000).is_ok());
    }

    #[test]
    fn products_are_rounded() {
        let product = |left, right| Decimal::new(left, 2).multiply(&Decimal::new(right, 2), 2);
        assert_eq!(product(150, 150), Decimal::new(225, 2));
        assert_eq!(product(5, 10), Decimal::new(0, 2));
        assert_eq!(product(15, 10), Decimal::new(2, 2));
        assert_eq!(product(-5, 30), Decimal::new(-2, 2));
    }

    #[test]
    fn decimals_round_trip_as_bytes() {
        let bytes = [0, 0, 0, 2, 0xfe, 0x0c];
        assert_eq!(Decimal::read(&bytes).unwrap().to_bytes(), bytes);
        assert_eq!(Decimal::read(&bytes[..4]), Err(DecimalError::Short));
    }
}
