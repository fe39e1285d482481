//! Values of columns.

use std::cmp::Ordering;

use bytes::Bytes;

/// Kinds of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// 64-bit integers; booleans are 0 and 1, times are counts since the epoch.
    Whole,
    /// Double-precision numbers.
    Real,
    /// Decimals of up to 38 digits, with a fixed number of digits after the decimal point.
    Decimal {
        /// Digits after the decimal point.
        scale: u8,
    },
    /// Byte strings in byte order, including text.
    Raw,
}

/// A value, or null.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Null.
    Null,
    /// A value of [`Kind::Whole`].
    Whole(i64),
    /// A value of [`Kind::Real`].
    Real(f64),
    /// A value of [`Kind::Decimal`]: the unscaled number; the scale is the column's.
    Decimal(i128),
    /// A value of [`Kind::Raw`].
    Raw(Bytes),
}

/// Order of real numbers: 0 and -0 are equal, and NaN equals itself and sorts after all numbers, as
/// in PostgreSQL.
#[inline]
pub fn compare_reals(left: f64, right: f64) -> Ordering {
    left.partial_cmp(&right).unwrap_or_else(|| left.is_nan().cmp(&right.is_nan()))
}

impl Value {
    /// Whether the value has this kind. Null fits every kind; the scale of decimals is not
    /// compared.
    pub fn is_of(&self, kind: Kind) -> bool {
        match self {
            Value::Null => true,
            Value::Whole(_) => kind == Kind::Whole,
            Value::Real(_) => kind == Kind::Real,
            Value::Decimal(_) => matches!(kind, Kind::Decimal { .. }),
            Value::Raw(_) => kind == Kind::Raw,
        }
    }

    /// The whole number, if it is one.
    pub fn whole(&self) -> Option<i64> {
        if let Value::Whole(value) = self { Some(*value) } else { None }
    }

    /// The bytes, if the value is a byte string.
    pub fn raw(&self) -> Option<&[u8]> {
        if let Value::Raw(value) = self { Some(value) } else { None }
    }

    /// Compares two values of one kind; `None` if one is null or the kinds differ.
    pub fn compare(&self, other: &Value) -> Option<Ordering> {
        match (self, other) {
            (Value::Whole(left), Value::Whole(right)) => Some(left.cmp(right)),
            (Value::Real(left), Value::Real(right)) => Some(compare_reals(*left, *right)),
            (Value::Decimal(left), Value::Decimal(right)) => Some(left.cmp(right)),
            (Value::Raw(left), Value::Raw(right)) => Some(left.cmp(right)),
            _ => None,
        }
    }
}
