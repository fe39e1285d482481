//! Decodes the conditions of conditional mutations (checkAndMutate).
//!
//! HBase uses only the value of a condition's comparator and compares it byte by byte, whatever the
//! class. So the pattern of a regular expression is compared with the cell as plain text.
//!
//! Source: HBase `ProtobufUtil.toCheckAndMutate`, and the `parseFrom` of each comparator.

use std::sync::Arc;

use bytes::Bytes;
use cell::condition::{ColumnTest, Condition, Test};
use cell::filter::CompareOp;
use prost::Message;

use crate::convert::Refused;
use crate::convert::from_proto::{check_family_len, check_row, time_range};
use crate::filter;

/// The package prefix of comparator class names.
const PACKAGE: &str = "org.apache.hadoop.hbase.filter.";

/// Decodes the condition that a row must meet before the mutation is applied.
///
/// # Errors
/// [`Refused`] for an invalid row, family or time range, and for filters, comparators and operators
/// that HBase does not have or does not accept here.
pub fn condition(condition: &proto::Condition) -> Result<Condition, Refused> {
    check_row(&condition.row)?;
    Ok(Condition {
        row: condition.row.clone(),
        time_range: time_range(condition.time_range.as_ref())?,
        test: test(condition)?,
    })
}

fn test(condition: &proto::Condition) -> Result<Test, Refused> {
    if let Some(filter) = &condition.filter {
        return filter::from_proto(filter).map(Arc::new).map(Test::Filter);
    }
    let Some(comparator) = &condition.comparator else {
        return Err(Refused::malformed("condition has neither a filter nor a comparator"));
    };
    check_family_len(condition.family())?;
    Ok(Test::Column(ColumnTest {
        family: condition.family.clone().unwrap_or_default(),
        qualifier: condition.qualifier.clone().unwrap_or_default(),
        operator: operator(condition)?,
        value: value_of(comparator)?,
    }))
}

fn operator(condition: &proto::Condition) -> Result<CompareOp, Refused> {
    let number =
        condition.compare_type.ok_or_else(|| Refused::malformed("Missing required field: compare_type"))?;
    filter::compare_op(number)
}

/// The value of a comparator, whatever its class.
fn value_of(comparator: &proto::Comparator) -> Result<Bytes, Refused> {
    let bytes = comparator.serialized_comparator.clone().unwrap_or_default();
    let unknown = || Refused::Unsupported(format!("comparator {}", comparator.name));
    let comparable = |comparable: proto::ByteArrayComparable| comparable.value.unwrap_or_default();
    match comparator.name.strip_prefix(PACKAGE).ok_or_else(unknown)? {
        "BinaryComparator" => Ok(comparable(parse::<proto::BinaryComparator>(bytes)?.comparable)),
        "BinaryComponentComparator" => Ok(parse::<proto::BinaryComponentComparator>(bytes)?.value),
        "BinaryPrefixComparator" => Ok(comparable(parse::<proto::BinaryPrefixComparator>(bytes)?.comparable)),
        "LongComparator" => Ok(comparable(parse::<proto::LongComparator>(bytes)?.comparable)),
        "BigDecimalComparator" => Ok(comparable(parse::<proto::BigDecimalComparator>(bytes)?.comparable)),
        "BitComparator" => Ok(comparable(parse::<proto::BitComparator>(bytes)?.comparable)),
        "NullComparator" => Ok(Bytes::new()),
        "RegexStringComparator" => Ok(parse::<proto::RegexStringComparator>(bytes)?.pattern.into()),
        "SubstringComparator" => Ok(parse::<proto::SubstringComparator>(bytes)?.substr.to_lowercase().into()),
        _ => Err(unknown()),
    }
}

fn parse<M: Message + Default>(bytes: Bytes) -> Result<M, Refused> {
    M::decode(bytes).map_err(|error| Refused::malformed(format!("not a comparator: {error}")))
}
