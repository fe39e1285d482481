//! Typed columns and the location of their values in a row.

use std::fmt;

use bytes::Bytes;

use crate::encoding::Encoding;
use crate::value::Kind;

/// Maximum number of digits of a decimal, in total and after the decimal point.
pub const DECIMAL_DIGITS_MAX: u8 = 38;

/// Location of a value in a row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ColumnLocation {
    /// The newest cell of a column.
    Cell {
        /// The family.
        family: Bytes,
        /// The qualifier, which may be empty.
        qualifier: Bytes,
    },
    /// Bytes of the row key from `offset`, up to its end if there is no `length`.
    RowBytes {
        /// Offset of the first byte.
        offset: usize,
        /// Number of bytes. A shorter row key has no value.
        length: Option<usize>,
    },
    /// One of the parts of the row key, which are delimited by separators.
    RowPart {
        /// Offset of the first part.
        offset: usize,
        /// Separator between two parts; not empty.
        separator: Bytes,
        /// Index of the part, from 0.
        part: usize,
    },
}

/// A typed column.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Column {
    /// Location of its values.
    pub location: ColumnLocation,
    /// Encoding of its values.
    pub encoding: Encoding,
    /// Digits of decimals after the decimal point, at most [`DECIMAL_DIGITS_MAX`].
    pub scale: u8,
}

impl Column {
    /// The kind of its values.
    pub fn kind(&self) -> Kind {
        self.encoding.kind(self.scale)
    }
}

/// Formats the location for messages: `family:qualifier`, or a part of the row.
impl fmt::Display for ColumnLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ColumnLocation::Cell { family, qualifier } => {
                write!(f, "{}:{}", family.escape_ascii(), qualifier.escape_ascii())
            }
            ColumnLocation::RowBytes { offset: 0, length: None } => f.write_str("row"),
            ColumnLocation::RowBytes { offset, .. } => write!(f, "row from byte {offset}"),
            ColumnLocation::RowPart { part, .. } => write!(f, "part {part} of row"),
        }
    }
}

impl ColumnLocation {
    /// The value's bytes in a row key. `None` if the key has no such value, or the location is a
    /// cell.
    pub fn find_in_row<'a>(&self, row: &'a [u8]) -> Option<&'a [u8]> {
        match self {
            ColumnLocation::Cell { .. } => None,
            ColumnLocation::RowBytes { offset, length: None } => row.get(*offset..),
            ColumnLocation::RowBytes { offset, length: Some(length) } => row.get(*offset..)?.get(..*length),
            ColumnLocation::RowPart { offset, separator, part } => {
                let mut rest = row.get(*offset..)?;
                for _ in 0..*part {
                    rest = &rest[find(rest, separator)? + separator.len()..];
                }
                Some(find(rest, separator).map_or(rest, |end| &rest[..end]))
            }
        }
    }
}

/// Position of the first occurrence of `part`, which is not empty.
fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len().max(1)).position(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_a_row_key() {
        let location = |offset, length| ColumnLocation::RowBytes { offset, length };
        assert_eq!(location(0, None).find_in_row(b"abcdef"), Some(&b"abcdef"[..]));
        assert_eq!(location(2, Some(3)).find_in_row(b"abcdef"), Some(&b"cde"[..]));
        assert_eq!(location(2, Some(5)).find_in_row(b"abcdef"), None);
        assert_eq!(location(6, None).find_in_row(b"abcdef"), Some(&b""[..]));
        assert_eq!(location(7, None).find_in_row(b"abcdef"), None);
    }

    #[test]
    fn parts_of_a_row_key() {
        let location =
            |offset, part| ColumnLocation::RowPart { offset, separator: Bytes::from_static(b"||"), part };
        assert_eq!(location(0, 0).find_in_row(b"a||b|c||"), Some(&b"a"[..]));
        assert_eq!(location(0, 1).find_in_row(b"a||b|c||"), Some(&b"b|c"[..]));
        assert_eq!(location(0, 2).find_in_row(b"a||b|c||"), Some(&b""[..]));
        assert_eq!(location(0, 3).find_in_row(b"a||b|c||"), None);
        assert_eq!(location(1, 0).find_in_row(b"a||b"), Some(&b""[..]));
    }
}
