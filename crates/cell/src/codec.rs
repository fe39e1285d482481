//! Cells on the wire. A cell block is a sequence of cells, each preceded by its length. The number
//! of cells is transmitted separately.
//!
//! ```text
//! KeyValueCodec:          length 4 | KeyValue without tags      ordinary clients
//! KeyValueCodecWithTags:  length 4 | KeyValue                   replication and tools
//! ```
//!
//! Source: HBase `KeyValueCodec`, `KeyValueCodecWithTags`. Tests compare with blocks that HBase
//! wrote.

use bytes::{Buf, BufMut, Bytes};

use crate::cell::{Cell, KeyValue, LENGTHS_LEN, Malformed};
use crate::tags;

/// Bytes of a cell's length in a block.
pub const LENGTH_LEN: usize = 4;

/// Whether a block's cells carry tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Codec {
    /// `KeyValueCodec`: a cell's tags are dropped.
    KeyValue,
    /// `KeyValueCodecWithTags`.
    KeyValueWithTags,
}

impl Codec {
    /// The codec for the Java class that a client names in its connection header.
    pub fn by_class(name: &str) -> Option<Codec> {
        match name {
            "org.apache.hadoop.hbase.codec.KeyValueCodec" => Some(Codec::KeyValue),
            "org.apache.hadoop.hbase.codec.KeyValueCodecWithTags" => Some(Codec::KeyValueWithTags),
            _ => None,
        }
    }

    /// Bytes of `cell` in a block.
    #[inline]
    pub fn len(self, cell: &Cell<'_>) -> usize {
        LENGTH_LEN
            + match self {
                Codec::KeyValue => cell.len_without_tags(),
                Codec::KeyValueWithTags => with_readable_tags(cell).serialized_len(),
            }
    }

    /// Appends `cell` to a block.
    #[inline]
    pub fn write(self, cell: &Cell<'_>, out: &mut impl BufMut) {
        let room = out.remaining_mut();
        match self {
            Codec::KeyValue => {
                // One copy for all three lengths: this runs for every cell of every response.
                let mut lengths = [0; LENGTH_LEN + LENGTHS_LEN];
                lengths[..4].copy_from_slice(&(cell.len_without_tags() as u32).to_be_bytes());
                lengths[4..8].copy_from_slice(&(cell.key.len() as u32).to_be_bytes());
                lengths[8..].copy_from_slice(&(cell.value.len() as u32).to_be_bytes());
                out.put_slice(&lengths);
                out.put_slice(cell.key);
                out.put_slice(cell.value);
            }
            Codec::KeyValueWithTags => {
                let cell = with_readable_tags(cell);
                out.put_u32(cell.serialized_len() as u32);
                cell.write(out);
            }
        }
        debug_assert_eq!(room - out.remaining_mut(), self.len(cell), "a cell has the announced length");
    }

    /// Appends the part of `cell` before its value.
    pub fn write_before_value(self, cell: &Cell<'_>, out: &mut impl BufMut) {
        out.put_u32((self.len(cell) - LENGTH_LEN) as u32);
        out.put_u32(cell.key.len() as u32);
        out.put_u32(cell.value.len() as u32);
        out.put_slice(cell.key);
    }

    /// Appends the part of `cell` after its value.
    pub fn write_after_value(self, cell: &Cell<'_>, out: &mut impl BufMut) {
        let tags = tags::readable(cell.tags);
        if self == Codec::KeyValueWithTags && !tags.is_empty() {
            out.put_u16(tags.len() as u16);
            out.put_slice(tags);
        }
    }

    /// Reads the cells of `block`, which share its memory.
    pub fn read(self, block: Bytes) -> CellBlockReader {
        CellBlockReader { rest: block, codec: self }
    }
}

/// Iterator over the cells of a block. Iteration continues after a malformed cell. It ends at a
/// truncated cell, because the start of the next one is then unknown.
#[derive(Clone, Debug)]
pub struct CellBlockReader {
    rest: Bytes,
    codec: Codec,
}

impl CellBlockReader {
    /// Bytes not read yet.
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    fn take_cell(&mut self) -> Result<KeyValue, Malformed> {
        let cut = Malformed("truncated cell block");
        let Some(len) = self.take_len() else {
            self.rest = Bytes::new();
            return Err(cut);
        };
        let mut bytes = self.rest.split_to(len);
        if self.codec == Codec::KeyValue {
            bytes.truncate(len_without_tags(&bytes).ok_or(cut)?);
        }
        KeyValue::from_bytes(bytes)
    }

    /// Skips the next cell without parsing it; `false` if there is none.
    pub fn skip_cell(&mut self) -> bool {
        match self.take_len() {
            Some(len) => {
                self.rest.advance(len);
                true
            }
            None => false,
        }
    }

    /// Consumes and returns the next cell's length; `None` if the cell is incomplete. Does not
    /// consume the cell.
    fn take_len(&mut self) -> Option<usize> {
        let (length, rest) = self.rest.split_first_chunk::<LENGTH_LEN>()?;
        let len = u32::from_be_bytes(*length) as usize;
        if len > rest.len() {
            return None;
        }
        self.rest.advance(LENGTH_LEN);
        Some(len)
    }
}

impl Iterator for CellBlockReader {
    type Item = Result<KeyValue, Malformed>;

    fn next(&mut self) -> Option<Result<KeyValue, Malformed>> {
        if self.rest.is_empty() {
            return None;
        }
        Some(self.take_cell())
    }
}

/// The cell, without tags that clients cannot decode.
fn with_readable_tags<'a>(cell: &Cell<'a>) -> Cell<'a> {
    Cell { tags: tags::readable(cell.tags), ..*cell }
}

/// Bytes of a serialized KeyValue before its tags.
fn len_without_tags(bytes: &[u8]) -> Option<usize> {
    let (lengths, _) = bytes.split_first_chunk::<LENGTHS_LEN>()?;
    let [k0, k1, k2, k3, v0, v1, v2, v3] = *lengths;
    let key_len = u32::from_be_bytes([k0, k1, k2, k3]) as usize;
    let value_len = u32::from_be_bytes([v0, v1, v2, v3]) as usize;
    LENGTHS_LEN.checked_add(key_len)?.checked_add(value_len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CellType, LATEST_TIMESTAMP};

    const PLAIN: &str = "0000001c00000012000000020002723102636671310000018bcfe568010476310000002100000012000000070002\
                         723102636671320000018bcfe568020476616c75652d32";
    const TAGGED: &str = "0000002900000012000000020002723102636671310000018bcfe56801047631000b000908000000000000ea600\
                          000002100000012000000070002723102636671320000018bcfe568020476616c75652d32";

    fn hex(text: &str) -> Bytes {
        let digits = text.as_bytes();
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        digits.chunks(2).map(byte).collect::<Vec<u8>>().into()
    }

    fn cells() -> [KeyValue; 2] {
        let ttl = [0, 9, 8, 0, 0, 0, 0, 0, 0, 0xea, 0x60];
        let first = KeyValue::with_tags(b"r1", b"cf", b"q1", 1_700_000_000_001, CellType::Put, b"v1", &ttl);
        [first, KeyValue::new(b"r1", b"cf", b"q2", 1_700_000_000_002, CellType::Put, b"value-2")]
    }

    fn write(codec: Codec, cells: &[KeyValue]) -> Bytes {
        let mut out = Vec::new();
        for cell in cells {
            let before = out.len();
            codec.write(&cell.view(0), &mut out);
            assert_eq!(out.len() - before, codec.len(&cell.view(0)));
        }
        out.into()
    }

    /// Blocks that HBase 2.5.10 wrote for the same cells.
    #[test]
    fn blocks_are_hbases() {
        assert_eq!(write(Codec::KeyValue, &cells()), hex(PLAIN));
        assert_eq!(write(Codec::KeyValueWithTags, &cells()), hex(TAGGED));
        let delete = KeyValue::new(b"r1", b"cf", b"q1", LATEST_TIMESTAMP, CellType::Delete, b"");
        assert_eq!(
            write(Codec::KeyValue, &[delete]),
            hex("0000001a00000012000000000002723102636671317fffffffffffffff08")
        );
        let family = KeyValue::new(b"r1", b"cf", b"", LATEST_TIMESTAMP, CellType::DeleteFamily, b"");
        assert_eq!(
            write(Codec::KeyValue, &[family]),
            hex("000000180000001000000000000272310263667fffffffffffffff0e")
        );
    }

    #[test]
    fn a_value_can_be_written_separately() {
        for codec in [Codec::KeyValue, Codec::KeyValueWithTags] {
            let mut out = Vec::new();
            for cell in &cells() {
                codec.write_before_value(&cell.view(0), &mut out);
                out.extend_from_slice(cell.view(0).value);
                codec.write_after_value(&cell.view(0), &mut out);
            }
            assert_eq!(out, write(codec, &cells()));
        }
    }

    #[test]
    fn blocks_are_read_back() {
        let read: Result<Vec<_>, _> = Codec::KeyValueWithTags.read(hex(TAGGED)).collect();
        assert_eq!(read.unwrap(), cells());
        // The codec without tags drops tags that a client sends anyway.
        let read: Vec<_> = Codec::KeyValue.read(hex(TAGGED)).map(Result::unwrap).collect();
        assert_eq!(write(Codec::KeyValue, &read), hex(PLAIN));
        assert!(read[0].view(0).tags.is_empty());
        assert_eq!(Codec::KeyValue.read(Bytes::new()).count(), 0);
    }

    #[test]
    fn cells_can_be_skipped() {
        let mut reader = Codec::KeyValueWithTags.read(hex(TAGGED));
        assert!(reader.skip_cell());
        assert_eq!(reader.next(), Some(Ok(cells()[1].clone())));
        assert!(!reader.skip_cell());
    }

    #[test]
    fn damaged_blocks_give_one_error_and_end() {
        for block in [hex(PLAIN), hex(TAGGED)] {
            for codec in [Codec::KeyValue, Codec::KeyValueWithTags] {
                for cut in 1..block.len() {
                    let read: Vec<_> = codec.read(block.slice(..cut)).collect();
                    assert_eq!(
                        read.iter().filter(|cell| cell.is_err()).count(),
                        usize::from(!is_border(&block, cut))
                    );
                    assert!(read.iter().rev().skip(1).all(Result::is_ok));
                }
                for at in 0..block.len() {
                    for value in [0, 0x7f, 0x80, 0xff] {
                        let mut damaged = block.to_vec();
                        damaged[at] = value;
                        let cells_max = block.len().div_ceil(LENGTH_LEN);
                        assert!(codec.read(damaged.into()).count() <= cells_max);
                    }
                }
            }
        }
    }

    #[test]
    fn a_malformed_cell_leaves_the_others_readable() {
        let mut block = 3_u32.to_be_bytes().to_vec();
        block.extend_from_slice(&[1, 2, 3]);
        Codec::KeyValue.write(&cells()[1].view(0), &mut block);
        let read: Vec<_> = Codec::KeyValue.read(block.into()).collect();
        assert!(read[0].is_err());
        assert_eq!(read[1..], [Ok(cells()[1].clone())]);
    }

    #[test]
    fn tags_that_clients_cannot_decode_are_left_out() {
        for tags in [&[0][..], &[0, 9, 65], &[0, 0]] {
            let cell = KeyValue::with_tags(b"r1", b"cf", b"q", 1, CellType::Put, b"v", tags);
            let plain = KeyValue::new(b"r1", b"cf", b"q", 1, CellType::Put, b"v");
            assert_eq!(write(Codec::KeyValueWithTags, &[cell]), write(Codec::KeyValueWithTags, &[plain]));
        }
    }

    fn is_border(block: &Bytes, at: usize) -> bool {
        at == LENGTH_LEN + block.clone().get_u32() as usize
    }
}
