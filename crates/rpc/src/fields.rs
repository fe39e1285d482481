//! An iterator over protobuf fields, borrowed from the message.
//!
//! The headers of all requests are read with it, because generated structs would allocate for each
//! field. Groups are rejected: no message of this protocol has one.

use bytes::BufMut;

/// Why bytes are invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("malformed: {0}")]
pub struct Malformed(pub &'static str);

/// Maximum length in bytes of a varint.
pub(crate) const VARINT_LEN_MAX: usize = 10;

const WIRE_VARINT: u64 = 0;
const WIRE_FIXED64: u64 = 1;
const WIRE_BYTES: u64 = 2;
const WIRE_FIXED32: u64 = 5;

/// A field's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    Varint(u64),
    Bytes(&'a [u8]),
    /// A fixed-width field, which is skipped: no header uses one.
    Fixed,
}

impl<'a> Value<'a> {
    pub(crate) fn u32(self) -> Result<u32, Malformed> {
        match self {
            // Protobuf keeps the low 32 bits of a longer varint.
            Value::Varint(value) => Ok(value as u32),
            _ => Err(Malformed("a number is not a varint")),
        }
    }

    pub(crate) fn bool(self) -> Result<bool, Malformed> {
        match self {
            Value::Varint(value) => Ok(value != 0),
            _ => Err(Malformed("a bool is not a varint")),
        }
    }

    pub(crate) fn bytes(self) -> Result<&'a [u8], Malformed> {
        match self {
            Value::Bytes(bytes) => Ok(bytes),
            _ => Err(Malformed("text or message without a length")),
        }
    }

    pub(crate) fn text(self) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Malformed("text is not UTF-8"))
    }
}

/// The fields of a message, in the order in which they were written.
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(crate) fn of(message: &'a [u8]) -> Fields<'a> {
        Fields { rest: message }
    }

    /// The next field's number and value, `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<(u32, Value<'a>)>, Malformed> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).ok().filter(|n| *n != 0).ok_or(Malformed("field number"))?;
        let value = match tag & 7 {
            WIRE_VARINT => Value::Varint(self.varint()?),
            WIRE_BYTES => {
                let len = self.varint()?;
                Value::Bytes(self.take(usize::try_from(len).map_err(|_| Malformed("field length"))?)?)
            }
            WIRE_FIXED64 => self.take(8).map(|_| Value::Fixed)?,
            WIRE_FIXED32 => self.take(4).map(|_| Value::Fixed)?,
            _ => return Err(Malformed("wire type")),
        };
        Ok(Some((number, value)))
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) =
            self.rest.split_at_checked(len).ok_or(Malformed("a field is longer than its message"))?;
        self.rest = rest;
        Ok(taken)
    }

    fn varint(&mut self) -> Result<u64, Malformed> {
        match get_varint(self.rest)? {
            Some((value, len)) => {
                self.rest = &self.rest[len..];
                Ok(value)
            }
            None => Err(Malformed("truncated varint")),
        }
    }
}

/// The varint at the start of `bytes` and its length; `None` if it continues after `bytes`.
pub(crate) fn get_varint(bytes: &[u8]) -> Result<Option<(u64, usize)>, Malformed> {
    // Fast path: most varints have one byte.
    if let [byte @ 0..0x80, ..] = bytes {
        return Ok(Some((u64::from(*byte), 1)));
    }
    let mut value = 0u64;
    for (at, byte) in bytes.iter().take(VARINT_LEN_MAX).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Ok(Some((value, at + 1)));
        }
    }
    if bytes.len() >= VARINT_LEN_MAX { Err(Malformed("varint too long")) } else { Ok(None) }
}

pub(crate) fn put_varint(out: &mut impl BufMut, mut value: u64) {
    while value >= 0x80 {
        out.put_u8(value as u8 | 0x80);
        value >>= 7;
    }
    out.put_u8(value as u8);
}

pub(crate) fn varint_len(value: u64) -> usize {
    (70 - (value | 1).leading_zeros() as usize) / 7
}

/// Appends a number field.
pub(crate) fn put_number(out: &mut impl BufMut, field: u32, value: u64) {
    put_varint(out, u64::from(field << 3) | WIRE_VARINT);
    put_varint(out, value);
}

/// Appends a field of bytes, text or a message.
pub(crate) fn put_bytes(out: &mut impl BufMut, field: u32, value: &[u8]) {
    put_varint(out, u64::from(field << 3) | WIRE_BYTES);
    put_varint(out, value.len() as u64);
    out.put_slice(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_are_read_back_and_their_length_is_known() {
        for shift in 0..64 {
            for value in [1u64 << shift, (1u64 << shift) - 1, u64::MAX >> shift] {
                let mut out = Vec::new();
                put_varint(&mut out, value);
                assert_eq!(out.len(), varint_len(value), "{value}");
                assert_eq!(get_varint(&out), Ok(Some((value, out.len()))));
                assert_eq!(get_varint(&out[..out.len() - 1]), Ok(None));
            }
        }
        assert!(get_varint(&[0x80; 10]).is_err());
        assert_eq!(get_varint(&[0x80; 9]), Ok(None));
    }

    #[test]
    fn fields_longer_than_the_message_are_refused() {
        assert!(Fields::of(&[0x0a, 5, 1]).next().is_err());
        assert!(Fields::of(&[0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f, 1]).next().is_err());
        assert!(Fields::of(&[0x0b]).next().is_err(), "groups");
        assert!(Fields::of(&[0x00, 0x00]).next().is_err(), "field number 0");
        assert_eq!(Fields::of(&[]).next(), Ok(None));
    }
}
