//! How values are written in cells and row keys.

use bytes::Bytes;

use crate::value::{Kind, Value};

/// How the bytes of a value are read; the numbers are those of `Columns.proto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // Named in the protocol.
pub enum Encoding {
    Raw,
    BytesLong,
    BytesDouble,
}

/// Bytes that are no value of their column's encoding.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreadable(pub String);

impl Encoding {
    /// The encoding of a number of `Columns.proto`.
    pub fn from_number(number: i32) -> Option<Encoding> {
        match number {
            0 => Some(Encoding::Raw),
            5 => Some(Encoding::BytesLong),
            7 => Some(Encoding::BytesDouble),
            _ => None,
        }
    }

    /// Its number in `Columns.proto`.
    pub fn number(self) -> i32 {
        match self {
            Encoding::Raw => 0,
            Encoding::BytesLong => 5,
            Encoding::BytesDouble => 7,
        }
    }

    /// The kind of its values, if decimals are kept with `scale` digits.
    pub fn kind(self, _scale: u8) -> Kind {
        match self {
            Encoding::Raw => Kind::Raw,
            Encoding::BytesLong => Kind::Whole,
            Encoding::BytesDouble => Kind::Real,
        }
    }

    /// Reads a value.
    ///
    /// # Errors
    /// [`Unreadable`], told in one line and never longer than some hundred bytes.
    pub fn read(self, bytes: &[u8], _scale: u8) -> Result<Value, Unreadable> {
        match self {
            Encoding::Raw => Ok(Value::Raw(Bytes::copy_from_slice(bytes))),
            Encoding::BytesLong => Ok(self.read_whole(bytes)?.map_or(Value::Null, Value::Whole)),
            Encoding::BytesDouble => Ok(self.read_real(bytes)?.map_or(Value::Null, Value::Real)),
        }
    }

    /// Reads a whole number.
    #[inline]
    pub fn read_whole(self, bytes: &[u8]) -> Result<Option<i64>, Unreadable> {
        let bytes = bytes.try_into().map_err(|_| Unreadable("not of 8 bytes".into()))?;
        Ok(Some(i64::from_be_bytes(bytes)))
    }

    /// Reads a real number.
    #[inline]
    pub fn read_real(self, bytes: &[u8]) -> Result<Option<f64>, Unreadable> {
        let bytes = bytes.try_into().map_err(|_| Unreadable("not of 8 bytes".into()))?;
        Ok(Some(f64::from_be_bytes(bytes)))
    }

    /// Reads a decimal.
    #[inline]
    pub fn read_decimal(self, _bytes: &[u8], _scale: u8) -> Result<Option<i128>, Unreadable> {
        Err(Unreadable("no decimal".into()))
    }
}
