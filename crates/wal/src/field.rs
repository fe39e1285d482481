//! Protobuf fields over slices, for the header and the keys of a log.
//!
//! Every edit has a key. For speed, this custom code encodes and decodes keys without intermediate
//! messages. Tests compare it with the generated code.

use base::varint::{get_varint, put_varint};

/// Wire type of numbers.
const WIRE_VARINT: u64 = 0;
/// Wire type of eight little-endian bytes.
const WIRE_FIXED64: u64 = 1;
/// Wire type of a length and that many bytes.
const WIRE_BYTES: u64 = 2;
/// Wire type of four little-endian bytes.
const WIRE_FIXED32: u64 = 5;

/// A field's value, by its wire type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    Number(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32(u32),
}

impl<'a> Value<'a> {
    pub(crate) fn number(self) -> Result<u64, &'static str> {
        match self {
            Value::Number(number) => Ok(number),
            _ => Err("a field should be a number but has another type"),
        }
    }

    pub(crate) fn bytes(self) -> Result<&'a [u8], &'static str> {
        match self {
            Value::Bytes(bytes) => Ok(bytes),
            _ => Err("a field should be bytes but has another type"),
        }
    }
}

/// Removes the next field from the start of `input`; `None` at the end.
///
/// HBase uses no groups (wire types 3 and 4), so they count as malformed.
#[inline]
pub(crate) fn next<'a>(input: &mut &'a [u8]) -> Result<Option<(u32, Value<'a>)>, &'static str> {
    if input.is_empty() {
        return Ok(None);
    }
    let tag = varint(input).ok_or("a field's tag is truncated")?;
    let number = u32::try_from(tag >> 3).map_err(|_| "a field's number is out of range")?;
    if number == 0 {
        return Err("a field has number 0");
    }
    let value = match tag & 7 {
        WIRE_VARINT => Value::Number(varint(input).ok_or("a number is truncated")?),
        WIRE_FIXED64 => Value::Fixed64(u64::from_le_bytes(*take(input)?)),
        WIRE_FIXED32 => Value::Fixed32(u32::from_le_bytes(*take(input)?)),
        WIRE_BYTES => {
            let len = varint(input).ok_or("a length is truncated")?;
            let len = usize::try_from(len).map_err(|_| "a field is longer than its message")?;
            let (bytes, rest) = input.split_at_checked(len).ok_or("a field is longer than its message")?;
            *input = rest;
            Value::Bytes(bytes)
        }
        _ => return Err("a field has an unknown wire type"),
    };
    Ok(Some((number, value)))
}

// Most numbers in a key have one or two bytes.
#[inline]
fn varint(input: &mut &[u8]) -> Option<u64> {
    match **input {
        [byte, ref rest @ ..] if byte < 0x80 => {
            *input = rest;
            Some(u64::from(byte))
        }
        [low, high, ref rest @ ..] if high < 0x80 => {
            *input = rest;
            Some(u64::from(low & 0x7f) | u64::from(high) << 7)
        }
        _ => get_varint(input),
    }
}

fn take<'a, const N: usize>(input: &mut &'a [u8]) -> Result<&'a [u8; N], &'static str> {
    let (bytes, rest) = input.split_first_chunk::<N>().ok_or("a fixed-size field is truncated")?;
    *input = rest;
    Ok(bytes)
}

/// Appends a number field.
pub(crate) fn put_number(out: &mut Vec<u8>, number: u32, value: u64) {
    put_varint(out, u64::from(number) << 3 | WIRE_VARINT);
    put_varint(out, value);
}

/// Appends a bytes field.
pub(crate) fn put_bytes(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    put_varint(out, u64::from(number) << 3 | WIRE_BYTES);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends a field of four little-endian bytes.
pub(crate) fn put_fixed32(out: &mut Vec<u8>, number: u32, value: u32) {
    put_varint(out, u64::from(number) << 3 | WIRE_FIXED32);
    out.extend_from_slice(&value.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_back() {
        let mut out = Vec::new();
        put_number(&mut out, 3, 300);
        put_bytes(&mut out, 1000, b"abc");
        put_fixed32(&mut out, 1002, 0xdead_beef);
        let mut input = &out[..];
        assert_eq!(next(&mut input), Ok(Some((3, Value::Number(300)))));
        assert_eq!(next(&mut input), Ok(Some((1000, Value::Bytes(b"abc")))));
        assert_eq!(next(&mut input), Ok(Some((1002, Value::Fixed32(0xdead_beef)))));
        assert_eq!(next(&mut input), Ok(None));
    }

    #[test]
    fn garbage_is_refused() {
        for bytes in [
            &[0x80][..],             // truncated tag
            &[0x00][..],             // field 0
            &[0x0b, 0x00][..],       // a group
            &[0x0a, 0x05, 1, 2][..], // longer than the message
            &[0x0d, 1, 2, 3][..],    // truncated fixed32
            &[0x08, 0xff, 0xff][..], // truncated number
            &[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01][..],
        ] {
            assert!(next(&mut &*bytes).is_err(), "{bytes:02x?}");
        }
    }
}
