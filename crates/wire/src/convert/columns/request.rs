//! Requests of `ColumnService`: decoded, checked and encoded.

use bytes::Bytes;
use cell::query::TimeRange;
use columnar::column::DECIMAL_DIGITS_MAX;
use columnar::predicate::{DEPTH_MAX, Operator, Pattern};
use columnar::{Aggregate, Aggregation, Column, ColumnLocation, Encoding, Function, Predicate};
use proto::grampus::{self, aggregate, predicate};

use super::{value, value_message};
use crate::convert::Refused;

/// The rows, columns and versions that a request covers.
#[derive(Clone, Debug, PartialEq)]
pub struct RowQuery {
    /// The first row, and the first row after the range; an empty row is no bound.
    pub range: (Bytes, Bytes),
    /// Range of cell timestamps.
    pub time_range: TimeRange,
    /// Maximum number of versions of each column; at least 1.
    pub versions: u32,
    /// The families whose cells make up a row: those named, or else those of the columns.
    pub families: Vec<Bytes>,
    /// The columns of the request.
    pub columns: Vec<Column>,
    /// The condition that a row must meet; `None` accepts every row.
    pub predicate: Option<Predicate>,
}

/// Maximum number of columns, group-by columns and aggregates of one request.
const COLUMNS_MAX: usize = 1024;
const GROUP_BY_MAX: usize = 64;
const AGGREGATES_MAX: usize = 1024;
/// Maximum number of parts of a condition. Each value in a list counts as one part.
pub const CONDITIONS_MAX: usize = 16 << 10;
/// Maximum size in bytes of a pattern.
pub const PATTERN_BYTES_MAX: usize = 4096;
/// Maximum size in bytes of a separator.
const SEPARATOR_BYTES_MAX: usize = 256;
/// Maximum size in bytes of a row or a qualifier (HBase `HConstants.MAX_ROW_LENGTH`), and of a
/// family.
const NAME_BYTES_MAX: usize = i16::MAX as usize;
const FAMILY_BYTES_MAX: usize = i8::MAX as usize;

/// Decodes and checks the rows of a request.
///
/// # Errors
/// [`Refused::Malformed`] for limits exceeded and for invalid ranges, families, columns or
/// conditions.
pub fn rows(message: &grampus::Rows) -> Result<RowQuery, Refused> {
    if message.column.len() > COLUMNS_MAX {
        return Err(Refused::malformed(format!("a request names more than {COLUMNS_MAX} columns")));
    }
    let columns = message.column.iter().map(column).collect::<Result<Vec<_>, _>>()?;
    let families = families(&message.family, &columns)?;
    let time_range = TimeRange {
        from: message.from_ms.unwrap_or(TimeRange::ALL.from),
        to: message.to_ms.unwrap_or(TimeRange::ALL.to),
    };
    if time_range.from > time_range.to {
        return Err(Refused::malformed("time range ends before it begins"));
    }
    let mut left = CONDITIONS_MAX;
    let predicate =
        message.predicate.as_ref().map(|predicate| predicate_of(predicate, 0, &mut left)).transpose()?;
    let bound = |row: &[u8]| copied("a row", row, NAME_BYTES_MAX);
    let range = (bound(message.start_row())?, bound(message.stop_row())?);
    // No column has more than `i32::MAX` versions, so a larger number means all of them.
    let versions = message.versions.unwrap_or(1).clamp(1, i32::MAX as u32);
    Ok(RowQuery { range, time_range, versions, families, columns, predicate })
}

/// The families whose cells make up a row, sorted: those named, or else those of the columns. If
/// any are named, every column must belong to one of them.
fn families(named: &[Bytes], columns: &[Column]) -> Result<Vec<Bytes>, Refused> {
    let column_family = |column: &Column| match &column.location {
        ColumnLocation::Cell { family, .. } => Some(family.clone()),
        _ => None,
    };
    let mut families = named.to_vec();
    families.extend(columns.iter().filter_map(column_family));
    families.sort();
    families.dedup();
    match families.iter().find(|family| !named.is_empty() && !named.contains(family)) {
        Some(family) => Err(Refused::malformed(format!(
            "column family {} is not among those that make rows",
            family.escape_ascii()
        ))),
        None => Ok(families),
    }
}

/// Copies bytes that outlive the request, so that they do not keep its frame in memory.
fn copied(what: &str, bytes: &[u8], max: usize) -> Result<Bytes, Refused> {
    if bytes.len() > max {
        return Err(Refused::malformed(format!("{what} is of more than {max} bytes")));
    }
    Ok(Bytes::copy_from_slice(bytes))
}

/// Encodes rows as their message.
pub fn rows_message(rows: &RowQuery) -> grampus::Rows {
    grampus::Rows {
        start_row: Some(rows.range.0.clone()),
        stop_row: Some(rows.range.1.clone()),
        from_ms: (!rows.time_range.is_all()).then_some(rows.time_range.from),
        to_ms: (!rows.time_range.is_all()).then_some(rows.time_range.to),
        family: rows.families.clone(),
        column: rows.columns.iter().map(column_message).collect(),
        predicate: rows.predicate.as_ref().map(predicate_message),
        versions: (rows.versions > 1).then_some(rows.versions),
    }
}

/// Builds and checks the aggregation that a request specifies.
///
/// # Errors
/// [`Refused::Malformed`] for limits exceeded and for an invalid aggregation.
pub fn aggregation(
    rows: &RowQuery,
    group_by: &[u32],
    aggregates: &[grampus::Aggregate],
) -> Result<Aggregation, Refused> {
    if group_by.len() > GROUP_BY_MAX || aggregates.len() > AGGREGATES_MAX {
        return Err(Refused::malformed(format!(
            "request has more than {GROUP_BY_MAX} columns to group by, or {AGGREGATES_MAX} aggregates"
        )));
    }
    let aggregation = Aggregation {
        columns: rows.columns.clone(),
        predicate: rows.predicate.clone(),
        group_by: group_by.iter().map(|at| *at as usize).collect(),
        aggregates: aggregates.iter().map(aggregate_of).collect::<Result<_, _>>()?,
    };
    aggregation.check().map_err(Refused::Malformed)?;
    Ok(aggregation)
}

fn column(message: &grampus::Column) -> Result<Column, Refused> {
    let number = message.encoding.unwrap_or_default();
    let encoding = Encoding::from_number(number)
        .ok_or_else(|| Refused::malformed(format!("there is no encoding of number {number}")))?;
    let scale = u8::try_from(message.scale()).ok().filter(|scale| *scale <= DECIMAL_DIGITS_MAX);
    let scale = scale.ok_or_else(|| {
        Refused::malformed(format!("a decimal has at most {DECIMAL_DIGITS_MAX} digits after the point"))
    })?;
    let location = match &message.family {
        Some(family) => ColumnLocation::Cell {
            family: copied("a family", family, FAMILY_BYTES_MAX)?,
            qualifier: copied("a qualifier", message.qualifier(), NAME_BYTES_MAX)?,
        },
        None => row_location(message)?,
    };
    Ok(Column { location, encoding, scale })
}

fn row_location(message: &grampus::Column) -> Result<ColumnLocation, Refused> {
    let offset = message.row_offset() as usize;
    match &message.row_separator {
        None => {
            Ok(ColumnLocation::RowBytes { offset, length: message.row_length.map(|length| length as usize) })
        }
        Some(separator) if separator.is_empty() => {
            Err(Refused::malformed("the separator of row parts is empty"))
        }
        Some(separator) => {
            let separator = copied("a separator", separator, SEPARATOR_BYTES_MAX)?;
            Ok(ColumnLocation::RowPart { offset, separator, part: message.row_part() as usize })
        }
    }
}

/// Encodes a column as its message.
pub fn column_message(column: &Column) -> grampus::Column {
    let mut message = grampus::Column {
        encoding: Some(column.encoding.number()),
        scale: Some(u32::from(column.scale)),
        ..grampus::Column::default()
    };
    match &column.location {
        ColumnLocation::Cell { family, qualifier } => {
            (message.family, message.qualifier) = (Some(family.clone()), Some(qualifier.clone()));
        }
        ColumnLocation::RowBytes { offset, length } => {
            message.row_offset = Some(*offset as u32);
            message.row_length = length.map(|length| length as u32);
        }
        ColumnLocation::RowPart { offset, separator, part } => {
            message.row_offset = Some(*offset as u32);
            message.row_separator = Some(separator.clone());
            message.row_part = Some(*part as u32);
        }
    }
    message
}

fn predicate_of(message: &grampus::Predicate, depth: usize, left: &mut usize) -> Result<Predicate, Refused> {
    let listed = message.r#in.as_ref().map_or(0, |of| of.value.len());
    *left = left.checked_sub(1 + listed).ok_or_else(|| {
        Refused::malformed(format!("a condition has more than {CONDITIONS_MAX} parts and values"))
    })?;
    if depth > DEPTH_MAX {
        return Err(Refused::malformed(format!("a condition is nested deeper than {DEPTH_MAX}")));
    }
    let parts = |list: &predicate::List, left: &mut usize| {
        list.predicate.iter().map(|part| predicate_of(part, depth + 1, left)).collect::<Result<Vec<_>, _>>()
    };
    if let Some(all) = &message.all {
        return parts(all, left).map(Predicate::All);
    }
    if let Some(any) = &message.any {
        return parts(any, left).map(Predicate::Any);
    }
    if let Some(not) = &message.not {
        return Ok(Predicate::Not(predicate_of(not, depth + 1, left)?.into()));
    }
    if let Some(comparison) = &message.comparison {
        let operator = operator(comparison.operator.unwrap_or_default())?;
        let column = comparison.column() as usize;
        return Ok(match comparison.other_column {
            Some(other) => Predicate::CompareColumns(column, operator, other as usize),
            None => {
                let with = comparison.value.as_ref().map(value).transpose()?;
                Predicate::Compare(column, operator, with.unwrap_or(columnar::Value::Null))
            }
        });
    }
    if let Some(of) = &message.r#in {
        let values = of.value.iter().map(value).collect::<Result<_, _>>()?;
        return Ok(Predicate::In(of.column() as usize, values));
    }
    if let Some(column) = message.is_null {
        return Ok(Predicate::IsNull(column as usize));
    }
    if let Some(like) = &message.like {
        let escape = match like.escape() {
            [] => None,
            [escape] => Some(*escape),
            _ => return Err(Refused::malformed("the escape of a pattern is longer than one byte")),
        };
        if like.pattern().len() > PATTERN_BYTES_MAX {
            return Err(Refused::malformed(format!("a pattern is longer than {PATTERN_BYTES_MAX} bytes")));
        }
        return Ok(Predicate::Like(like.column() as usize, Pattern::new(like.pattern(), escape)));
    }
    Err(Refused::malformed("a condition is empty or of an unknown kind"))
}

/// Encodes a condition as its message.
pub fn predicate_message(predicate: &Predicate) -> grampus::Predicate {
    let list =
        |parts: &[Predicate]| predicate::List { predicate: parts.iter().map(predicate_message).collect() };
    let mut message = grampus::Predicate::default();
    match predicate {
        Predicate::All(parts) => message.all = Some(list(parts)),
        Predicate::Any(parts) => message.any = Some(list(parts)),
        Predicate::Not(part) => message.not = Some(Box::new(predicate_message(part))),
        Predicate::Compare(column, operator, with) => {
            message.comparison = Some(predicate::Comparison {
                column: Some(*column as u32),
                operator: Some(operator_number(*operator)),
                value: Some(value_message(with)),
                other_column: None,
            });
        }
        Predicate::CompareColumns(column, operator, other) => {
            message.comparison = Some(predicate::Comparison {
                column: Some(*column as u32),
                operator: Some(operator_number(*operator)),
                value: None,
                other_column: Some(*other as u32),
            });
        }
        Predicate::In(column, values) => {
            let value = values.iter().map(value_message).collect();
            message.r#in = Some(predicate::In { column: Some(*column as u32), value });
        }
        Predicate::IsNull(column) => message.is_null = Some(*column as u32),
        Predicate::Like(column, pattern) => {
            message.like = Some(predicate::Like {
                column: Some(*column as u32),
                pattern: Some(pattern.to_bytes().into()),
                escape: Some(Bytes::from_static(&[Pattern::ESCAPE])),
            });
        }
    }
    message
}

fn operator(number: i32) -> Result<Operator, Refused> {
    match predicate::Operator::try_from(number) {
        Ok(predicate::Operator::Equal) => Ok(Operator::Equal),
        Ok(predicate::Operator::NotEqual) => Ok(Operator::NotEqual),
        Ok(predicate::Operator::Less) => Ok(Operator::Less),
        Ok(predicate::Operator::LessOrEqual) => Ok(Operator::LessOrEqual),
        Ok(predicate::Operator::Greater) => Ok(Operator::Greater),
        Ok(predicate::Operator::GreaterOrEqual) => Ok(Operator::GreaterOrEqual),
        Err(_) => Err(Refused::malformed(format!("unknown operator number {number}"))),
    }
}

fn operator_number(operator: Operator) -> i32 {
    let message = match operator {
        Operator::Equal => predicate::Operator::Equal,
        Operator::NotEqual => predicate::Operator::NotEqual,
        Operator::Less => predicate::Operator::Less,
        Operator::LessOrEqual => predicate::Operator::LessOrEqual,
        Operator::Greater => predicate::Operator::Greater,
        Operator::GreaterOrEqual => predicate::Operator::GreaterOrEqual,
    };
    message as i32
}

fn aggregate_of(message: &grampus::Aggregate) -> Result<Aggregate, Refused> {
    let number = message.function.unwrap_or_default();
    let function = match aggregate::Function::try_from(number) {
        Ok(aggregate::Function::Count) => Function::Count,
        Ok(aggregate::Function::Sum) => Function::Sum,
        Ok(aggregate::Function::Min) => Function::Min,
        Ok(aggregate::Function::Max) => Function::Max,
        Ok(aggregate::Function::Average) => Function::Average,
        Ok(aggregate::Function::Variance) => Function::Variance,
        Ok(aggregate::Function::Distinct) => Function::Distinct,
        Ok(aggregate::Function::Quantiles) => Function::Quantiles,
        Err(_) => return Err(Refused::malformed(format!("unknown aggregate number {number}"))),
    };
    Ok(Aggregate { function, column: message.column.map(|column| column as usize) })
}

/// Encodes an aggregate as its message.
pub fn aggregate_message(aggregate: &Aggregate) -> grampus::Aggregate {
    let function = match aggregate.function {
        Function::Count => aggregate::Function::Count,
        Function::Sum => aggregate::Function::Sum,
        Function::Min => aggregate::Function::Min,
        Function::Max => aggregate::Function::Max,
        Function::Average => aggregate::Function::Average,
        Function::Variance => aggregate::Function::Variance,
        Function::Distinct => aggregate::Function::Distinct,
        Function::Quantiles => aggregate::Function::Quantiles,
    };
    grampus::Aggregate {
        function: Some(function as i32),
        column: aggregate.column.map(|column| column as u32),
    }
}
