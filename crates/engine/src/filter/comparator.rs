//! Comparators, prepared once per scan, so that a cell costs only a comparison.

use std::cmp::Ordering;

use bytes::Bytes;
use cell::Cell;
use cell::filter::{BitwiseOp, Column, Comparator as Data, Compare as CompareData, CompareOp};

use super::decimal::Decimal;
use super::pattern::JavaPattern;
use super::{FilterError, FilterResult};
use crate::error::{Error, Result};

/// A comparison with a part of a cell.
pub(super) struct Compare {
    pub(super) op: CompareOp,
    comparator: Comparator,
}

enum Comparator {
    Binary(Bytes),
    BinaryPrefix(Bytes),
    BinaryComponent { value: Bytes, offset: usize },
    Bit { value: Bytes, op: BitwiseOp },
    Long(i64),
    BigDecimal(Decimal),
    Null,
    Regex(Box<JavaPattern>),
    Substring(String),
}

impl Compare {
    /// # Errors
    /// [`Error::BadRequest`] for invalid or unsupported regular expressions, and for invalid
    /// numbers.
    pub(super) fn new(data: &CompareData) -> Result<Compare> {
        let comparator = match &data.comparator {
            Data::Binary(value) => Comparator::Binary(value.clone()),
            Data::BinaryPrefix(value) => Comparator::BinaryPrefix(value.clone()),
            Data::BinaryComponent { value, offset } => {
                Comparator::BinaryComponent { value: value.clone(), offset: *offset as usize }
            }
            Data::Bit { value, op } => Comparator::Bit { value: value.clone(), op: *op },
            Data::Long(number) => Comparator::Long(*number),
            Data::BigDecimal(bytes) => Comparator::BigDecimal(
                Decimal::parse(bytes).map_err(|error| Error::bad_request(error.to_string()))?,
            ),
            Data::Null => Comparator::Null,
            Data::Regex(pattern) => Comparator::Regex(Box::new(JavaPattern::new(pattern)?)),
            Data::Substring(text) => Comparator::Substring(text.clone()),
        };
        Ok(Compare { op: data.op, comparator })
    }

    /// Whether it searches for a regular expression by backtracking.
    pub(super) fn backtracks(&self) -> bool {
        matches!(&self.comparator, Comparator::Regex(pattern) if pattern.backtracks())
    }

    /// Whether the comparison with the bytes fails.
    #[inline]
    pub(super) fn fails(&self, bytes: &[u8]) -> FilterResult<bool> {
        if self.op == CompareOp::NoOp {
            return Ok(true);
        }
        // HBase's comparators compare themselves (left) with the value (right). The operator has
        // the value on its left side.
        let order = self.comparator.compare(bytes)?.reverse();
        Ok(!self.op.holds(order))
    }
}

/// `Equal` if it holds, otherwise `Greater`, as HBase's comparators return.
fn equal_if(holds: bool) -> Ordering {
    if holds { Ordering::Equal } else { Ordering::Greater }
}

impl Comparator {
    #[inline]
    fn compare(&self, bytes: &[u8]) -> FilterResult<Ordering> {
        Ok(match self {
            Comparator::Binary(value) => value[..].cmp(bytes),
            Comparator::BinaryPrefix(value) => value[..].cmp(&bytes[..bytes.len().min(value.len())]),
            Comparator::BinaryComponent { value, offset } => {
                let part = bytes.get(*offset..).and_then(|rest| rest.get(..value.len()));
                value[..].cmp(part.ok_or(FilterError::Component(bytes.len()))?)
            }
            Comparator::Bit { value, op } => equal_if(any_bit(value, *op, bytes)),
            Comparator::Long(number) => {
                let theirs = bytes.try_into().map_err(|_| FilterError::LongLength(bytes.len()))?;
                number.cmp(&i64::from_be_bytes(theirs))
            }
            Comparator::BigDecimal(number) => number.compare(&Decimal::parse(bytes)?)?,
            Comparator::Null => Ordering::Greater,
            Comparator::Regex(pattern) => equal_if(pattern.is_found(bytes)?),
            Comparator::Substring(text) => equal_if(contains_text(bytes, text)),
        })
    }
}

/// Whether the operands have equal lengths and the operation sets any bit.
fn any_bit(value: &[u8], op: BitwiseOp, bytes: &[u8]) -> bool {
    let set = |left: u8, right: u8| match op {
        BitwiseOp::And => left & right != 0,
        BitwiseOp::Or => left | right != 0,
        BitwiseOp::Xor => left ^ right != 0,
    };
    value.len() == bytes.len() && value.iter().zip(bytes).any(|(left, right)| set(*left, *right))
}

/// Whether the bytes, as text in lower case, contain `text`, which is in lower case.
fn contains_text(bytes: &[u8], text: &str) -> bool {
    if !bytes.is_ascii() {
        return String::from_utf8_lossy(bytes).to_lowercase().contains(text);
    }
    let text = text.as_bytes();
    text.is_empty() || bytes.windows(text.len()).any(|part| lower_case_is(part, text))
}

fn lower_case_is(part: &[u8], lower: &[u8]) -> bool {
    part.iter().zip(lower).all(|(byte, wanted)| byte.to_ascii_lowercase() == *wanted)
}

/// Whether the cell belongs to the column.
#[inline]
pub(super) fn is_in_column(cell: &Cell<'_>, column: &Column) -> bool {
    cell.family() == column.family && cell.qualifier() == column.qualifier
}
