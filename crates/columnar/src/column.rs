//! Where values are.

use std::fmt;

use bytes::Bytes;

use crate::encoding::Encoding;
use crate::value::Kind;

/// Digits behind the point that a decimal may have, and digits in all.
pub const DECIMAL_DIGITS_MAX: u8 = 38;

/// Where in a row a value is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// The newest cell of a column.
    Cell {
        /// The family.
        family: Bytes,
        /// The qualifier, which may be empty.
        qualifier: Bytes,
    },
    /// Bytes of the row key from `offset` on; to its end without a length.
    RowBytes {
        /// Where they begin.
        offset: usize,
        /// How many there are; a key that is shorter has none.
        length: Option<usize>,
    },
    /// One of the parts of the row key between separators.
    RowPart {
        /// Where the first part begins.
        offset: usize,
        /// What is between two parts; not empty.
        separator: Bytes,
        /// Which part, from 0 on.
        part: usize,
    },
}

/// A typed column.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Column {
    /// Where its values are.
    pub place: Place,
    /// How they are written.
    pub encoding: Encoding,
    /// Digits behind the point that are kept of decimals, at most [`DECIMAL_DIGITS_MAX`].
    pub scale: u8,
}

impl Column {
    /// The kind of its values.
    pub fn kind(&self) -> Kind {
        self.encoding.kind(self.scale)
    }
}

/// As people name it: `family:qualifier`, or a part of the row.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Cell { family, qualifier } => {
                write!(f, "{}:{}", family.escape_ascii(), qualifier.escape_ascii())
            }
            Place::RowBytes { offset: 0, length: None } => f.write_str("row"),
            Place::RowBytes { offset, .. } => write!(f, "row from byte {offset}"),
            Place::RowPart { part, .. } => write!(f, "part {part} of row"),
        }
    }
}

impl Place {
    /// The value's bytes in a row key; `None` if it has none, or the place is a cell.
    pub fn of_row<'a>(&self, row: &'a [u8]) -> Option<&'a [u8]> {
        match self {
            Place::Cell { .. } => None,
            Place::RowBytes { offset, length: None } => row.get(*offset..),
            Place::RowBytes { offset, length: Some(length) } => row.get(*offset..)?.get(..*length),
            Place::RowPart { offset, separator, part } => {
                let mut rest = row.get(*offset..)?;
                for _ in 0..*part {
                    rest = &rest[find(rest, separator)? + separator.len()..];
                }
                Some(find(rest, separator).map_or(rest, |end| &rest[..end]))
            }
        }
    }
}

/// Where `part`, which is not empty, first is in `bytes`.
fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len().max(1)).position(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_a_row_key() {
        let place = |offset, length| Place::RowBytes { offset, length };
        assert_eq!(place(0, None).of_row(b"abcdef"), Some(&b"abcdef"[..]));
        assert_eq!(place(2, Some(3)).of_row(b"abcdef"), Some(&b"cde"[..]));
        assert_eq!(place(2, Some(5)).of_row(b"abcdef"), None);
        assert_eq!(place(6, None).of_row(b"abcdef"), Some(&b""[..]));
        assert_eq!(place(7, None).of_row(b"abcdef"), None);
    }

    #[test]
    fn parts_of_a_row_key() {
        let place = |offset, part| Place::RowPart { offset, separator: Bytes::from_static(b"||"), part };
        assert_eq!(place(0, 0).of_row(b"a||b|c||"), Some(&b"a"[..]));
        assert_eq!(place(0, 1).of_row(b"a||b|c||"), Some(&b"b|c"[..]));
        assert_eq!(place(0, 2).of_row(b"a||b|c||"), Some(&b""[..]));
        assert_eq!(place(0, 3).of_row(b"a||b|c||"), None);
        assert_eq!(place(1, 0).of_row(b"a||b"), Some(&b""[..]));
    }
}
