//! The key part of a cell:
//!
//! ```text
//! row length 2 | row | family length 1 | family | qualifier | timestamp 8 | type 1
//! ```
//!
//! The accessors assume a well-formed key; untrusted input must pass [`check`] first.

use bytes::BufMut;

use crate::cell::{CellType, Malformed, ROW_LEN_MAX};
use crate::{LATEST_TIMESTAMP, OLDEST_TIMESTAMP};

const ROW_LEN_LEN: usize = 2;
const FAMILY_LEN_LEN: usize = 1;
/// Bytes of timestamp and type at the end of a key.
pub const TIMESTAMP_TYPE_LEN: usize = 9;
/// Bytes of a key other than row, family and qualifier (HBase: `KEY_INFRASTRUCTURE_SIZE`).
pub const KEY_INFRASTRUCTURE_LEN: usize = ROW_LEN_LEN + FAMILY_LEN_LEN + TIMESTAMP_TYPE_LEN;
const _: () = assert!(KEY_INFRASTRUCTURE_LEN == 12);

/// Checks that the parts of `key` are within it and within their limits. Timestamp and type may
/// have any value: seek keys, block indexes and cells that HBase stored unchecked have values that
/// clients may not write ([`is_readable`]).
///
/// # Errors
/// [`Malformed`] naming the first invalid part.
#[inline]
pub fn check(key: &[u8]) -> Result<(), Malformed> {
    if key.len() < KEY_INFRASTRUCTURE_LEN {
        return Err(Malformed("key shorter than its fixed parts"));
    }
    let row_len = usize::from(u16::from_be_bytes([key[0], key[1]]));
    if row_len > ROW_LEN_MAX || KEY_INFRASTRUCTURE_LEN + row_len > key.len() {
        return Err(Malformed("row longer than the key"));
    }
    let family_len = usize::from(key[ROW_LEN_LEN + row_len]);
    if family_len > crate::cell::FAMILY_LEN_MAX || KEY_INFRASTRUCTURE_LEN + row_len + family_len > key.len() {
        return Err(Malformed("family longer than the key"));
    }
    Ok(())
}

/// Whether reads may return a cell with this key: see
/// [`Cell::is_readable`](crate::Cell::is_readable).
#[inline]
pub fn is_readable(key: &[u8]) -> bool {
    (0..LATEST_TIMESTAMP).contains(&timestamp(key)) && CellType::stored(type_code(key)).is_some()
}

/// The row.
#[inline]
pub fn row(key: &[u8]) -> &[u8] {
    let len = usize::from(u16::from_be_bytes([key[0], key[1]]));
    &key[ROW_LEN_LEN..ROW_LEN_LEN + len]
}

/// The family name.
#[inline]
pub fn family(key: &[u8]) -> &[u8] {
    let at = ROW_LEN_LEN + row(key).len();
    &key[at + FAMILY_LEN_LEN..at + FAMILY_LEN_LEN + usize::from(key[at])]
}

/// The qualifier.
#[inline]
pub fn qualifier(key: &[u8]) -> &[u8] {
    let at = ROW_LEN_LEN + row(key).len();
    &key[at + FAMILY_LEN_LEN + usize::from(key[at])..key.len() - TIMESTAMP_TYPE_LEN]
}

/// The timestamp.
#[inline]
pub fn timestamp(key: &[u8]) -> i64 {
    let at = key.len() - TIMESTAMP_TYPE_LEN;
    i64::from_be_bytes(key[at..at + 8].try_into().expect("key ends with an 8-byte timestamp and a type"))
}

/// The type code.
#[inline]
pub fn type_code(key: &[u8]) -> u8 {
    key[key.len() - 1]
}

/// Whether the key is [`KeyBuf::first_on_row`] of its row.
#[inline]
pub fn is_first_on_row(key: &[u8]) -> bool {
    const END: [u8; TIMESTAMP_TYPE_LEN] = {
        let mut end = [CellType::Maximum as u8; TIMESTAMP_TYPE_LEN];
        let timestamp = LATEST_TIMESTAMP.to_be_bytes();
        let mut at = 0;
        while at < timestamp.len() {
            end[at] = timestamp[at];
            at += 1;
        }
        end
    };
    key.len() == KEY_INFRASTRUCTURE_LEN + row(key).len() && key.ends_with(&END)
}

/// Whether two rows are equal. Compares their last 8 bytes first, because consecutive rows of a
/// file differ there.
#[inline]
pub fn is_same_row(left: &[u8], right: &[u8]) -> bool {
    if left.len() != right.len() {
        return false;
    }
    match (left.split_last_chunk::<8>(), right.split_last_chunk::<8>()) {
        (Some((left, left_end)), Some((right, right_end))) => left_end == right_end && left == right,
        _ => left == right,
    }
}

/// Length of the common prefix of two rows.
pub fn common_len(left: &[u8], right: &[u8]) -> usize {
    left.iter().zip(right).take_while(|(left, right)| left == right).count()
}

/// The key without timestamp and type: the part that all cells of one column share.
#[inline]
pub fn column_part(key: &[u8]) -> &[u8] {
    &key[..key.len() - TIMESTAMP_TYPE_LEN]
}

/// Appends a key built from its parts.
pub fn write(
    out: &mut impl BufMut,
    row: &[u8],
    family: &[u8],
    qualifier: &[u8],
    timestamp: i64,
    type_code: u8,
) {
    out.put_u16(row.len() as u16);
    out.put_slice(row);
    out.put_u8(family.len() as u8);
    out.put_slice(family);
    out.put_slice(qualifier);
    out.put_i64(timestamp);
    out.put_u8(type_code);
}

/// An owned key for seeks; its type may be `Minimum` or `Maximum`.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct KeyBuf(Vec<u8>);

impl KeyBuf {
    /// Builds a key from its parts.
    pub fn new(row: &[u8], family: &[u8], qualifier: &[u8], timestamp: i64, type_code: u8) -> KeyBuf {
        let mut out = Vec::with_capacity(KEY_INFRASTRUCTURE_LEN + row.len() + family.len() + qualifier.len());
        write(&mut out, row, family, qualifier, timestamp, type_code);
        KeyBuf(out)
    }

    /// Sorts before every cell of `row`.
    pub fn first_on_row(row: &[u8]) -> KeyBuf {
        KeyBuf::new(row, &[], &[], LATEST_TIMESTAMP, CellType::Maximum as u8)
    }

    /// Sorts after every cell of `row` (HBase's fake last-on-row cell).
    pub fn last_on_row(row: &[u8]) -> KeyBuf {
        KeyBuf::new(row, &[], &[], OLDEST_TIMESTAMP, CellType::Minimum as u8)
    }

    /// Sorts before every cell of the column.
    pub fn first_on_column(row: &[u8], family: &[u8], qualifier: &[u8]) -> KeyBuf {
        KeyBuf::new(row, family, qualifier, LATEST_TIMESTAMP, CellType::Maximum as u8)
    }

    /// Sorts after every cell of the column.
    pub fn last_on_column(row: &[u8], family: &[u8], qualifier: &[u8]) -> KeyBuf {
        KeyBuf::new(row, family, qualifier, OLDEST_TIMESTAMP, CellType::Minimum as u8)
    }

    /// The bytes of the key.
    pub fn as_slice(&self) -> &[u8] {
        &self.0
    }

    /// Replaces the key by a copy of `key`, which must be well formed.
    pub fn copy_from(&mut self, key: &[u8]) {
        self.0.clear();
        self.0.extend_from_slice(key);
    }
}

impl std::ops::Deref for KeyBuf {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl std::fmt::Debug for KeyBuf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{}/{}:{}/{}/{}",
            row(self).escape_ascii(),
            family(self).escape_ascii(),
            qualifier(self).escape_ascii(),
            timestamp(self),
            type_code(self)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_key_of_a_row_is_recognized() {
        assert!(
            is_first_on_row(&KeyBuf::first_on_row(b"row")) && is_first_on_row(&KeyBuf::first_on_row(b""))
        );
        let maximum = CellType::Maximum as u8;
        for other in [
            KeyBuf::first_on_column(b"row", b"f", b""),
            KeyBuf::first_on_column(b"row", b"", b"q"),
            KeyBuf::new(b"row", b"", b"", LATEST_TIMESTAMP - 1, maximum),
            KeyBuf::new(b"row", b"", b"", LATEST_TIMESTAMP, CellType::Put as u8),
            KeyBuf::last_on_row(b"row"),
        ] {
            assert!(!is_first_on_row(&other), "{other:?}");
        }
    }
}
