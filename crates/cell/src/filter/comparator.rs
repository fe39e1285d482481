//! What values are compared with, and how.

use std::cmp::Ordering;

use bytes::Bytes;

/// How a cell's value must compare with the comparator's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompareOp {
    /// Smaller than it.
    Less,
    /// Smaller or equal.
    LessOrEqual,
    /// Equal.
    Equal,
    /// Not equal.
    NotEqual,
    /// Greater or equal.
    GreaterOrEqual,
    /// Greater.
    Greater,
    /// Not compared: nothing passes.
    NoOp,
}

impl CompareOp {
    /// Whether `left operator right` holds, where `order` is that of left and right.
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

/// What a value is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Comparator {
    /// Bytes.
    Binary(Bytes),
    /// As many bytes of the value's start.
    BinaryPrefix(Bytes),
    /// As many bytes of the value from an offset on.
    BinaryComponent {
        /// The bytes.
        value: Bytes,
        /// Where they are in the value.
        offset: u32,
    },
    /// Bits: equal if the operation gives any bit that is set.
    Bit {
        /// The other operand.
        value: Bytes,
        /// The operation.
        op: BitwiseOp,
    },
    /// A signed number of eight bytes.
    Long(i64),
    /// A decimal number as HBase writes it: four bytes of scale, then the unscaled number.
    BigDecimal(Bytes),
    /// Equal to no value that a cell can have.
    Null,
    /// Equal if the pattern is found.
    Regex(Pattern),
    /// Equal if this text, in lower case, is in the value in lower case.
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

/// A regular expression as Java writes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// The expression.
    pub source: String,
    /// Flags of `java.util.regex.Pattern`.
    pub flags: i32,
    /// The charset of the bytes it is looked for in.
    pub charset: String,
    /// The engine that the client asks for; empty for Java's.
    pub engine: String,
}
