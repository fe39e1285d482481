//! How values are written in cells and row keys.

use crate::value::{Kind, Value};

/// How the bytes of a value are read; the numbers are those of `Columns.proto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // Named in the protocol.
pub enum Encoding {
    Raw,
}

/// Bytes that are no value of their column's encoding.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreadable(pub String);

impl Encoding {
    /// The kind of its values, if decimals are kept with `scale` digits.
    pub fn kind(self, scale: u8) -> Kind {
        let _ = scale;
        Kind::Raw
    }

    /// Reads a value.
    ///
    /// # Errors
    /// [`Unreadable`], told in one line and never longer than some hundred bytes.
    pub fn read(self, bytes: &[u8], scale: u8) -> Result<Value, Unreadable> {
        let _ = scale;
        Ok(Value::Raw(bytes.to_vec().into()))
    }
}
