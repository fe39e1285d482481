//! Values of columns.

use bytes::Bytes;

/// What kinds of values there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Whole numbers of 64 bits; booleans are 0 and 1, times are counts since the epoch.
    Whole,
    /// Numbers of double precision.
    Real,
    /// Decimals of up to 38 digits with this many of them behind the point.
    Decimal {
        /// Digits behind the point.
        scale: u8,
    },
    /// Bytes, ordered as bytes are; strings too.
    Raw,
}

/// A value, or null.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// None.
    Null,
    /// Of [`Kind::Whole`].
    Whole(i64),
    /// Of [`Kind::Real`].
    Real(f64),
    /// Of [`Kind::Decimal`]: the unscaled number; the scale is the column's.
    Decimal(i128),
    /// Of [`Kind::Raw`].
    Raw(Bytes),
}
