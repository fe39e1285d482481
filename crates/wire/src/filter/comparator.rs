//! Comparators: decoding and encoding.

use bytes::Bytes;
use cell::filter::{BitwiseOp, Comparator, CompareOp, Pattern};
use prost::Message;
use proto::{ByteArrayComparable, CompareType, bit_comparator};

use super::{PACKAGE, invalid_filter, simple_name};
use crate::convert::Refused;

/// Decodes a comparator from its message.
pub(super) fn decode(comparator: &proto::Comparator) -> Result<Comparator, Refused> {
    let bytes = comparator.serialized_comparator.clone().unwrap_or_default();
    match simple_name(&comparator.name) {
        Some("BinaryComparator") => {
            Ok(Comparator::Binary(value(message::<proto::BinaryComparator>(bytes)?.comparable)))
        }
        Some("BinaryPrefixComparator") => {
            Ok(Comparator::BinaryPrefix(value(message::<proto::BinaryPrefixComparator>(bytes)?.comparable)))
        }
        Some("BinaryComponentComparator") => {
            let message = message::<proto::BinaryComponentComparator>(bytes)?;
            Ok(Comparator::BinaryComponent { value: message.value, offset: message.offset })
        }
        Some("BitComparator") => bit(&message(bytes)?),
        Some("LongComparator") => {
            let value = value(message::<proto::LongComparator>(bytes)?.comparable);
            let number = value[..]
                .try_into()
                .map_err(|_| invalid_filter("value of a LongComparator is not 8 bytes"))?;
            Ok(Comparator::Long(i64::from_be_bytes(number)))
        }
        Some("BigDecimalComparator") => {
            Ok(Comparator::BigDecimal(value(message::<proto::BigDecimalComparator>(bytes)?.comparable)))
        }
        Some("NullComparator") => Ok(Comparator::Null),
        Some("RegexStringComparator") => {
            let message = message::<proto::RegexStringComparator>(bytes)?;
            let engine = message.engine().to_string();
            let flags = message.pattern_flags;
            Ok(Comparator::Regex(Pattern {
                source: message.pattern,
                flags,
                charset: message.charset,
                engine,
            }))
        }
        Some("SubstringComparator") => {
            Ok(Comparator::Substring(message::<proto::SubstringComparator>(bytes)?.substr.to_lowercase()))
        }
        _ => Err(invalid_filter(format!("java.lang.ClassNotFoundException: {}", comparator.name))),
    }
}

fn bit(message: &proto::BitComparator) -> Result<Comparator, Refused> {
    let op = match message.bitwise_op() {
        bit_comparator::BitwiseOp::And => BitwiseOp::And,
        bit_comparator::BitwiseOp::Or => BitwiseOp::Or,
        bit_comparator::BitwiseOp::Xor => BitwiseOp::Xor,
    };
    Ok(Comparator::Bit { value: value(message.comparable.clone()), op })
}

/// Encodes a comparator as its message.
pub(super) fn encode(comparator: &Comparator) -> proto::Comparator {
    let (name, bytes) = match comparator {
        Comparator::Binary(value) => {
            ("BinaryComparator", proto::BinaryComparator { comparable: comparable(value) }.encode_to_vec())
        }
        Comparator::BinaryPrefix(value) => (
            "BinaryPrefixComparator",
            proto::BinaryPrefixComparator { comparable: comparable(value) }.encode_to_vec(),
        ),
        Comparator::BinaryComponent { value, offset } => (
            "BinaryComponentComparator",
            proto::BinaryComponentComparator { value: value.clone(), offset: *offset }.encode_to_vec(),
        ),
        Comparator::Bit { value, op } => {
            let op = match op {
                BitwiseOp::And => bit_comparator::BitwiseOp::And,
                BitwiseOp::Or => bit_comparator::BitwiseOp::Or,
                BitwiseOp::Xor => bit_comparator::BitwiseOp::Xor,
            };
            let message = proto::BitComparator { comparable: comparable(value), bitwise_op: op.into() };
            ("BitComparator", message.encode_to_vec())
        }
        Comparator::Long(number) => {
            let value = Bytes::copy_from_slice(&number.to_be_bytes());
            ("LongComparator", proto::LongComparator { comparable: comparable(&value) }.encode_to_vec())
        }
        Comparator::BigDecimal(value) => (
            "BigDecimalComparator",
            proto::BigDecimalComparator { comparable: comparable(value) }.encode_to_vec(),
        ),
        Comparator::Null => ("NullComparator", Vec::new()),
        Comparator::Regex(pattern) => ("RegexStringComparator", regex(pattern).encode_to_vec()),
        Comparator::Substring(text) => {
            ("SubstringComparator", proto::SubstringComparator { substr: text.clone() }.encode_to_vec())
        }
    };
    proto::Comparator { name: format!("{PACKAGE}{name}"), serialized_comparator: Some(bytes.into()) }
}

fn regex(pattern: &Pattern) -> proto::RegexStringComparator {
    proto::RegexStringComparator {
        pattern: pattern.source.clone(),
        pattern_flags: pattern.flags,
        charset: pattern.charset.clone(),
        engine: (!pattern.engine.is_empty()).then(|| pattern.engine.clone()),
    }
}

/// Decodes a comparison operator from its number.
pub(crate) fn decode_op(number: i32) -> Result<CompareOp, Refused> {
    match CompareType::try_from(number) {
        Ok(CompareType::Less) => Ok(CompareOp::Less),
        Ok(CompareType::LessOrEqual) => Ok(CompareOp::LessOrEqual),
        Ok(CompareType::Equal) => Ok(CompareOp::Equal),
        Ok(CompareType::NotEqual) => Ok(CompareOp::NotEqual),
        Ok(CompareType::GreaterOrEqual) => Ok(CompareOp::GreaterOrEqual),
        Ok(CompareType::Greater) => Ok(CompareOp::Greater),
        Ok(CompareType::NoOp) => Ok(CompareOp::NoOp),
        Err(_) => Err(invalid_filter(format!("unknown comparison operator {number}"))),
    }
}

/// The number of a comparison operator.
pub(crate) fn encode_op(op: CompareOp) -> i32 {
    match op {
        CompareOp::Less => CompareType::Less,
        CompareOp::LessOrEqual => CompareType::LessOrEqual,
        CompareOp::Equal => CompareType::Equal,
        CompareOp::NotEqual => CompareType::NotEqual,
        CompareOp::GreaterOrEqual => CompareType::GreaterOrEqual,
        CompareOp::Greater => CompareType::Greater,
        CompareOp::NoOp => CompareType::NoOp,
    }
    .into()
}

fn message<M: Message + Default>(bytes: Bytes) -> Result<M, Refused> {
    M::decode(bytes).map_err(invalid_filter)
}

fn value(comparable: ByteArrayComparable) -> Bytes {
    comparable.value.unwrap_or_default()
}

fn comparable(value: &Bytes) -> ByteArrayComparable {
    ByteArrayComparable { value: Some(value.clone()) }
}
