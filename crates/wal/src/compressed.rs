//! Reads entries of HBase's compressed logs, and converts them to those of plain logs.
//!
//! ```text
//! varint key length | varint value length | varint tags length | row, family, qualifier: items
//! | timestamp 8 | type 1 | value: its bytes, or varint n and n bytes of gzip
//! | tags: their bytes, or items
//! ```
//!
//! An item is a value or a number in a [dictionary](crate::dictionary). A dictionary covers the
//! whole file, so entries must be read in sequence from the first one.

use base::compression::Algorithm;
use base::varint::{VARINT_LEN_MAX, get_varint};
use bytes::{BufMut, Bytes};
use cell::cell::{FAMILY_LEN_MAX, LENGTHS_LEN, ROW_LEN_MAX, TAGS_LEN_MAX};
use cell::key::{KEY_INFRASTRUCTURE_LEN, TIMESTAMP_TYPE_LEN};
use fs::FilePath;

use crate::dictionary::{Dictionary, LITERAL};
use crate::entry::{CELL_LEN_LEN, CELLS_LEN_MAX, Entry, Fault, find_key};
use crate::key::Key;
use crate::window::Window;

/// Capacity of most dictionaries.
const LARGE: u16 = i16::MAX as u16;
/// Capacity of the dictionaries of families and qualifiers (HBase: `Byte.MAX_VALUE`).
const SMALL: u16 = i8::MAX as u16;
/// HBase's directory of log files that have edits of only one region. In these files, the
/// dictionaries of regions and tables have one item.
const RECOVERED_EDITS: &str = "recovered.edits";
/// Maximum expansion of a deflate stream.
const EXPANSION_MAX: u64 = 1032;

/// The dictionaries of a compressed log after the entries read so far.
pub(crate) struct Dictionaries {
    tags_compressed: bool,
    values_compressed: bool,
    region: Dictionary,
    table: Dictionary,
    row: Dictionary,
    family: Dictionary,
    qualifier: Dictionary,
    tag: Dictionary,
}

impl Dictionaries {
    pub(crate) fn new(path: &FilePath, tags_compressed: bool, values_compressed: bool) -> Dictionaries {
        let one_region = path.parent().name() == RECOVERED_EDITS;
        let names = if one_region { 1 } else { LARGE };
        Dictionaries {
            tags_compressed,
            values_compressed,
            region: Dictionary::new(names),
            table: Dictionary::new(names),
            row: Dictionary::new(LARGE),
            family: Dictionary::new(SMALL),
            qualifier: Dictionary::new(SMALL),
            tag: Dictionary::new(LARGE),
        }
    }

    /// Reads the entry at `offset`, where the previous entry ended.
    pub(crate) async fn read(&mut self, window: &mut Window, offset: u64) -> Result<Entry, Fault> {
        let (key_at, key_len) = find_key(window, offset).await?;
        let mut key = Key::read(&window.slice(key_at, key_len))?;
        // In the order in which HBase writes them, because the dictionaries grow in that order.
        key.region = item_of(&mut self.region, &key.region)?;
        key.table = item_of(&mut self.table, &key.table)?;
        for scope in &mut key.scopes {
            scope.family = item_of(&mut self.family, &scope.family)?;
        }
        for (_, value) in &mut key.attributes {
            *value = item_of(&mut self.table, value)?;
        }
        let mut source = Source { window, at: key_at + key_len as u64 };
        let mut cells = Vec::new();
        for _ in 0..key.cell_count {
            self.read_cell(&mut source, &mut cells).await?;
        }
        Ok(Entry { key, cells: cells.into(), offset, end: source.at })
    }

    async fn read_cell(&mut self, source: &mut Source<'_>, out: &mut Vec<u8>) -> Result<(), Fault> {
        let key_len = source.varint().await?;
        let value_len = source.varint().await?;
        let tags_len = source.varint().await?;
        if tags_len > TAGS_LEN_MAX as u64 || value_len > CELLS_LEN_MAX as u64 {
            return Err(Fault::Invalid("a cell exceeds the maximum length"));
        }
        let row = source.item(&mut self.row).await?;
        let family = source.item(&mut self.family).await?;
        let qualifier = source.item(&mut self.qualifier).await?;
        if row.len() > ROW_LEN_MAX || family.len() > FAMILY_LEN_MAX {
            return Err(Fault::Invalid("a row or family exceeds the maximum length"));
        }
        if key_len != (KEY_INFRASTRUCTURE_LEN + row.len() + family.len() + qualifier.len()) as u64 {
            return Err(Fault::Invalid("a cell's key length does not match its parts"));
        }
        let stamp = source.bytes(TIMESTAMP_TYPE_LEN as u64).await?;
        let value = self.read_value(source, value_len).await?;
        let tags = self.read_tags(source, tags_len as usize).await?;

        let tags_part = if tags.is_empty() { 0 } else { 2 + tags.len() };
        let len = LENGTHS_LEN + key_len as usize + value.len() + tags_part;
        if out.len() + CELL_LEN_LEN + len > CELLS_LEN_MAX {
            return Err(Fault::Invalid("an entry exceeds the maximum length"));
        }
        let start = out.len() + CELL_LEN_LEN;
        out.put_u32(len as u32);
        out.put_u32(key_len as u32);
        out.put_u32(value.len() as u32);
        out.put_u16(row.len() as u16);
        out.put_slice(&row);
        out.put_u8(family.len() as u8);
        out.put_slice(&family);
        out.put_slice(&qualifier);
        out.put_slice(&stamp);
        out.put_slice(&value);
        if !tags.is_empty() {
            out.put_u16(tags.len() as u16);
            out.put_slice(&tags);
        }
        cell::cell::stored_parts(&out[start..]).map_err(|malformed| malformed.0)?;
        Ok(())
    }

    async fn read_value(&self, source: &mut Source<'_>, len: u64) -> Result<Bytes, Fault> {
        if !self.values_compressed {
            return source.bytes(len).await;
        }
        let packed_len = source.varint().await?;
        let packed = source.bytes(packed_len).await?;
        if len > packed_len.saturating_mul(EXPANSION_MAX) {
            return Err(Fault::Invalid("a compressed value cannot have its stated length"));
        }
        if len == 0 {
            return Ok(Bytes::new());
        }
        let value = Algorithm::Gzip.decompress(&packed, Some(len as usize), len as usize);
        value.map(Bytes::from).map_err(|_| Fault::Invalid("a compressed value is corrupt"))
    }

    async fn read_tags(&mut self, source: &mut Source<'_>, len: usize) -> Result<Bytes, Fault> {
        if !self.tags_compressed {
            return source.bytes(len as u64).await;
        }
        let mut tags = Vec::with_capacity(len);
        while tags.len() < len {
            let tag = source.item(&mut self.tag).await?;
            if tags.len() + 2 + tag.len() > len {
                return Err(Fault::Invalid("tags exceed their stated length"));
            }
            tags.put_u16(tag.len() as u16);
            tags.put_slice(&tag);
        }
        Ok(tags.into())
    }
}

/// Decodes `bytes`, a name in a key, which is one item.
fn item_of(dictionary: &mut Dictionary, bytes: &Bytes) -> Result<Bytes, &'static str> {
    match bytes.split_first() {
        Some((&LITERAL, mut rest)) => {
            let len = get_varint(&mut rest).ok_or("a dictionary item's length is truncated")?;
            if len != rest.len() as u64 {
                return Err("a dictionary item does not have its stated length");
            }
            dictionary.add(rest);
            Ok(bytes.slice_ref(rest))
        }
        Some((high, [low])) => {
            dictionary.get(u16::from_be_bytes([*high, *low])).ok_or("no dictionary item has this number")
        }
        _ => Err("a dictionary item is truncated"),
    }
}

/// Reads a file in sequence from an offset.
struct Source<'a> {
    window: &'a mut Window,
    at: u64,
}

impl Source<'_> {
    async fn bytes(&mut self, len: u64) -> Result<Bytes, Fault> {
        if len > self.window.len() - self.at {
            return Err(Fault::Truncated);
        }
        let len_here = usize::try_from(len).map_err(|_| Fault::Truncated)?;
        self.window.fill(self.at, len_here).await?;
        let bytes = self.window.slice(self.at, len_here);
        self.at += len;
        Ok(bytes)
    }

    async fn varint(&mut self) -> Result<u64, Fault> {
        let left = (self.window.len() - self.at).min(VARINT_LEN_MAX as u64) as usize;
        let head = self.window.fill(self.at, left).await?;
        let mut input = head;
        match get_varint(&mut input) {
            Some(value) => {
                self.at += (head.len() - input.len()) as u64;
                Ok(value)
            }
            None if left < VARINT_LEN_MAX => Err(Fault::Truncated),
            None => Err(Fault::Invalid("a number exceeds the maximum length")),
        }
    }

    async fn item(&mut self, dictionary: &mut Dictionary) -> Result<Bytes, Fault> {
        let first = self.bytes(1).await?[0];
        if first == LITERAL {
            let len = self.varint().await?;
            let item = self.bytes(len).await?;
            dictionary.add(&item);
            return Ok(item);
        }
        let second = self.bytes(1).await?[0];
        let number = u16::from_be_bytes([first, second]);
        dictionary.get(number).ok_or(Fault::Invalid("no dictionary item has this number"))
    }
}
