//! `BigDecimalColumnInterpreter`: values are decimal numbers (4 bytes of scale, then the unscaled
//! number). Values and products are rounded to two decimal places.

use std::cmp::Ordering;

use prost::Message;
use proto::exception::{Answer, JavaException};

use super::decimal::{self, Decimal};
use super::interpreter::Interpreter;

/// Java's message for a value that is not a number.
const NO_DECIMAL: &str = "Cannot invoke \"java.math.BigDecimal.setScale(int, java.math.RoundingMode)\" because the return value of \
     \"org.apache.hadoop.hbase.PrivateCellUtil.getValueAsBigDecimal(org.apache.hadoop.hbase.Cell)\" is null";

/// Decimal places.
const PLACES: i32 = 2;

pub(super) struct BigDecimal;

impl Interpreter for BigDecimal {
    type Number = Decimal;

    fn read(value: &[u8]) -> Answer<Option<Decimal>> {
        match Decimal::read(value).and_then(|decimal| decimal.round_to(PLACES)) {
            Ok(decimal) => Ok(Some(decimal)),
            Err(decimal::DecimalError::Short) => Err(JavaException::io(NO_DECIMAL)),
            // HBase computes with as many digits as its heap allows.
            Err(decimal::DecimalError::Long) => Err(JavaException::do_not_retry(format!(
                "cannot aggregate: a decimal number has more than {} digits",
                decimal::DIGITS_MAX
            ))),
        }
    }

    fn compare(left: &Decimal, right: &Decimal) -> Ordering {
        left.compare(right)
    }

    fn add(left: &Decimal, right: &Decimal) -> Decimal {
        left.add(right)
    }

    fn multiply(left: &Decimal, right: &Decimal) -> Decimal {
        left.multiply(right, PLACES)
    }

    /// `BigDecimal.valueOf(Double.MIN_VALUE)`, not rounded.
    fn smallest() -> Decimal {
        Decimal::new(49, 325)
    }

    fn encode(number: &Decimal) -> Vec<u8> {
        proto::BigDecimalMsg { bigdecimal_msg: number.to_bytes().into() }.encode_to_vec()
    }

    const NOTHING_TO_ENCODE: &str =
        "Cannot invoke \"java.math.BigDecimal.unscaledValue()\" because \"val\" is null";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_decimal_ends_the_call() {
        for short in [&[][..], &[0], &[0, 0, 0, 2]] {
            let error = BigDecimal::read(short).unwrap_err();
            assert_eq!((&error.class[..], &error.message[..]), ("java.io.IOException", NO_DECIMAL));
        }
        let long = [&0i32.to_be_bytes()[..], &[1; 5000]].concat();
        assert!(BigDecimal::read(&long).unwrap_err().do_not_retry);
    }

    #[test]
    fn the_smallest_number_is_javas() {
        assert_eq!(BigDecimal::encode(&BigDecimal::smallest()), [0x0a, 5, 0, 0, 1, 0x45, 49]);
    }
}
