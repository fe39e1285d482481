//! Messages of `ColumnService` to and from the types of `columnar`.
//!
//! * [`request`]: decodes and checks requests;
//! * [`state`]: the states of groups in responses.

pub mod request;
pub mod state;

use bytes::Bytes;
use columnar::Value;
use proto::grampus;

use super::Refused;

/// Maximum size in bytes of a decimal's unscaled integer.
const DECIMAL_BYTES_MAX: usize = 16;

/// Decodes a value from its message.
///
/// # Errors
/// [`Refused::Malformed`] for a decimal of more than 38 digits.
pub fn value(message: &grampus::Value) -> Result<Value, Refused> {
    if let Some(whole) = message.whole {
        return Ok(Value::Whole(whole));
    }
    if let Some(real) = message.real {
        return Ok(Value::Real(real));
    }
    if let Some(decimal) = &message.decimal {
        return unscaled(decimal).map(Value::Decimal);
    }
    Ok(message.raw.clone().map_or(Value::Null, Value::Raw))
}

/// Encodes a value as its message.
pub fn value_message(value: &Value) -> grampus::Value {
    let mut message = grampus::Value::default();
    match value {
        Value::Null => {}
        Value::Whole(whole) => message.whole = Some(*whole),
        Value::Real(real) => message.real = Some(*real),
        Value::Decimal(decimal) => message.decimal = Some(unscaled_bytes(*decimal)),
        Value::Raw(raw) => message.raw = Some(raw.clone()),
    }
    message
}

fn unscaled(bytes: &[u8]) -> Result<i128, Refused> {
    if bytes.len() > DECIMAL_BYTES_MAX {
        return Err(Refused::malformed("a decimal has more than 38 digits"));
    }
    let sign = if bytes.first().is_some_and(|first| first & 0x80 != 0) { 0xff } else { 0 };
    let mut whole = [sign; DECIMAL_BYTES_MAX];
    whole[DECIMAL_BYTES_MAX - bytes.len()..].copy_from_slice(bytes);
    Ok(i128::from_be_bytes(whole))
}

/// Encodes like Java's `BigInteger.toByteArray`: the shortest two's complement form.
fn unscaled_bytes(unscaled: i128) -> Bytes {
    let bytes = unscaled.to_be_bytes();
    let is_spare = |at: usize| {
        let sign = if unscaled < 0 { 0xff } else { 0 };
        bytes[at] == sign && (bytes[at + 1] ^ sign) & 0x80 == 0
    };
    let start = (0..DECIMAL_BYTES_MAX - 1).take_while(|at| is_spare(*at)).count();
    Bytes::copy_from_slice(&bytes[start..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_have_the_shortest_encoding() {
        for (unscaled_number, bytes) in [
            (0, &[0][..]),
            (1, &[1]),
            (-1, &[0xff]),
            (127, &[0x7f]),
            (128, &[0, 0x80]),
            (-128, &[0x80]),
            (-129, &[0xff, 0x7f]),
        ] {
            assert_eq!(unscaled_bytes(unscaled_number), bytes);
        }
        for number in [0, 1, -1, i128::MAX, i128::MIN, 1 << 63, -(1 << 63), i128::from(u64::MAX)] {
            assert_eq!(unscaled(&unscaled_bytes(number)), Ok(number));
        }
        assert!(unscaled(&[0; 17]).is_err());
    }
}
