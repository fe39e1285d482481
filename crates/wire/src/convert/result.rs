//! `Result` messages: the cells of a row, in a cell block or inside the message.

use bytes::{BufMut, Bytes, BytesMut};
use cell::Cell;
use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint};

use crate::convert::field::SHORT;

/// A result whose cells are the next `count` of the cell block. The result of an empty row has no
/// other field.
pub fn in_block(count: usize) -> proto::Result {
    proto::Result {
        associated_cell_count: Some(i32::try_from(count).expect("a result has fewer than 2^31 cells")),
        stale: (count > 0).then_some(false),
        ..proto::Result::default()
    }
}

/// Size in bytes of the message of [`in_block`].
pub fn in_block_len(count: usize) -> usize {
    KEY_LEN + encoded_len_varint(count as u64) + if count > 0 { KEY_LEN + 1 } else { 0 }
}

/// Writes the message of [`in_block`]. Most results have this form, so it is written directly.
pub fn put_in_block(count: usize, out: &mut impl BufMut) {
    encode_key(RESULT_ASSOCIATED_CELL_COUNT, WireType::Varint, out);
    encode_varint(count as u64, out);
    if count > 0 {
        encode_key(RESULT_STALE, WireType::Varint, out);
        out.put_u8(0);
    }
}

/// The bytes that [`put_in_block`] writes for `count` from 1 to 127.
#[inline]
pub const fn short_in_block(count: u8) -> [u8; 4] {
    debug_assert!(count > 0 && count < SHORT, "count must be 1 to 127 to fit one byte");
    // Both fields are varints, whose wire type is 0.
    [(RESULT_ASSOCIATED_CELL_COUNT << 3) as u8, count, (RESULT_STALE << 3) as u8, 0]
}

/// Size in bytes of a `GetResponse` with an [`in_block`] result whose count takes one byte.
const SHORT_RESPONSE_LEN: usize = 6;

/// Precomputed responses by cell count. The one of an empty row (count 0) has another length and is
/// not among them.
static SHORT_RESPONSES: [[u8; SHORT_RESPONSE_LEN]; SHORT as usize] = {
    let mut responses = [[0; SHORT_RESPONSE_LEN]; SHORT as usize];
    let mut count = 1;
    while count < SHORT {
        let [key, number, stale_key, stale] = short_in_block(count);
        let result_key = (RESPONSE_RESULT << 3) as u8 | WireType::LengthDelimited as u8;
        responses[count as usize] = [result_key, SHORT_RESPONSE_LEN as u8 - 2, key, number, stale_key, stale];
        count += 1;
    }
    responses
};

/// Encodes the `GetResponse` of a result.
pub fn get_response(result: proto::Result) -> Bytes {
    proto::GetResponse { result: Some(result) }.encode_to_vec().into()
}

/// Encodes the `GetResponse` of the result of [`in_block`]. The responses of most gets are
/// precomputed.
#[inline]
pub fn get_response_in_block(count: usize) -> Bytes {
    match SHORT_RESPONSES.get(count).filter(|_| count > 0) {
        Some(response) => Bytes::from_static(response),
        None => get_response(in_block(count)),
    }
}

/// The result of an existence-only get.
pub fn existence(exists: bool) -> proto::Result {
    proto::Result { associated_cell_count: Some(0), exists: Some(exists), ..proto::Result::default() }
}

/// A `Result` message with its cells inside, encoded cell by cell: no cell is buffered except as
/// its encoded bytes.
///
/// For clients that do not accept cell blocks, or not for gets. The bytes exclude the message's own
/// length prefix.
#[derive(Debug, Default)]
pub struct InlineResult {
    bytes: BytesMut,
    cells: usize,
}

// Field numbers of `GetResponse`, `Result` and `Cell`.
const RESPONSE_RESULT: u32 = 1;
const RESULT_CELL: u32 = 1;
const RESULT_ASSOCIATED_CELL_COUNT: u32 = 2;
const RESULT_STALE: u32 = 4;
const RESULT_PARTIAL: u32 = 5;
const CELL_ROW: u32 = 1;
const CELL_FAMILY: u32 = 2;
const CELL_QUALIFIER: u32 = 3;
const CELL_TIMESTAMP: u32 = 4;
const CELL_TYPE: u32 = 5;
const CELL_VALUE: u32 = 6;
/// Size in bytes of the key of each of these fields.
const KEY_LEN: usize = 1;

impl InlineResult {
    /// A result without cells.
    pub fn new() -> InlineResult {
        InlineResult::default()
    }

    /// Number of cells so far.
    pub fn cell_count(&self) -> usize {
        self.cells
    }

    /// Size in bytes so far.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether it has no cells.
    pub fn is_empty(&self) -> bool {
        self.cells == 0
    }

    /// Appends a cell, without its tags.
    pub fn push(&mut self, cell: &Cell<'_>) {
        let timestamp = cell.timestamp().cast_unsigned();
        let type_code = u64::from(cell.type_code());
        let slices = [
            (CELL_ROW, cell.row()),
            (CELL_FAMILY, cell.family()),
            (CELL_QUALIFIER, cell.qualifier()),
            (CELL_VALUE, cell.value),
        ];
        let slices_len: usize = slices.iter().map(|(_, slice)| slice_len(slice)).sum();
        let numbers_len = 2 * KEY_LEN + encoded_len_varint(timestamp) + encoded_len_varint(type_code);
        let out = &mut self.bytes;
        encode_key(RESULT_CELL, WireType::LengthDelimited, out);
        encode_varint((slices_len + numbers_len) as u64, out);
        let end = out.len() + slices_len + numbers_len;
        for (field, slice) in &slices[..3] {
            put_slice(*field, slice, out);
        }
        put_number(CELL_TIMESTAMP, timestamp, out);
        put_number(CELL_TYPE, type_code, out);
        put_slice(slices[3].0, slices[3].1, out);
        debug_assert_eq!(out.len(), end, "a cell has the length that precedes it");
        self.cells += 1;
    }

    /// Ends the message. `partial` states that more cells of the row may follow.
    pub fn finish(mut self, partial: bool) -> BytesMut {
        put_number(RESULT_STALE, 0, &mut self.bytes);
        put_number(RESULT_PARTIAL, u64::from(partial), &mut self.bytes);
        self.bytes
    }
}

fn slice_len(slice: &[u8]) -> usize {
    KEY_LEN + encoded_len_varint(slice.len() as u64) + slice.len()
}

fn put_slice(field: u32, slice: &[u8], out: &mut BytesMut) {
    encode_key(field, WireType::LengthDelimited, out);
    encode_varint(slice.len() as u64, out);
    out.extend_from_slice(slice);
}

fn put_number(field: u32, number: u64, out: &mut BytesMut) {
    encode_key(field, WireType::Varint, out);
    encode_varint(number, out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use cell::{CellType, KeyValue};

    #[test]
    fn short_results_are_the_same_message() {
        for count in 1..SHORT {
            let mut written = Vec::new();
            put_in_block(usize::from(count), &mut written);
            assert_eq!(written, short_in_block(count));
        }
    }

    #[test]
    fn responses_are_those_of_their_results() {
        for count in (0..300).chain([100_000]) {
            assert_eq!(get_response_in_block(count), get_response(in_block(count)), "{count}");
        }
    }

    #[test]
    fn results_without_cells_are_hbases() {
        let bytes = |result: proto::Result| proto::GetResponse { result: Some(result) }.encode_to_vec();
        assert_eq!(bytes(in_block(1)), [0x0a, 4, 0x10, 1, 0x20, 0]);
        assert_eq!(bytes(in_block(0)), [0x0a, 2, 0x10, 0]);
        assert_eq!(bytes(existence(true)), [0x0a, 4, 0x10, 0, 0x18, 1]);
    }

    #[test]
    fn results_equal_the_generated_messages() {
        for count in [0, 1, 127, 128, 100_000] {
            let mut bytes = Vec::new();
            put_in_block(count, &mut bytes);
            assert_eq!(bytes, in_block(count).encode_to_vec());
            assert_eq!(bytes.len(), in_block_len(count));
        }
    }

    #[test]
    fn inline_results_equal_the_generated_message() {
        let cells = [
            KeyValue::new(b"row", b"f", b"q", 1_700_000_000_001, CellType::Put, &[7; 300]),
            KeyValue::new(b"row", b"f", b"", -1, CellType::DeleteFamily, b""),
        ];
        let mut inline = InlineResult::new();
        for cell in &cells {
            inline.push(&cell.view(9));
        }
        assert_eq!(inline.cell_count(), 2);
        let bytes = inline.finish(true).freeze();
        let read = proto::Result::decode(bytes.clone()).unwrap();
        assert_eq!((read.stale, read.partial), (Some(false), Some(true)));
        assert_eq!(read.encode_to_vec(), bytes);
        let mut no_block = cell::codec::Codec::KeyValue.read(bytes::Bytes::new());
        assert_eq!(crate::convert::from_proto::result(&read, &mut no_block).unwrap(), cells);
    }
}
