//! Builds the payload of a data block, cell by cell, in any encoding. The modules that read the
//! layouts document them: [`plain`](crate::block::plain), [`packed`](crate::block::packed).
//!
//! Each encoding's output equals HBase's byte for byte. The tests recreate files that HBase wrote.

use std::ops::Range;

use base::varint::{put_varint, put_vlong, vlong_len};
use cell::key::TIMESTAMP_TYPE_LEN;
use cell::schema::BlockEncoding;
use cell::{Cell, key};

use crate::block::packed::{diff, fast_diff};
use crate::block::plain::CellFields;
use crate::block::tags::TagDictionary;
use crate::error::Parsed;

/// A data block under construction.
pub(crate) struct BlockBuilder {
    encoding: BlockEncoding,
    fields: CellFields,
    packs_tags: bool,
    payload: Vec<u8>,
    /// Offset of the first cell in the payload.
    start: usize,
    /// Unencoded bytes of the cells.
    plain_len: usize,
    /// The key of the last cell, and the position of its value in the payload (for a run of equal
    /// values, of the first).
    previous_key: Vec<u8>,
    previous_value: Range<usize>,
    tags: TagDictionary,
    /// Offsets of the first cell of each row, for ROW_INDEX_V1.
    rows: Vec<u32>,
}

/// Position of the unencoded length in PREFIX, DIFF and FAST_DIFF blocks.
const PLAIN_LEN_AT: Range<usize> = crate::block::ENCODING_ID_LEN..crate::block::ENCODING_ID_LEN + 4;

impl BlockBuilder {
    pub(crate) fn new(encoding: BlockEncoding, fields: CellFields, packs_tags: bool) -> BlockBuilder {
        let mut builder = BlockBuilder {
            encoding,
            fields,
            packs_tags,
            payload: Vec::new(),
            start: 0,
            plain_len: 0,
            previous_key: Vec::new(),
            previous_value: 0..0,
            tags: TagDictionary::default(),
            rows: Vec::new(),
        };
        builder.start();
        builder
    }

    fn start(&mut self) {
        self.payload.clear();
        self.plain_len = 0;
        self.previous_key.clear();
        self.previous_value = 0..0;
        self.tags = TagDictionary::default();
        self.rows.clear();
        if self.encoding != BlockEncoding::None {
            self.payload.extend_from_slice(&(self.encoding as u16).to_be_bytes());
        }
        if self.is_packed() {
            self.payload.extend_from_slice(&[0; 4]);
        }
        self.start = self.payload.len();
    }

    fn is_packed(&self) -> bool {
        matches!(self.encoding, BlockEncoding::Prefix | BlockEncoding::Diff | BlockEncoding::FastDiff)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.previous_key.is_empty()
    }

    /// Bytes of the cells so far: the larger of the unencoded and the encoded size. The row index
    /// counts as encoded.
    pub(crate) fn len(&self) -> usize {
        self.plain_len.max(self.payload.len() - self.start + 4 * self.rows.len())
    }

    /// Adds a cell, which must not sort before the last one.
    ///
    /// # Panics
    /// If the cell's family differs from the last one's and the encoding stores the family once per
    /// block. A store has one family.
    pub(crate) fn add(&mut self, cell: &Cell<'_>) -> Parsed<()> {
        self.plain_len += cell.len_without_tags()
            + if self.fields.tags { 2 + cell.tags.len() } else { 0 }
            + if self.fields.mvcc { vlong_len(cell.seq_id as i64) } else { 0 };
        let is_first = self.is_empty();
        assert!(
            is_first || !self.is_packed() || key::family(&self.previous_key) == cell.family(),
            "a file with this block encoding has one family"
        );
        match self.encoding {
            BlockEncoding::None => self.put_plain(cell),
            BlockEncoding::RowIndexV1 => {
                if is_first || key::row(&self.previous_key) != cell.row() {
                    self.rows.push((self.payload.len() - crate::block::ENCODING_ID_LEN) as u32);
                }
                self.put_plain(cell);
            }
            BlockEncoding::Prefix => self.put_prefix(cell),
            BlockEncoding::Diff => self.put_diff(cell),
            BlockEncoding::FastDiff => self.put_fast_diff(cell),
        }
        if self.fields.tags {
            self.put_tags(cell.tags)?;
        }
        if self.fields.mvcc {
            put_vlong(&mut self.payload, cell.seq_id as i64);
        }
        self.previous_key.clear();
        self.previous_key.extend_from_slice(cell.key);
        Ok(())
    }

    /// Completes the payload, passes it to `write`, and starts the next block.
    pub(crate) fn finish<T>(&mut self, write: impl FnOnce(&[u8]) -> T) -> T {
        if self.is_packed() {
            self.payload[PLAIN_LEN_AT].copy_from_slice(&(self.plain_len as u32).to_be_bytes());
        }
        if self.encoding == BlockEncoding::RowIndexV1 {
            let cells_len = (self.payload.len() - crate::block::ENCODING_ID_LEN) as u32;
            self.payload.extend_from_slice(&(self.rows.len() as u32).to_be_bytes());
            for row in &self.rows {
                self.payload.extend_from_slice(&row.to_be_bytes());
            }
            self.payload.extend_from_slice(&cells_len.to_be_bytes());
        }
        let written = write(&self.payload);
        self.start();
        written
    }

    fn put_plain(&mut self, cell: &Cell<'_>) {
        cell.write_without_tags(&mut self.payload);
    }

    fn put_tags(&mut self, tags: &[u8]) -> Parsed<()> {
        if !self.is_packed() {
            self.payload.extend_from_slice(&(tags.len() as u16).to_be_bytes());
        } else {
            put_varint(&mut self.payload, tags.len() as u64);
            if self.packs_tags {
                return self.tags.pack(tags, &mut self.payload);
            }
        }
        self.payload.extend_from_slice(tags);
        Ok(())
    }

    fn put_value(&mut self, value: &[u8]) {
        let at = self.payload.len();
        self.payload.extend_from_slice(value);
        self.previous_value = at..at + value.len();
    }

    fn put_len(&mut self, len: usize) {
        put_varint(&mut self.payload, len as u64);
    }

    fn put_prefix(&mut self, cell: &Cell<'_>) {
        let common = match common_prefix_len(&self.previous_key, cell.key) {
            // Rows, families and qualifiers are equal: timestamps and types may share more.
            common
                if common + TIMESTAMP_TYPE_LEN == cell.key.len()
                    && cell.key.len() == self.previous_key.len() =>
            {
                common + common_len(&self.previous_key[common..], &cell.key[common..])
            }
            common => common,
        };
        self.put_len(cell.key.len() - common);
        self.put_len(cell.value.len());
        self.put_len(common);
        self.payload.extend_from_slice(&cell.key[common..]);
        self.put_value(cell.value);
    }

    fn put_diff(&mut self, cell: &Cell<'_>) {
        let is_first = self.is_empty();
        if is_first {
            let family = cell.family();
            self.payload.push(family.len() as u8);
            self.payload.extend_from_slice(family);
        }
        let same_type = !is_first && key::type_code(&self.previous_key) == cell.type_code();
        let (mut number, mut flags) = (cell.timestamp(), 0);
        if !is_first {
            let difference = key::timestamp(&self.previous_key).wrapping_sub(number);
            if le_len(difference) < le_len(number) {
                (number, flags) = (difference, diff::TIMESTAMP_IS_DIFFERENCE);
            }
            flags |= flag(cell.key.len() == self.previous_key.len(), diff::SAME_KEY_LEN);
            flags |= flag(cell.value.len() == self.previous_value.len(), diff::SAME_VALUE_LEN);
            flags |= flag(same_type, diff::SAME_TYPE);
        }
        flags |= flag(number < 0, diff::TIMESTAMP_NEGATIVE);
        let number_len = le_len(number);
        flags |= ((number_len - 1) as u8) << diff::TIMESTAMP_LEN_SHIFT;
        self.payload.push(flags);
        self.put_lengths(cell, flags & diff::SAME_KEY_LEN != 0, flags & diff::SAME_VALUE_LEN != 0);
        self.put_key_prefix(cell);
        self.payload.extend_from_slice(&number.wrapping_abs().to_le_bytes()[..number_len]);
        if !same_type {
            self.payload.push(cell.type_code());
        }
        self.put_value(cell.value);
    }

    fn put_fast_diff(&mut self, cell: &Cell<'_>) {
        if self.is_empty() {
            self.payload.push(0);
            self.put_lengths(cell, false, false);
            self.put_len(0);
            self.payload.extend_from_slice(cell.key);
            return self.put_value(cell.value);
        }
        let (previous, timestamp) = (self.previous_key.as_slice(), cell.timestamp().to_be_bytes());
        let same_type = key::type_code(previous) == cell.type_code();
        let same_value = &self.payload[self.previous_value.clone()] == cell.value;
        let common_timestamp = common_len(&key::timestamp(previous).to_be_bytes()[..7], &timestamp);
        let flags = common_timestamp as u8
            | flag(cell.key.len() == previous.len(), fast_diff::SAME_KEY_LEN)
            | flag(cell.value.len() == self.previous_value.len(), fast_diff::SAME_VALUE_LEN)
            | flag(same_type, fast_diff::SAME_TYPE)
            | flag(same_value, fast_diff::SAME_VALUE);
        self.payload.push(flags);
        self.put_lengths(cell, flags & fast_diff::SAME_KEY_LEN != 0, flags & fast_diff::SAME_VALUE_LEN != 0);
        self.put_key_prefix(cell);
        self.payload.extend_from_slice(&timestamp[common_timestamp..]);
        if !same_type {
            self.payload.push(cell.type_code());
        }
        if !same_value {
            self.put_value(cell.value);
        }
    }

    fn put_lengths(&mut self, cell: &Cell<'_>, same_key: bool, same_value: bool) {
        if !same_key {
            self.put_len(cell.key.len());
        }
        if !same_value {
            self.put_len(cell.value.len());
        }
    }

    /// Writes the length of the prefix that row, family and qualifier share with the last key, then
    /// the rest of row and qualifier.
    fn put_key_prefix(&mut self, cell: &Cell<'_>) {
        let common = common_prefix_len(&self.previous_key, cell.key);
        self.put_len(common);
        let row_end = 2 + cell.row().len();
        let qualifier_at = row_end + 1 + cell.family().len();
        if common < row_end {
            self.payload.extend_from_slice(&cell.key[common..row_end]);
        }
        let column_end = cell.key.len() - TIMESTAMP_TYPE_LEN;
        self.payload.extend_from_slice(&cell.key[common.max(qualifier_at)..column_end]);
    }
}

fn flag(is_set: bool, flag: u8) -> u8 {
    if is_set { flag } else { 0 }
}

/// Bytes of the shortest little-endian form of a number's absolute value. `i64::MIN`, which has
/// none, takes all eight.
fn le_len(number: i64) -> usize {
    let magnitude = number.wrapping_abs() as u64;
    (8 - magnitude.leading_zeros() as usize / 8).max(1)
}

fn common_len(left: &[u8], right: &[u8]) -> usize {
    left.iter().zip(right).take_while(|(left, right)| left == right).count()
}

/// Length of the common prefix of row, family and qualifier as HBase counts it. Rows of different
/// lengths share at most one byte, of the length. Equal rows have equal families.
fn common_prefix_len(previous: &[u8], key: &[u8]) -> usize {
    if previous.is_empty() {
        return 0;
    }
    let (row, previous_row) = (key::row(key), key::row(previous));
    if row.len() != previous_row.len() {
        return common_len(&previous[..2], &key[..2]);
    }
    let common_row = common_len(previous_row, row);
    if common_row < row.len() {
        return 2 + common_row;
    }
    2 + row.len() + 1 + key::family(key).len() + common_len(key::qualifier(previous), key::qualifier(key))
}
