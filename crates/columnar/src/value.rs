//! Values of columns.

use std::cmp::Ordering;

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

/// The order of real numbers: 0 and -0 are the same, and what is no number is the same as itself and behind all others, as in
/// PostgreSQL.
#[inline]
pub fn compare_reals(left: f64, right: f64) -> Ordering {
    left.partial_cmp(&right).unwrap_or_else(|| left.is_nan().cmp(&right.is_nan()))
}

impl Value {
    /// The kind; null has none. Of decimals the scale is not known here.
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

    /// The bytes, if it is of bytes.
    pub fn raw(&self) -> Option<&[u8]> {
        if let Value::Raw(value) = self { Some(value) } else { None }
    }

    /// The order of two values of one kind; nothing if one is null or they are of two kinds.
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
