//! Variable-length numbers (`encodeNumeric`), from negative infinity to NaN, in numeric order.
//!
//! A number is 0.PPPP... * 100^E, with pairs of digits P. The header contains the sign and E, or
//! states that E follows as a variable-length number. E has all bits inverted if a greater E means
//! a smaller number. The pairs follow: 2P+1 each, except the last, which is 2P. All their bits are
//! inverted if the number is negative.
//!
//! HBase rounds to 31 digits when it writes, and reads numbers of any length.

use super::super::bytes::double_bits;
use super::super::decimal::{Digits, Fault, Pairs};

// Source: the constants of OrderedBytes.
const NEGATIVE_INFINITY: u8 = 0x07;
const NEGATIVE_LARGE: u8 = 0x08;
const NEGATIVE_MEDIUM_LAST: u8 = 0x09;
const NEGATIVE_MEDIUM: u8 = 0x13;
const NEGATIVE_SMALL: u8 = 0x14;
const ZERO: u8 = 0x15;
const POSITIVE_SMALL: u8 = 0x16;
const POSITIVE_MEDIUM: u8 = 0x17;
const POSITIVE_MEDIUM_LAST: u8 = 0x21;
const POSITIVE_LARGE: u8 = 0x22;
const POSITIVE_INFINITY: u8 = 0x23;
const NAN: u8 = 0x26;
/// The first and the last header.
pub(super) const HEADERS: (u8, u8) = (NEGATIVE_INFINITY, NAN);
/// Maximum number of digits that HBase writes. Source: OrderedBytes.MAX_PRECISION.
const DIGITS_MAX: usize = 31;

/// Whole numbers up to this, and the powers of ten in `EXACT_POWERS`, are exact in double
/// precision. One multiplication or division of the two is therefore correctly rounded.
const EXACT_MAX: u128 = 1 << 53;
const EXACT_POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
];

enum Numeric<'a> {
    Nan,
    Infinite { negative: bool },
    Zero,
    Finite(Finite<'a>),
}

struct Finite<'a> {
    negative: bool,
    /// Exponent to base 100.
    exponent: i64,
    pairs: &'a [u8],
    /// Mask that restores the bits of the pairs.
    turned: u8,
}

pub(in super::super) fn decimal(bytes: &[u8], scale: u8) -> Result<i128, Fault> {
    match Numeric::of(bytes).ok_or(Fault::Form)? {
        Numeric::Zero => Ok(0),
        Numeric::Finite(number) => number.digits().scaled(number.negative, number.last_exponent(), scale),
        Numeric::Nan | Numeric::Infinite { .. } => Err(Fault::Form),
    }
}

pub(in super::super) fn double(bytes: &[u8]) -> Option<f64> {
    Some(match Numeric::of(bytes)? {
        Numeric::Nan => f64::NAN,
        Numeric::Infinite { negative: true } => f64::NEG_INFINITY,
        Numeric::Infinite { negative: false } => f64::INFINITY,
        Numeric::Zero => 0.0,
        Numeric::Finite(number) => number.nearest(),
    })
}

impl Numeric<'_> {
    fn of(bytes: &[u8]) -> Option<Numeric<'_>> {
        let (first, rest) = bytes.split_first()?;
        let descending = if *first >= 0x80 { 0xff } else { 0 };
        let header = first ^ descending;
        let negative = header < ZERO;
        let (exponent, pairs) = match header {
            NEGATIVE_INFINITY | POSITIVE_INFINITY => {
                return rest.is_empty().then_some(Numeric::Infinite { negative });
            }
            ZERO => return rest.is_empty().then_some(Numeric::Zero),
            NAN => return rest.is_empty().then_some(Numeric::Nan),
            NEGATIVE_MEDIUM_LAST..=NEGATIVE_MEDIUM => (i64::from(NEGATIVE_MEDIUM - header), rest),
            POSITIVE_MEDIUM..=POSITIVE_MEDIUM_LAST => (i64::from(header - POSITIVE_MEDIUM), rest),
            NEGATIVE_LARGE => exponent(rest, !descending)?,
            POSITIVE_LARGE => exponent(rest, descending)?,
            NEGATIVE_SMALL => exponent(rest, descending).map(|(size, rest)| (-size, rest))?,
            POSITIVE_SMALL => exponent(rest, !descending).map(|(size, rest)| (-size, rest))?,
            _ => return None,
        };
        let turned = if negative { !descending } else { descending };
        let number = Finite { negative, exponent, pairs, turned };
        number.is_whole().then_some(Numeric::Finite(number))
    }
}

/// Decodes a variable-length number whose bits are XORed with `turned`; also returns the bytes
/// after it. The first byte states how many bytes follow: none up to 240, one up to 2287, two up to
/// 67,823, then as many as the number needs.
fn exponent(bytes: &[u8], turned: u8) -> Option<(i64, &[u8])> {
    let (first, rest) = bytes.split_first()?;
    let first = first ^ turned;
    let following = match first {
        0..=240 => 0,
        241..=248 => 1,
        249 => 2,
        _ => usize::from(first - 247),
    };
    let (number, rest) = rest.split_at_checked(following)?;
    let number = number.iter().fold(0u64, |number, byte| number << 8 | u64::from(byte ^ turned));
    let size = match first {
        0..=240 => u64::from(first),
        241..=248 => 240 + (u64::from(first - 241) << 8) + number,
        249 => 2288 + number,
        _ => number,
    };
    Some((i64::try_from(size).unwrap_or(i64::MAX), rest))
}

impl Finite<'_> {
    /// Whether all bytes are valid pairs, and only the last is marked as the last.
    fn is_whole(&self) -> bool {
        let Some((last, others)) = self.pairs.split_last() else { return false };
        let is = |byte: u8, odd: u8| byte ^ self.turned < 200 && (byte ^ self.turned) & 1 == odd;
        is(*last, 0) && others.iter().all(|byte| is(*byte, 1))
    }

    fn pairs(&self) -> impl ExactSizeIterator<Item = u8> {
        self.pairs.iter().map(|byte| (byte ^ self.turned) >> 1)
    }

    fn digits(&self) -> Digits {
        Digits::of_pairs(self.pairs())
    }

    /// Exponent to base 10 of the last digit.
    fn last_exponent(&self) -> i64 {
        let pairs = i64::try_from(self.pairs.len()).unwrap_or(i64::MAX);
        self.exponent.saturating_sub(pairs).saturating_mul(2)
    }

    /// The nearest double.
    fn nearest(&self) -> f64 {
        let size = self.exact().unwrap_or_else(|| self.parsed());
        if self.negative { -size } else { size }
    }

    /// The absolute value, if a single multiplication or division computes it.
    fn exact(&self) -> Option<f64> {
        let (magnitude, zeros) = self.digits().number()?;
        let exponent = self.last_exponent().checked_add(zeros)?;
        if magnitude > EXACT_MAX {
            return None;
        }
        let power = EXACT_POWERS.get(usize::try_from(exponent.unsigned_abs()).ok()?)?;
        Some(if exponent < 0 { magnitude as f64 / power } else { magnitude as f64 * power })
    }

    fn parsed(&self) -> f64 {
        let mut text = String::with_capacity(2 * self.pairs.len() + 24);
        for pair in self.pairs() {
            text.push(char::from(b'0' + pair / 10));
            text.push(char::from(b'0' + pair % 10));
        }
        text.push_str(&format!("e{}", self.last_exponent()));
        text.parse().expect("digits and an exponent")
    }
}

pub(in super::super) fn write_decimal(unscaled: i128, scale: u8) -> Option<Vec<u8>> {
    if unscaled == 0 {
        return Some(vec![ZERO]);
    }
    let number = Pairs::new(unscaled.unsigned_abs(), -i64::from(scale));
    (number.significant <= DIGITS_MAX).then(|| written(unscaled < 0, &number))
}

/// Writes the digits that Java prints for the number.
pub(super) fn write_double(value: f64) -> Vec<u8> {
    match value {
        f64::INFINITY => return vec![POSITIVE_INFINITY],
        f64::NEG_INFINITY => return vec![NEGATIVE_INFINITY],
        0.0 => return vec![ZERO],
        value if value.is_nan() => return vec![NAN],
        _ => {}
    }
    let text = shown(f64::from_bits(double_bits(value.abs())));
    let (mantissa, exponent) = text.split_once('e').expect("the format has an exponent");
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let magnitude = format!("{whole}{fraction}").parse().expect("17 digits at most");
    let exponent: i64 = exponent.parse().expect("an exponent");
    written(value < 0.0, &Pairs::new(magnitude, exponent - fraction.len() as i64))
}

/// The fewest digits, at least two, that identify the number; among these, the nearest to it.
fn shown(value: f64) -> String {
    let two = format!("{value:.1e}");
    if two.parse() == Ok(value) { two } else { format!("{value:e}") }
}

fn written(negative: bool, number: &Pairs) -> Vec<u8> {
    let turned = if negative { 0xff } else { 0 };
    let mut bytes = Vec::with_capacity(number.pairs.len() + 2);
    // The sizes written here are less than 200 and take one byte.
    let size = number.exponent.unsigned_abs() as u8;
    match (negative, number.exponent) {
        (false, ..=0) => bytes.extend([POSITIVE_SMALL, !size]),
        (false, 1..=10) => bytes.push(POSITIVE_MEDIUM + size),
        (false, _) => bytes.extend([POSITIVE_LARGE, size]),
        (true, ..=0) => bytes.extend([NEGATIVE_SMALL, size]),
        (true, 1..=10) => bytes.push(NEGATIVE_MEDIUM - size),
        (true, _) => bytes.extend([NEGATIVE_LARGE, !size]),
    }
    let last = number.pairs.len() - 1;
    bytes
        .extend(number.pairs.iter().enumerate().map(|(at, pair)| (2 * pair + u8::from(at != last)) ^ turned));
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponents_of_all_lengths() {
        let check = |bytes: &[u8], wanted| {
            assert_eq!(exponent(bytes, 0).map(|(size, _)| size), Some(wanted), "{bytes:x?}");
            let turned: Vec<u8> = bytes.iter().map(|byte| !byte).collect();
            assert_eq!(exponent(&turned, 0xff).map(|(size, _)| size), Some(wanted), "{bytes:x?}");
            assert!(bytes.len() == 1 || exponent(&bytes[..bytes.len() - 1], 0).is_none(), "{bytes:x?}");
        };
        check(&[240], 240);
        check(&[241, 0], 240);
        check(&[241, 1], 241);
        check(&[248, 255], 2287);
        check(&[249, 0, 0], 2288);
        check(&[249, 255, 255], 67_823);
        check(&[250, 1, 8, 240], 67_824);
        check(&[251, 1, 0, 0, 0], 1 << 24);
        check(&[255, 0, 0, 0, 1, 0, 0, 0, 0], 1 << 32);
        check(&[255, 255, 255, 255, 255, 255, 255, 255, 255], i64::MAX);
    }

    #[test]
    fn no_numbers() {
        let wrong: &[&[u8]] = &[
            &[],
            &[ZERO, 0],
            &[NAN, 0],
            &[POSITIVE_MEDIUM + 1],
            &[POSITIVE_MEDIUM + 1, 3],
            &[POSITIVE_MEDIUM + 1, 2, 2],
            &[POSITIVE_MEDIUM + 1, 200],
            &[POSITIVE_LARGE],
            &[POSITIVE_LARGE, 250, 1],
            &[POSITIVE_LARGE, 11],
            &[0x24],
            &[0x06],
        ];
        for bytes in wrong {
            assert_eq!(double(bytes), None, "{bytes:x?}");
            assert_eq!(decimal(bytes, 2), Err(Fault::Form), "{bytes:x?}");
        }
        assert_eq!(decimal(&[NAN], 2), Err(Fault::Form));
        assert_eq!(decimal(&[POSITIVE_INFINITY], 2), Err(Fault::Form));
    }

    #[test]
    fn the_nearest_number_of_many_digits() {
        // 2^53 + 1 lies between two doubles; a small digit after it decides.
        let half: &[u8] = &[
            0x17 + 8,
            2 * 90 + 1,
            2 * 7 + 1,
            2 * 19 + 1,
            2 * 92 + 1,
            2 * 54 + 1,
            2 * 74 + 1,
            2 * 9 + 1,
            2 * 93,
        ];
        assert_eq!(double(half), Some(9_007_199_254_740_992.0));
        let mut more = half.to_vec();
        *more.last_mut().expect("a pair") |= 1;
        more.extend([1; 600]);
        more.push(2);
        assert_eq!(double(&more), Some(9_007_199_254_740_994.0));
    }

    #[test]
    fn exponents_beyond_double_precision() {
        let large = [&[POSITIVE_LARGE][..], &[255; 9], &[2]].concat();
        assert_eq!(double(&large), Some(f64::INFINITY));
        assert_eq!(decimal(&large, 2), Err(Fault::Digits));
        let small = [&[NEGATIVE_SMALL][..], &[255; 9], &[0xfd]].concat();
        assert_eq!(double(&small), Some(0.0));
        assert_eq!(decimal(&small, 2), Err(Fault::Scale));
    }
}
