//! Locates a field in an encoded message.

use std::ops::Range;

use bytes::Buf;
use prost::encoding::{WireType, decode_key, decode_varint};

/// Varints below this value take one byte.
pub const SHORT: u8 = 0x80;

/// The key of the length-delimited field `number`, if the key takes one byte.
const fn short_key(number: u32) -> Option<u8> {
    if number < 16 { Some((number << 3) as u8 | WireType::LengthDelimited as u8) } else { None }
}

/// The range of the value of the length-delimited field `number`, if that field begins at `at`.
#[inline]
pub fn field_range(message: &[u8], at: usize, number: u32) -> Option<Range<usize>> {
    let rest = message.get(at..)?;
    match *rest {
        // Fast path for nearly all fields.
        [key, len @ ..SHORT, ..] if short_key(number) == Some(key) => {
            (usize::from(len) <= rest.len() - 2).then(|| at + 2..at + 2 + usize::from(len))
        }
        _ => long_field_range(message, rest, number),
    }
}

fn long_field_range(message: &[u8], mut rest: &[u8], number: u32) -> Option<Range<usize>> {
    let is_it = decode_key(&mut rest).ok()? == (number, WireType::LengthDelimited);
    let len = usize::try_from(decode_varint(&mut rest).ok()?).ok()?;
    let start = message.len() - rest.remaining();
    (is_it && len <= rest.remaining()).then(|| start..start + len)
}

#[cfg(test)]
mod tests {
    use prost::encoding::{encode_key, encode_varint};

    use super::*;

    #[test]
    fn fields_are_found_at_their_offset() {
        for number in [1, 3, 15, 16, 200] {
            for len in [0, 1, 127, 128, 5000] {
                let mut message = b"xx".to_vec();
                encode_key(number, WireType::LengthDelimited, &mut message);
                encode_varint(len as u64, &mut message);
                let start = message.len();
                message.resize(start + len, 7);
                assert_eq!(field_range(&message, 2, number), Some(start..start + len), "{number} {len}");
                message.push(0);
                assert_eq!(field_range(&message, 2, number), Some(start..start + len), "{number} {len}");
                assert_eq!(field_range(&message, 2, number + 1), None);
                assert_eq!(field_range(&message[..start + len - len.min(1)], 2, number).is_some(), len == 0);
                assert_eq!(field_range(&message[..3], 2, number), None);
            }
        }
        assert_eq!(
            (field_range(b"", 0, 1), field_range(b"", 1, 1), field_range(b"\x08\x01", 0, 1)),
            (None, None, None)
        );
    }
}
