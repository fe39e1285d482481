//! Numbers as text, as the HBase shell writes them and as Java's `Long.parseLong`,
//! `Double.parseDouble` and `BigDecimal` accept them: optional sign, digits, decimal point,
//! exponent. Nothing may precede or follow them, not even a blank.
//!
//! Unlike Java, this does not accept non-ASCII digits, hexadecimal numbers, and a trailing `f` or
//! `d`.

use super::Encoding;
use super::decimal::{Digits, Fault};

/// Exponents are clamped to this, which is far out of range.
const EXPONENT_MAX: i64 = 1 << 40;

pub(super) fn long(text: &[u8]) -> Option<i64> {
    let (negative, digits) = signed(text);
    if digits.is_empty() {
        return None;
    }
    // Accumulate as a negative number, which has a larger range.
    let below = digits.iter().try_fold(0i64, |number, digit| match digit {
        b'0'..=b'9' => number.checked_mul(10)?.checked_sub(i64::from(digit - b'0')),
        _ => None,
    })?;
    if negative { Some(below) } else { below.checked_neg() }
}

pub(super) fn boolean(text: &[u8]) -> Option<i64> {
    let is = |word: &[u8]| text.eq_ignore_ascii_case(word);
    if is(b"true") { Some(1) } else { is(b"false").then_some(0) }
}

pub(super) fn double(text: &[u8]) -> Option<f64> {
    let (negative, rest) = signed(text);
    match rest {
        b"NaN" => Some(f64::NAN),
        b"Infinity" if negative => Some(f64::NEG_INFINITY),
        b"Infinity" => Some(f64::INFINITY),
        number => {
            Number::of(number)?;
            std::str::from_utf8(text).ok()?.parse().ok()
        }
    }
}

pub(super) fn decimal(text: &[u8], scale: u8) -> Result<i128, Fault> {
    let (negative, rest) = signed(text);
    let number = Number::of(rest).ok_or(Fault::Form)?;
    let count = number.whole.len() + number.fraction.len();
    let digits = Digits::of_text(number.whole.iter().chain(number.fraction), count);
    let behind = i64::try_from(number.fraction.len()).unwrap_or(i64::MAX);
    digits.scaled(negative, number.exponent.saturating_sub(behind), scale)
}

/// Whether there is a minus sign, and the text after the sign.
fn signed(text: &[u8]) -> (bool, &[u8]) {
    match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    }
}

/// The parts of a number without its sign; there is at least one digit before or after the point.
struct Number<'a> {
    whole: &'a [u8],
    fraction: &'a [u8],
    exponent: i64,
}

impl Number<'_> {
    fn of(text: &[u8]) -> Option<Number<'_>> {
        let (mantissa, exponent) = match text.iter().position(|byte| matches!(byte, b'e' | b'E')) {
            Some(at) => (&text[..at], exponent(&text[at + 1..])?),
            None => (text, 0),
        };
        let (whole, fraction) = match mantissa.iter().position(|byte| *byte == b'.') {
            Some(at) => (&mantissa[..at], &mantissa[at + 1..]),
            None => (mantissa, &[][..]),
        };
        let some = !whole.is_empty() || !fraction.is_empty();
        (some && are_digits(whole) && are_digits(fraction)).then_some(Number { whole, fraction, exponent })
    }
}

/// An exponent, clamped to [`EXPONENT_MAX`].
fn exponent(text: &[u8]) -> Option<i64> {
    let (negative, digits) = signed(text);
    if digits.is_empty() || !are_digits(digits) {
        return None;
    }
    let size =
        digits.iter().fold(0, |number, digit| (number * 10 + i64::from(digit - b'0')).min(EXPONENT_MAX));
    Some(if negative { -size } else { size })
}

fn are_digits(text: &[u8]) -> bool {
    text.iter().all(u8::is_ascii_digit)
}

pub(super) fn write_whole(encoding: Encoding, value: i64) -> Option<Vec<u8>> {
    match (encoding, value) {
        (Encoding::TextLong, value) => Some(value.to_string().into_bytes()),
        (Encoding::TextBoolean, 0) => Some(b"false".to_vec()),
        (Encoding::TextBoolean, 1) => Some(b"true".to_vec()),
        _ => None,
    }
}

pub(super) fn write_real(encoding: Encoding, value: f64) -> Option<Vec<u8>> {
    if encoding != Encoding::TextDouble {
        return None;
    }
    let text = match value {
        f64::INFINITY => "Infinity".to_string(),
        f64::NEG_INFINITY => "-Infinity".to_string(),
        // Debug format, which uses an exponent where plain digits would be long.
        value => format!("{value:?}"),
    };
    Some(text.into_bytes())
}

pub(super) fn write_decimal(unscaled: i128, scale: u8) -> Vec<u8> {
    let scale = usize::from(scale);
    let sign = if unscaled < 0 { "-" } else { "" };
    // At least one digit before the decimal point.
    let digits = format!("{:0>width$}", unscaled.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let point = if scale == 0 { "" } else { "." };
    [sign, whole, point, fraction].concat().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers() {
        assert_eq!(long(b"0"), Some(0));
        assert_eq!(long(b"-0"), Some(0));
        assert_eq!(long(b"+12"), Some(12));
        assert_eq!(long(b"00000000000000000000012"), Some(12));
        assert_eq!(long(b"9223372036854775807"), Some(i64::MAX));
        assert_eq!(long(b"-9223372036854775808"), Some(i64::MIN));
        for wrong in [
            "9223372036854775808",
            "-9223372036854775809",
            "-",
            "+",
            "--1",
            "+-1",
            " 1",
            "1 ",
            "1.0",
            "1e3",
            "0x1",
            "1\0",
        ] {
            assert_eq!(long(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn booleans() {
        assert_eq!(boolean(b"true"), Some(1));
        assert_eq!(boolean(b"FALSE"), Some(0));
        assert_eq!(boolean(b"1"), None);
        assert_eq!(boolean(b"true "), None);
    }

    #[test]
    fn real_numbers() {
        let check = |text: &str, wanted| assert_eq!(double(text.as_bytes()), wanted, "{text}");
        check("1", Some(1.0));
        check("-.5e+1", Some(-5.0));
        check("+1.E-2", Some(0.01));
        check("1e400", Some(f64::INFINITY));
        check("1e-99999999999999999999999", Some(0.0));
        check("-Infinity", Some(f64::NEG_INFINITY));
        check("+Infinity", Some(f64::INFINITY));
        assert!(double(b"NaN").is_some_and(f64::is_nan));
        for wrong in [
            "", ".", "e5", "1e", "1e+", "inf", "nan", "infinity", "1.2.3", " 1", "1\n", "1_0", "1f", "0x1p3",
            "1e5.0",
        ] {
            check(wrong, None);
        }
    }

    #[test]
    fn decimals() {
        let check = |text: &str, wanted| assert_eq!(decimal(text.as_bytes(), 3), wanted, "{text}");
        check("12.345", Ok(12_345));
        check("-12.3450000", Ok(-12_345));
        check("1.2345e1", Ok(12_345));
        check("1e3", Ok(1_000_000));
        check("12345E-3", Ok(12_345));
        check("-0.000", Ok(0));
        check("0e999999999999999999999", Ok(0));
        check("12.3456", Err(Fault::Scale));
        check("1e-4", Err(Fault::Scale));
        check("1e35", Err(Fault::Digits));
        check("1e999999999999999999999", Err(Fault::Digits));
        check("1e-999999999999999999999", Err(Fault::Scale));
        for wrong in ["", "-", ".", "1,5", "NaN", "Infinity", "1 ", "1e5x"] {
            check(wrong, Err(Fault::Form));
        }
    }

    #[test]
    fn decimals_are_written_with_all_digits_of_their_scale() {
        assert_eq!(write_decimal(-5, 2), b"-0.05");
        assert_eq!(write_decimal(-5, 0), b"-5");
        assert_eq!(write_decimal(12_345, 3), b"12.345");
        assert_eq!(write_decimal(0, 2), b"0.00");
    }
}
