//! `DoubleColumnInterpreter`: 8-byte values are floating-point numbers, others are skipped.

use std::cmp::Ordering;

use prost::Message;
use proto::exception::Answer;

use super::interpreter::Interpreter;

/// The smallest positive number, Java's `Double.MIN_VALUE`.
const MIN_VALUE: f64 = f64::from_bits(1);

pub(super) struct Double;

impl Interpreter for Double {
    type Number = f64;

    fn read(value: &[u8]) -> Answer<Option<f64>> {
        Ok(value.try_into().ok().map(f64::from_be_bytes))
    }

    /// Java's order: -0.0 is less than 0.0; NaN equals itself and is greater than all numbers.
    fn compare(left: &f64, right: &f64) -> Ordering {
        match (left.is_nan(), right.is_nan()) {
            (false, false) => left.total_cmp(right),
            (left, right) => left.cmp(&right),
        }
    }

    fn add(left: &f64, right: &f64) -> f64 {
        left + right
    }

    fn multiply(left: &f64, right: &f64) -> f64 {
        left * right
    }

    fn smallest() -> f64 {
        MIN_VALUE
    }

    fn encode(number: &f64) -> Vec<u8> {
        proto::DoubleMsg { double_msg: *number }.encode_to_vec()
    }

    const NOTHING_TO_ENCODE: &str = r#"Cannot invoke "java.lang.Double.doubleValue()" because "s" is null"#;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_in_javas_order() {
        let negative_nan = f64::from_bits(f64::NAN.to_bits() | 1 << 63);
        let ordered = [f64::NEG_INFINITY, -1.0, -0.0, 0.0, MIN_VALUE, 1.0, f64::INFINITY, f64::NAN];
        for pair in ordered.windows(2) {
            assert_eq!(Double::compare(&pair[0], &pair[1]), Ordering::Less, "{pair:?}");
        }
        assert_eq!(Double::compare(&f64::NAN, &negative_nan), Ordering::Equal);
        assert_eq!(Double::compare(&negative_nan, &f64::NEG_INFINITY), Ordering::Greater);
    }
}
