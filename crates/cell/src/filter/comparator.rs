//! Operators and comparators of filters.

use std::cmp::Ordering;

use bytes::Bytes;

/// Required relation between the cell's value and the comparator's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompareOp {
    /// The cell's value is smaller.
    Less,
    /// The cell's value is smaller or equal.
    LessOrEqual,
    /// Equal.
    Equal,
    /// Not equal.
    NotEqual,
    /// Greater or equal.
    GreaterOrEqual,
    /// Greater.
    Greater,
    /// No comparison: nothing passes.
    NoOp,
}

impl CompareOp {
    /// Whether `left operator right` holds, where `order` compares left with right.
    pub fn holds(self, order: Ordering) -> bool {
        match self {
            CompareOp::Less => order.is_lt(),
            CompareOp::LessOrEqual => order.is_le(),
            CompareOp::Equal => order.is_eq(),
            CompareOp::NotEqual => order.is_ne(),
            CompareOp::GreaterOrEqual => order.is_ge(),
            CompareOp::Greater => order.is_gt(),
            CompareOp::NoOp => false,
        }
    }
}

/// What a value is compared with, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Comparator {
    /// Compares all bytes.
    Binary(Bytes),
    /// Compares the first bytes of the value, as many as given here.
    BinaryPrefix(Bytes),
    /// Compares as many bytes of the value as given here, starting at an offset.
    BinaryComponent {
        /// The bytes.
        value: Bytes,
        /// Their offset in the value.
        offset: u32,
    },
    /// Equal if the bitwise operation sets at least one bit.
    Bit {
        /// The other operand.
        value: Bytes,
        /// The operation.
        op: BitwiseOp,
    },
    /// A signed 8-byte number.
    Long(i64),
    /// A decimal number in HBase's encoding: 4 bytes of scale, then the unscaled number.
    BigDecimal(Bytes),
    /// Equal to no stored value.
    Null,
    /// Equal if the value contains a match of the pattern.
    Regex(Pattern),
    /// Equal if the lower-case value contains this lower-case text.
    Substring(String),
}

/// A bitwise operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BitwiseOp {
    /// And.
    And,
    /// Or.
    Or,
    /// Exclusive or.
    Xor,
}

/// A regular expression in Java syntax.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// The expression.
    pub source: String,
    /// Flags of `java.util.regex.Pattern`.
    pub flags: i32,
    /// The charset of the bytes that are searched.
    pub charset: String,
    /// The regular expression engine that the client requests; empty for Java's.
    pub engine: String,
}
