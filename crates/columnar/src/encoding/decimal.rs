//! Conversion of decimals to the scale of a column: exact, or an error.
//!
//! The input is a sequence of digits, or an integer and a power of ten. Its magnitude is bounded
//! before any multiplication, so an exponent of a billion costs no more than an exponent of three.

use crate::column::DECIMAL_DIGITS_MAX;

/// Powers of ten up to 10^[`DECIMAL_DIGITS_MAX`].
const POWERS: [u128; DECIMAL_DIGITS_MAX as usize + 1] = {
    let mut powers = [1; DECIMAL_DIGITS_MAX as usize + 1];
    let mut at = 1;
    while at < powers.len() {
        powers[at] = powers[at - 1] * 10;
        at += 1;
    }
    powers
};

/// Number of digits that always fit in 64 bits.
const SHORT_DIGITS: usize = 18;

/// The smallest number with too many digits.
const BOUND: u128 = POWERS[DECIMAL_DIGITS_MAX as usize];

/// Reason why bytes are not a decimal of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// They are not a number.
    Form,
    /// More digits after the decimal point than the scale allows.
    Scale,
    /// More than [`DECIMAL_DIGITS_MAX`] digits.
    Digits,
}

/// Whether an unscaled number has at most [`DECIMAL_DIGITS_MAX`] digits.
pub(super) fn fits(unscaled: i128) -> bool {
    unscaled.unsigned_abs() < BOUND
}

/// The unscaled number, at `scale`, of `magnitude * 10^exponent`.
pub(super) fn scaled(negative: bool, magnitude: u128, exponent: i64, scale: u8) -> Result<i128, Fault> {
    if magnitude == 0 {
        return Ok(0);
    }
    let shift = exponent.saturating_add(i64::from(scale));
    let power = usize::try_from(shift.unsigned_abs()).ok().and_then(|at| POWERS.get(at)).copied();
    let moved = match power {
        Some(1) => magnitude,
        Some(power) if shift > 0 => magnitude.checked_mul(power).ok_or(Fault::Digits)?,
        None if shift > 0 => return Err(Fault::Digits),
        Some(power) => divided(magnitude, power).ok_or(Fault::Scale)?,
        None => return Err(Fault::Scale),
    };
    if moved >= BOUND {
        return Err(Fault::Digits);
    }
    // Below the bound, which is less than `i128::MAX`.
    let unscaled = moved as i128;
    Ok(if negative { -unscaled } else { unscaled })
}

/// The quotient if the remainder is 0. Usually both fit in 64 bits; a 128-bit division is several
/// times slower.
fn divided(magnitude: u128, power: u128) -> Option<u128> {
    match (u64::try_from(magnitude), u64::try_from(power)) {
        (Ok(magnitude), Ok(power)) => magnitude.is_multiple_of(power).then(|| (magnitude / power).into()),
        _ => magnitude.is_multiple_of(power).then(|| magnitude / power),
    }
}

/// A number that is read digit by digit, from the left.
#[derive(Default)]
pub(super) struct Digits {
    significant: u128,
    count: u64,
    /// Zeros after the significant digits so far.
    zeros: u64,
    too_many: bool,
}

impl Digits {
    /// Reads `count` digits from text, `0` to `9`.
    pub(super) fn of_text<'a>(digits: impl Iterator<Item = &'a u8>, count: usize) -> Digits {
        if count <= SHORT_DIGITS {
            return Self::short(digits.fold(0, |number, digit| number * 10 + u64::from(digit - b'0')));
        }
        let mut long = Digits::default();
        digits.for_each(|digit| long.push(digit - b'0'));
        long
    }

    /// Reads pairs of digits, 0 to 99.
    pub(super) fn of_pairs(pairs: impl ExactSizeIterator<Item = u8>) -> Digits {
        if 2 * pairs.len() <= SHORT_DIGITS {
            return Self::short(pairs.fold(0, |number, pair| number * 100 + u64::from(pair)));
        }
        let mut long = Digits::default();
        for pair in pairs {
            long.push(pair / 10);
            long.push(pair % 10);
        }
        long
    }

    fn short(number: u64) -> Digits {
        let count = number.checked_ilog10().map_or(0, |log| u64::from(log) + 1);
        Digits { significant: number.into(), count, zeros: 0, too_many: false }
    }

    /// Appends a digit, 0 to 9.
    pub(super) fn push(&mut self, digit: u8) {
        if digit == 0 {
            self.zeros += u64::from(self.significant != 0);
            return;
        }
        let count = self.count + self.zeros + 1;
        if count > u64::from(DECIMAL_DIGITS_MAX) {
            self.too_many = true;
            return;
        }
        self.significant = self.significant * POWERS[self.zeros as usize + 1] + u128::from(digit);
        (self.count, self.zeros) = (count, 0);
    }

    /// The number without trailing zeros, and their count; `None` if it has more than
    /// [`DECIMAL_DIGITS_MAX`] digits. A short number may still contain the zeros.
    pub(super) fn number(&self) -> Option<(u128, i64)> {
        (!self.too_many).then_some((self.significant, i64::try_from(self.zeros).unwrap_or(i64::MAX)))
    }

    /// The unscaled number, at `scale`, if the last digit has weight `10^exponent`.
    pub(super) fn scaled(&self, negative: bool, exponent: i64, scale: u8) -> Result<i128, Fault> {
        let (magnitude, zeros) = self.number().ok_or(Fault::Digits)?;
        scaled(negative, magnitude, exponent.saturating_add(zeros), scale)
    }
}

/// A non-zero number as 0.PPPP... * 100^exponent. Each P is a pair of digits; the first and the
/// last pair are not 0. OrderedBytes and Phoenix both use this form.
pub(super) struct Pairs {
    pub(super) exponent: i64,
    pub(super) pairs: Vec<u8>,
    /// Number of digits without leading and trailing zeros.
    pub(super) significant: usize,
}

impl Pairs {
    /// Converts `magnitude * 10^exponent`; `magnitude` is not 0.
    pub(super) fn new(mut magnitude: u128, exponent: i64) -> Pairs {
        debug_assert!(magnitude != 0, "zero has no first digit");
        let mut exponent = exponent;
        while magnitude.is_multiple_of(10) {
            magnitude /= 10;
            exponent += 1;
        }
        let significant = magnitude.ilog10() as usize + 1;
        let mut pairs = Vec::new();
        // Pairs are aligned to the decimal point. A number that ends within a pair gets a trailing
        // zero.
        if exponent.rem_euclid(2) == 1 {
            pairs.push((magnitude % 10 * 10) as u8);
            magnitude /= 10;
            exponent -= 1;
        }
        while magnitude != 0 {
            pairs.push((magnitude % 100) as u8);
            magnitude /= 100;
        }
        pairs.reverse();
        Pairs { exponent: exponent / 2 + pairs.len() as i64, pairs, significant }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of a text of digits times `10^exponent`, at `scale`.
    fn digits(text: &str, exponent: i64, scale: u8) -> Result<i128, Fault> {
        let mut digits = Digits::default();
        text.bytes().for_each(|digit| digits.push(digit - b'0'));
        digits.scaled(false, exponent, scale)
    }

    #[test]
    fn zeros_at_either_end_are_no_digits() {
        let many = "0".repeat(1000);
        assert_eq!(digits(&format!("{many}12{many}"), -1000, 0), Ok(12));
        assert_eq!(digits(&format!("1{many}"), -1001, 1), Ok(1));
        assert_eq!(digits(&format!("1{many}1"), -1001, 0), Err(Fault::Digits));
        assert_eq!(digits(&many, i64::MAX, 38), Ok(0));
    }

    #[test]
    fn thirty_eight_digits_and_no_more() {
        let nines = "9".repeat(38);
        let most = 10i128.pow(38) - 1;
        assert_eq!(digits(&nines, 0, 0), Ok(most));
        assert_eq!(digits(&nines, -38, 38), Ok(most));
        assert_eq!(digits(&nines, -37, 38), Err(Fault::Digits));
        assert_eq!(digits(&nines, -1, 0), Err(Fault::Scale));
        assert_eq!(digits(&format!("{nines}9"), -39, 38), Err(Fault::Digits));
        assert_eq!(scaled(true, u128::MAX, 0, 0), Err(Fault::Digits));
        assert_eq!(scaled(true, BOUND, -1, 0), Ok(-(10i128.pow(37))));
    }

    #[test]
    fn extreme_exponents() {
        assert_eq!(scaled(false, 1, i64::MAX, 38), Err(Fault::Digits));
        assert_eq!(scaled(false, 1, i64::MIN, 0), Err(Fault::Scale));
        assert_eq!(scaled(false, 1, 38, 0), Err(Fault::Digits));
        assert_eq!(scaled(false, 1, -38, 38), Ok(1));
        assert_eq!(scaled(false, 1, -39, 38), Err(Fault::Scale));
    }

    #[test]
    fn pairs_meet_at_the_point() {
        let check = |magnitude, exponent, wanted: (i64, &[u8])| {
            let found = Pairs::new(magnitude, exponent);
            assert_eq!((found.exponent, &found.pairs[..]), wanted, "{magnitude}e{exponent}");
        };
        check(1, 0, (1, &[1]));
        check(1, -1, (0, &[10]));
        check(1, -2, (0, &[1]));
        check(1, -3, (-1, &[10]));
        check(1000, 0, (2, &[10]));
        check(12345, -1, (2, &[12, 34, 50]));
        check(12345, 0, (3, &[1, 23, 45]));
        assert_eq!(Pairs::new(BOUND - 1, -1).pairs.len(), 20);
    }
}
