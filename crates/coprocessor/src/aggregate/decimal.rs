//! Decimal numbers as HBase writes them: four bytes of scale, then the unscaled number in two's complement, big-endian.
//!
//! Digits are bounded, for what is read comes from cells: bringing a number to another scale costs the square of its length.

use std::cmp::Ordering;

use super::integer::Integer;

/// Digits that a number may have, as it is stored and as it is rounded.
pub(super) const DIGITS_MAX: u64 = 4096;
/// Bytes that surely hold more of them.
const UNSCALED_LEN_MAX: usize = 2048;

/// A decimal number: an integer divided by a power of ten.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Decimal {
    unscaled: Integer,
    scale: i32,
}

/// Why bytes are no number that can be computed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Misfit {
    /// There are not enough of them.
    Short,
    /// The number has too many digits.
    Long,
}

impl Decimal {
    pub(super) fn new(unscaled: i128, scale: i32) -> Decimal {
        Decimal { unscaled: Integer::Small(unscaled), scale }
    }

    pub(super) fn read(bytes: &[u8]) -> Result<Decimal, Misfit> {
        let (scale, unscaled) = bytes.split_first_chunk::<4>().ok_or(Misfit::Short)?;
        match unscaled.len() {
            0 => Err(Misfit::Short),
            1..=UNSCALED_LEN_MAX => {
                Ok(Decimal { unscaled: Integer::from_bytes(unscaled), scale: i32::from_be_bytes(*scale) })
            }
            _ => Err(Misfit::Long),
        }
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        [&self.scale.to_be_bytes()[..], &self.unscaled.to_bytes()].concat()
    }

    /// The same number with so many places behind the point, halves rounded to the even neighbour.
    pub(super) fn round_to(self, places: i32) -> Result<Decimal, Misfit> {
        let further = i64::from(places) - i64::from(self.scale);
        let (least, most) = self.unscaled.digits();
        let unscaled = match u64::try_from(further) {
            Ok(0) => self.unscaled,
            Ok(_) if self.unscaled.is_zero() => self.unscaled,
            Ok(up) if least + up > DIGITS_MAX => return Err(Misfit::Long),
            Ok(up) => self.unscaled.scale_up(up),
            // Less than a tenth.
            Err(_) if most < further.unsigned_abs() => Integer::Small(0),
            Err(_) => self.unscaled.scale_down(further.unsigned_abs()),
        };
        Ok(Decimal { unscaled, scale: places })
    }

    /// The order of two numbers of one scale.
    pub(super) fn compare(&self, other: &Decimal) -> Ordering {
        debug_assert_eq!(self.scale, other.scale);
        self.unscaled.cmp(&other.unscaled)
    }

    /// The sum of two numbers of one scale.
    pub(super) fn add(&self, other: &Decimal) -> Decimal {
        debug_assert_eq!(self.scale, other.scale);
        Decimal { unscaled: self.unscaled.add(&other.unscaled), scale: self.scale }
    }

    /// The product of two numbers with `places` behind the point, rounded to as many.
    pub(super) fn multiply(&self, other: &Decimal, places: i32) -> Decimal {
        debug_assert_eq!((self.scale, other.scale), (places, places));
        let unscaled = self.unscaled.multiply(&other.unscaled).scale_down(places.unsigned_abs().into());
        Decimal { unscaled, scale: places }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounded(unscaled: i128, scale: i32) -> Result<Decimal, Misfit> {
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
        assert_eq!(rounded(1, i32::MIN), Err(Misfit::Long));
        assert_eq!(rounded(1, -10_000), Err(Misfit::Long));
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
    fn bytes_come_back() {
        let bytes = [0, 0, 0, 2, 0xfe, 0x0c];
        assert_eq!(Decimal::read(&bytes).unwrap().to_bytes(), bytes);
        assert_eq!(Decimal::read(&bytes[..4]), Err(Misfit::Short));
    }
}
