//! Where a field is in an encoded message.

use std::ops::Range;

use bytes::Buf;
use prost::encoding::{WireType, decode_key, decode_varint};

/// The place of the value of field `number`, which has a length, if that field begins at `at`.
pub fn place_of(message: &[u8], at: usize, number: u32) -> Option<Range<usize>> {
    let mut rest = message.get(at..)?;
    let is_it = decode_key(&mut rest).ok()? == (number, WireType::LengthDelimited);
    let len = usize::try_from(decode_varint(&mut rest).ok()?).ok()?;
    let start = message.len() - rest.remaining();
    (is_it && len <= rest.remaining()).then(|| start..start + len)
}
