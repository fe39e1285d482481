//! `BigDecimalColumnInterpreter`: values are decimal numbers (four bytes of scale, then the unscaled number), rounded to two
//! places behind the point, and so is every product.

use std::cmp::Ordering;

use prost::Message;
use wire::exception::{Answer, JavaException};

use super::decimal::{self, Decimal};
use super::interpreter::Interpreter;

/// What Java says to a value that is no number.
const NO_DECIMAL: &str = "Cannot invoke \"java.math.BigDecimal.setScale(int, java.math.RoundingMode)\" because the return value of \
     \"org.apache.hadoop.hbase.PrivateCellUtil.getValueAsBigDecimal(org.apache.hadoop.hbase.Cell)\" is null";

/// Places behind the point.
const PLACES: i32 = 2;

pub(super) struct BigDecimal;

impl Interpreter for BigDecimal {
    type Number = Decimal;

    fn read(value: &[u8]) -> Answer<Option<Decimal>> {
        match Decimal::read(value).and_then(|decimal| decimal.round_to(PLACES)) {
            Ok(decimal) => Ok(Some(decimal)),
            Err(decimal::Misfit::Short) => Err(JavaException::io(NO_DECIMAL)),
            // HBase computes with as many digits as its heap has room for.
            Err(decimal::Misfit::Long) => Err(JavaException::do_not_retry(format!(
                "a decimal number has more than {} digits, which cannot be aggregated",
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
    fn what_is_no_decimal_ends_the_call() {
        for short in [&[][..], &[0], &[0, 0, 0, 2]] {
            let error = BigDecimal::read(short).unwrap_err();
            assert_eq!((&error.class[..], &error.message[..]), ("java.io.IOException", NO_DECIMAL));
        }
        let long = [&0i32.to_be_bytes()[..], &[1; 5000]].concat();
        assert!(BigDecimal::read(&long).unwrap_err().do_not_retry);
    }

    #[test]
    fn smallest_is_what_java_says() {
        assert_eq!(BigDecimal::encode(&BigDecimal::smallest()), [0x0a, 5, 0, 0, 1, 0x45, 49]);
    }
}
