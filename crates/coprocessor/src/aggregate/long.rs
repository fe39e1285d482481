//! `LongColumnInterpreter`: 8-byte values are integers, others are skipped. Sums wrap around as in
//! Java.

use std::cmp::Ordering;

use prost::Message;
use proto::exception::Answer;

use super::interpreter::Interpreter;

pub(super) struct Long;

impl Interpreter for Long {
    type Number = i64;

    fn read(value: &[u8]) -> Answer<Option<i64>> {
        Ok(value.try_into().ok().map(i64::from_be_bytes))
    }

    fn compare(left: &i64, right: &i64) -> Ordering {
        left.cmp(right)
    }

    fn add(left: &i64, right: &i64) -> i64 {
        left.wrapping_add(*right)
    }

    fn multiply(left: &i64, right: &i64) -> i64 {
        left.wrapping_mul(*right)
    }

    fn smallest() -> i64 {
        i64::MIN
    }

    fn encode(number: &i64) -> Vec<u8> {
        proto::LongMsg { long_msg: *number }.encode_to_vec()
    }

    const NOTHING_TO_ENCODE: &str = r#"Cannot invoke "java.lang.Long.longValue()" because "s" is null"#;
}
