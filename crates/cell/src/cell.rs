//! A cell: key, value and tags as three slices, plus the sequence id.
//!
//! ```text
//! KeyValue (serialized cell, big-endian):
//!   key length 4 | value length 4 | key | value | [ tags length 2 | tags ]     tags are optional
//! key:
//!   row length 2 | row | family length 1 | family | qualifier | timestamp 8 | type 1
//! ```
//!
//! The three slices of a [`Cell`] are adjacent in the memstore and in unencoded blocks. In
//! DIFF-like blocks the cursor assembles the key and the value stays in the block. A cell's
//! serialized size is computed from its lengths without parsing the key.

use bytes::{BufMut, Bytes, BytesMut};

use crate::key::{self, KEY_INFRASTRUCTURE_LEN};

/// Bytes of a KeyValue before its key: key length and value length.
pub const LENGTHS_LEN: usize = 8;

/// Longest row key (`HConstants.MAX_ROW_LENGTH`).
pub const ROW_LEN_MAX: usize = i16::MAX as usize;
/// Longest family name: its length is a signed byte.
pub const FAMILY_LEN_MAX: usize = i8::MAX as usize;
/// Longest tags section: its length is an unsigned short.
pub const TAGS_LEN_MAX: usize = u16::MAX as usize;

/// Effect of a cell on its column. On disk and on the wire: never renumber.
///
/// Source: HBase `KeyValue.Type`. At one timestamp the greater code sorts first, so a scan reads a
/// delete marker before the put that it hides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum CellType {
    /// Never stored: sorts last within its row and column.
    Minimum = 0,
    /// A value.
    Put = 4,
    /// Hides the put of its column at exactly its timestamp.
    Delete = 8,
    /// Hides all columns of the family at exactly its timestamp.
    DeleteFamilyVersion = 10,
    /// Hides all versions of its column up to its timestamp.
    DeleteColumn = 12,
    /// Hides all columns of the family up to its timestamp.
    DeleteFamily = 14,
    /// Never stored: sorts first within its row and column.
    Maximum = 255,
}

impl CellType {
    /// The type for a code that HBase stores. `None` for any other code; `Minimum` and `Maximum`
    /// are not stored.
    pub fn stored(code: u8) -> Option<CellType> {
        match code {
            4 => Some(CellType::Put),
            8 => Some(CellType::Delete),
            10 => Some(CellType::DeleteFamilyVersion),
            12 => Some(CellType::DeleteColumn),
            14 => Some(CellType::DeleteFamily),
            _ => None,
        }
    }

    /// Whether this is one of the four delete markers.
    pub fn is_delete(self) -> bool {
        matches!(
            self,
            CellType::Delete
                | CellType::DeleteFamilyVersion
                | CellType::DeleteColumn
                | CellType::DeleteFamily
        )
    }
}

/// A borrowed view of a cell.
///
/// The key is well formed: untrusted bytes must pass [`key::check`] before a view is built. The
/// type code and timestamp may have any value (see [`Cell::is_readable`]).
#[derive(Clone, Copy)]
pub struct Cell<'a> {
    /// The key part: row, family, qualifier, timestamp, type.
    pub key: &'a [u8],
    /// The value.
    pub value: &'a [u8],
    /// The tags section without its length; empty if there are none.
    pub tags: &'a [u8],
    /// Orders the writes of one region. 0 if unknown or no longer needed.
    pub seq_id: u64,
}

impl<'a> Cell<'a> {
    /// The row.
    #[inline]
    pub fn row(&self) -> &'a [u8] {
        key::row(self.key)
    }
    /// The family name.
    #[inline]
    pub fn family(&self) -> &'a [u8] {
        key::family(self.key)
    }
    /// The qualifier; may be empty.
    #[inline]
    pub fn qualifier(&self) -> &'a [u8] {
        key::qualifier(self.key)
    }
    /// The timestamp, milliseconds by convention.
    #[inline]
    pub fn timestamp(&self) -> i64 {
        key::timestamp(self.key)
    }
    /// The type code.
    #[inline]
    pub fn type_code(&self) -> u8 {
        key::type_code(self.key)
    }
    /// The type; `Put` only for code 4. A code that HBase does not define counts as `Minimum`.
    #[inline]
    pub fn kind(&self) -> CellType {
        match self.type_code() {
            255 => CellType::Maximum,
            code => CellType::stored(code).unwrap_or(CellType::Minimum),
        }
    }

    /// Whether reads may return the cell. This requires a stored type, and a timestamp that is
    /// neither negative nor the placeholder for "now".
    ///
    /// HBase does not check either in the cells of a batch, so its logs and files may contain other
    /// cells. HBase's clients cannot decode those: a scan that returned one would fail for all
    /// later rows.
    #[inline]
    pub fn is_readable(&self) -> bool {
        key::is_readable(self.key)
    }

    /// Bytes of the serialized KeyValue without tags, the form that ordinary clients receive.
    #[inline]
    pub fn len_without_tags(&self) -> usize {
        LENGTHS_LEN + self.key.len() + self.value.len()
    }

    /// Bytes of the serialized KeyValue, including the tags and their length if there are any.
    #[inline]
    pub fn serialized_len(&self) -> usize {
        self.len_without_tags() + if self.tags.is_empty() { 0 } else { 2 + self.tags.len() }
    }

    /// Appends the serialized KeyValue without tags.
    #[inline]
    pub fn write_without_tags(&self, out: &mut impl BufMut) {
        out.put_u32(self.key.len() as u32);
        out.put_u32(self.value.len() as u32);
        out.put_slice(self.key);
        out.put_slice(self.value);
    }

    /// Appends the serialized KeyValue, with tags if there are any.
    pub fn write(&self, out: &mut impl BufMut) {
        self.write_without_tags(out);
        if !self.tags.is_empty() {
            out.put_u16(self.tags.len() as u16);
            out.put_slice(self.tags);
        }
    }

    /// A contiguous copy.
    pub fn to_key_value(&self) -> KeyValue {
        let mut out = BytesMut::with_capacity(self.serialized_len());
        self.write(&mut out);
        KeyValue { bytes: out.freeze() }
    }
}

impl std::fmt::Debug for Cell<'_> {
    /// Formats a cell as HBase does: `row/family:qualifier/timestamp/Type/vlen=N/seqid=N`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{}/{}:{}/{}/{:?}/vlen={}/seqid={}",
            self.row().escape_ascii(),
            self.family().escape_ascii(),
            self.qualifier().escape_ascii(),
            self.timestamp(),
            self.kind(),
            self.value.len(),
            self.seq_id
        )
    }
}

/// Reason why bytes are not a valid cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("invalid cell: {0}")]
pub struct Malformed(pub &'static str);

/// An owned cell: one contiguous, validated serialized KeyValue. Cheap to clone.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyValue {
    bytes: Bytes,
}

impl KeyValue {
    /// Validates and wraps serialized bytes: exactly one KeyValue, with or without tags.
    ///
    /// # Errors
    /// [`Malformed`] if the lengths are inconsistent or a part exceeds its limit.
    pub fn from_bytes(bytes: Bytes) -> Result<KeyValue, Malformed> {
        parts(&bytes)?;
        Ok(KeyValue { bytes })
    }

    /// Builds a cell without tags.
    ///
    /// # Panics
    /// If the row or family exceeds its limit.
    pub fn new(
        row: &[u8],
        family: &[u8],
        qualifier: &[u8],
        timestamp: i64,
        kind: CellType,
        value: &[u8],
    ) -> KeyValue {
        KeyValue::with_tags(row, family, qualifier, timestamp, kind, value, &[])
    }

    /// Builds a cell; `tags` is a tags section (empty for none).
    ///
    /// # Panics
    /// If the row, family or tags exceed their limits.
    pub fn with_tags(
        row: &[u8],
        family: &[u8],
        qualifier: &[u8],
        timestamp: i64,
        kind: CellType,
        value: &[u8],
        tags: &[u8],
    ) -> KeyValue {
        assert!(row.len() <= ROW_LEN_MAX && family.len() <= FAMILY_LEN_MAX && tags.len() <= TAGS_LEN_MAX);
        let key_len = KEY_INFRASTRUCTURE_LEN + row.len() + family.len() + qualifier.len();
        let mut out = BytesMut::with_capacity(LENGTHS_LEN + key_len + value.len() + 2 + tags.len());
        out.put_u32(key_len as u32);
        out.put_u32(value.len() as u32);
        key::write(&mut out, row, family, qualifier, timestamp, kind as u8);
        out.put_slice(value);
        if !tags.is_empty() {
            out.put_u16(tags.len() as u16);
            out.put_slice(tags);
        }
        KeyValue { bytes: out.freeze() }
    }

    /// The serialized bytes.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// A view with the given sequence id.
    #[inline]
    pub fn view(&self, seq_id: u64) -> Cell<'_> {
        let (key, value, tags) = split(&self.bytes).expect("validated at construction");
        Cell { key, value, tags, seq_id }
    }
}

impl std::fmt::Debug for KeyValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.view(0).fmt(f)
    }
}

/// Key, value and tags of a cell.
pub type Parts<'a> = (&'a [u8], &'a [u8], &'a [u8]);

/// Key, value and tags of exactly one serialized KeyValue.
///
/// # Errors
/// [`Malformed`] as for [`KeyValue::from_bytes`].
pub fn parts(bytes: &[u8]) -> Result<Parts<'_>, Malformed> {
    let parts = split(bytes)?;
    key::check(parts.0)?;
    Ok(parts)
}

/// Like [`parts`], for a stored cell. Tags with inconsistent lengths, which HBase stores unchecked,
/// are returned as an empty section.
///
/// # Errors
/// [`Malformed`] as for [`parts`], except for malformed tags.
pub fn stored_parts(bytes: &[u8]) -> Result<Parts<'_>, Malformed> {
    let (key, value, after_value) = split_key_and_value(bytes)?;
    key::check(key)?;
    Ok((key, value, split_tags(after_value).unwrap_or_default()))
}

/// Key, value and tags, without checking the key.
#[inline]
fn split(bytes: &[u8]) -> Result<Parts<'_>, Malformed> {
    let (key, value, after_value) = split_key_and_value(bytes)?;
    Ok((key, value, split_tags(after_value)?))
}

/// Key, value, and the bytes that follow them.
#[inline]
fn split_key_and_value(bytes: &[u8]) -> Result<Parts<'_>, Malformed> {
    let (lengths, rest) = bytes.split_at_checked(LENGTHS_LEN).ok_or(Malformed("shorter than its lengths"))?;
    let key_len = u32::from_be_bytes([lengths[0], lengths[1], lengths[2], lengths[3]]) as usize;
    let value_len = u32::from_be_bytes([lengths[4], lengths[5], lengths[6], lengths[7]]) as usize;
    let (key, rest) = rest.split_at_checked(key_len).ok_or(Malformed("key longer than the cell"))?;
    let (value, rest) = rest.split_at_checked(value_len).ok_or(Malformed("value longer than the cell"))?;
    Ok((key, value, rest))
}

/// The tags section without its length; empty for a cell without tags.
#[inline]
fn split_tags(after_value: &[u8]) -> Result<&[u8], Malformed> {
    if after_value.is_empty() {
        return Ok(after_value);
    }
    let (tags_len, tags) = after_value.split_at_checked(2).ok_or(Malformed("tags length truncated"))?;
    if usize::from(u16::from_be_bytes([tags_len[0], tags_len[1]])) != tags.len() {
        return Err(Malformed("tags length does not match the cell"));
    }
    Ok(tags)
}
