//! A reference: a cell that states where its value is.
//!
//! ```text
//! value:  length of the real value 4 | name of the MOB file
//! tags:   type 5, empty | type 6, name of the table that owns the file | tags of the real cell
//! ```
//!
//! Source: HBase `MobUtils`.

use std::str;

use cell::cell::TAGS_LEN_MAX;
use cell::schema::TableName;
use cell::tags::{self, MOB_REFERENCE, MOB_TABLE_NAME, Tag};
use cell::{Cell, CellType};

/// Bytes of the length at the start of a reference.
const LENGTH_LEN: usize = 4;

/// A parsed reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MobReference<'a> {
    /// Bytes of the real value.
    pub len: u32,
    /// Name of the MOB file.
    pub file: &'a str,
    /// The table that owns the file.
    pub owner: TableName,
}

/// Whether the tags are those of a reference.
#[inline]
pub fn is_reference(tags: &[u8]) -> bool {
    !tags.is_empty() && tags::iter(tags).any(|tag| tag.kind == MOB_REFERENCE)
}

/// Bytes of a cell's value: of the real one, if the cell is a reference.
#[inline]
pub(crate) fn value_len(cell: &Cell<'_>) -> usize {
    match cell.value.first_chunk::<LENGTH_LEN>() {
        Some(len) if is_reference(cell.tags) => u32::from_be_bytes(*len) as usize,
        _ => cell.value.len(),
    }
}

impl<'a> MobReference<'a> {
    /// Parses a cell that [is a reference](is_reference); `None` if it is malformed. A client that
    /// sends tags can send such a cell, so the name of the file must not leave the directory of MOB
    /// files.
    pub fn parse(cell: &Cell<'a>) -> Option<MobReference<'a>> {
        let (len, file) = cell.value.split_first_chunk::<LENGTH_LEN>()?;
        // Java's int: a negative length is invalid.
        let len = u32::try_from(i32::from_be_bytes(*len)).ok()?;
        let file = str::from_utf8(file).ok().filter(|name| is_file_name(name))?;
        let owner = tags::iter(cell.tags).find(|tag| tag.kind == MOB_TABLE_NAME)?;
        let owner = TableName::parse(str::from_utf8(owner.value).ok()?).ok()?;
        Some(MobReference { len, file, owner })
    }
}

/// Whether a MOB file can have the name. `/` and `,` separate names in the list of a store file.
fn is_file_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains(['/', ',', '\0'])
}

/// Writes references to the MOB files of one table.
pub(crate) struct ReferenceWriter {
    // The tags that every reference begins with.
    own_tags: Vec<u8>,
    value: Vec<u8>,
    tags: Vec<u8>,
}

impl ReferenceWriter {
    pub(crate) fn new(owner: &TableName) -> ReferenceWriter {
        let mut own_tags = Vec::new();
        tags::push(&mut own_tags, Tag { kind: MOB_REFERENCE, value: &[] });
        tags::push(&mut own_tags, Tag { kind: MOB_TABLE_NAME, value: owner.to_string().as_bytes() });
        ReferenceWriter { own_tags, value: Vec::new(), tags: Vec::new() }
    }

    /// Whether `cell` can become a reference: a put of a value of at most 2 GiB, with room for more
    /// tags.
    pub(crate) fn can_replace(&self, cell: &Cell<'_>) -> bool {
        cell.kind() == CellType::Put
            && i32::try_from(cell.value.len()).is_ok()
            && cell.tags.len() + self.own_tags.len() <= TAGS_LEN_MAX
    }

    /// The reference in place of `cell`, whose value is in the MOB file `file`.
    pub(crate) fn reference<'a>(&'a mut self, cell: &Cell<'a>, file: &str) -> Cell<'a> {
        assert!(self.can_replace(cell), "only puts with room for tags become references");
        self.value.clear();
        self.value.extend_from_slice(&(cell.value.len() as u32).to_be_bytes());
        self.value.extend_from_slice(file.as_bytes());
        self.tags.clear();
        self.tags.extend_from_slice(&self.own_tags);
        self.tags.extend_from_slice(tags::readable(cell.tags));
        Cell { value: &self.value, tags: &self.tags, ..*cell }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cell::KeyValue;

    #[test]
    fn references_are_hbases_and_are_read_back() {
        let ttl = tags::joined(&[], Some(60_000)).unwrap();
        let cell = KeyValue::with_tags(b"r", b"f", b"q", 7, CellType::Put, b"value", &ttl);
        let mut writer = ReferenceWriter::new(&TableName::parse("ns:t").unwrap());
        let reference = writer.reference(&cell.view(3), "file");
        assert_eq!((reference.key, reference.seq_id), (cell.view(0).key, 3));
        assert_eq!(reference.value, b"\0\0\0\x05file");
        assert_eq!(reference.tags, [b"\0\x01\x05\0\x05\x06ns:t", &ttl[..]].concat());
        let owner = TableName::parse("ns:t").unwrap();
        assert_eq!(MobReference::parse(&reference), Some(MobReference { len: 5, file: "file", owner }));
        assert_eq!((value_len(&reference), value_len(&cell.view(0))), (5, 5));
        assert!(is_reference(reference.tags) && !is_reference(cell.view(0).tags));
    }

    #[test]
    fn malformed_references_are_none() {
        let owner = b"\0\x01\x05\0\x02\x06t";
        for (value, tags) in [
            (&b""[..], &owner[..]),
            (b"\0\0\0", owner),
            (b"\0\0\0\x01", owner),
            (b"\xff\0\0\0f", owner),
            (b"\0\0\0\x01\xff", owner),
            (b"\0\0\0\x01../f", owner),
            (b"\0\0\0\x01..", owner),
            (b"\0\0\0\x01.f", owner),
            (b"\0\0\0\x01f,g", owner),
            (b"\0\0\0\x01f\0", owner),
            (b"\0\0\0\x01f", b"\0\x01\x05"),
            (b"\0\0\0\x01f", b"\0\x01\x05\0\x02\x06/"),
        ] {
            let cell = KeyValue::with_tags(b"r", b"f", b"q", 7, CellType::Put, value, tags);
            assert!(is_reference(tags));
            assert_eq!(MobReference::parse(&cell.view(0)), None, "{value:?} {tags:?}");
        }
    }

    #[test]
    fn deletes_and_cells_without_room_for_tags_stay() {
        let writer = ReferenceWriter::new(&TableName::parse("t").unwrap());
        let large = [&[0xff, 0xfd, 65][..], &vec![0; 0xfffc]].concat();
        let cell = |kind, tags| KeyValue::with_tags(b"r", b"f", b"q", 7, kind, b"v", tags);
        assert!(writer.can_replace(&cell(CellType::Put, &[]).view(0)));
        assert!(!writer.can_replace(&cell(CellType::Put, &large).view(0)));
        assert!(!writer.can_replace(&cell(CellType::DeleteColumn, &[]).view(0)));
    }
}
