//! Changes of rows, and the checks that HBase's client makes before it sends them.

use std::collections::BTreeMap;

use bytes::Bytes;
use cell::condition::{ColumnTest, Condition, Test};
use cell::filter::{CompareOp, Filter};
use cell::mutation::{Durability, Mutation, MutationKind};
use cell::query::TimeRange;
use cell::schema::TableName;
use cell::{CellType, KeyValue};

use crate::failure::{Failure, Result};

/// Maximum length of a row key (`HConstants.MAX_ROW_LENGTH`).
const ROW_LEN_MAX: usize = i16::MAX as usize;
/// Maximum length of a family's name (`HConstants.MAX_FAMILY_LENGTH`).
const FAMILY_LEN_MAX: usize = i8::MAX as usize;
/// The attribute with the lifetime of a change's cells, in milliseconds.
const TTL_ATTRIBUTE: &[u8] = b"_ttl";
/// The attribute of a scan that also returns deleted cells and delete markers.
const RAW_ATTRIBUTE: &[u8] = b"_raw_";

/// Attributes of an operation.
pub(crate) type OperationAttributes = BTreeMap<Bytes, Bytes>;

/// The name of a table.
///
/// # Errors
/// As in HBase, an invalid name is not a declared exception.
pub(crate) fn table_name(name: &[u8]) -> Result<TableName> {
    TableName::parse(&String::from_utf8_lossy(name)).map_err(|_| Failure::Internal)
}

/// A range of timestamps.
///
/// # Errors
/// As in HBase, an invalid range is not a declared exception.
pub(crate) fn time_range(from: i64, to: i64) -> Result<TimeRange> {
    if from < 0 || to < from { Err(Failure::Internal) } else { Ok(TimeRange { from, to }) }
}

/// A maximum number of versions.
pub(crate) fn versions(count: i32) -> Result<u32> {
    let count = u32::try_from(count).ok().filter(|count| *count > 0);
    count.ok_or_else(|| Failure::io("versions must be positive", true))
}

/// The filter in HBase's filter language.
///
/// # Errors
/// As in HBase, an invalid filter is not a declared exception.
pub(crate) fn filter(text: &[u8]) -> Result<Filter> {
    cell::filter::language::parse(text).map_err(|_| Failure::Internal)
}

/// Whether a scan also returns deleted cells.
pub(crate) fn is_raw(attributes: &OperationAttributes) -> bool {
    attributes.get(RAW_ATTRIBUTE).is_some_and(|value| value.first().is_some_and(|byte| *byte != 0))
}

/// Whether a scan reads one row: as in HBase, if its start and stop rows are equal.
pub(crate) fn is_one_row(start: Option<&Bytes>, stop: Option<&Bytes>) -> bool {
    start.is_some_and(|start| !start.is_empty()) && start == stop
}

/// Checks the length of a row key.
pub(crate) fn check_row(row: &[u8]) -> Result<()> {
    match row.len() {
        0 => Err(Failure::illegal("Row length is 0")),
        len if len > ROW_LEN_MAX => Err(Failure::illegal(format!("Row length {len} is > {ROW_LEN_MAX}"))),
        _ => Ok(()),
    }
}

/// A change of one row that is assembled cell by cell.
pub(crate) struct RowChange {
    mutation: Mutation,
}

impl RowChange {
    /// A change without cells. Without further cells, a delete removes all cells of the row up to
    /// `timestamp`.
    pub(crate) fn new(kind: MutationKind, row: &Bytes, timestamp: i64) -> Result<RowChange> {
        check_row(row)?;
        check_timestamp(timestamp)?;
        let mutation = match kind {
            MutationKind::Put => Mutation::put(row.clone(), Vec::new()),
            MutationKind::Delete => Mutation::delete(row.clone(), Vec::new()),
            MutationKind::Increment => Mutation::increment(row.clone(), Vec::new()),
            MutationKind::Append => Mutation::append(row.clone(), Vec::new()),
        };
        Ok(RowChange { mutation: Mutation { timestamp, ..mutation } })
    }

    pub(crate) fn with_attributes(mut self, attributes: &OperationAttributes) -> RowChange {
        let ttl = attributes.get(TTL_ATTRIBUTE).and_then(|value| value[..].try_into().ok());
        self.mutation.ttl_ms = ttl.map(i64::from_be_bytes);
        self
    }

    pub(crate) fn set_durability(&mut self, durability: Durability) {
        self.mutation.durability = durability;
    }

    /// Whether the increment or append returns the new cells.
    pub(crate) fn set_returns_results(&mut self, returns: bool) {
        self.mutation.return_results = returns;
    }

    /// Adds a cell, at the time of the change unless `timestamp` is set.
    pub(crate) fn add(
        &mut self,
        (family, qualifier): (&[u8], &[u8]),
        timestamp: Option<i64>,
        kind: CellType,
        value: &[u8],
    ) -> Result<()> {
        let timestamp = timestamp.unwrap_or(self.mutation.timestamp);
        check_timestamp(timestamp)?;
        if family.len() > FAMILY_LEN_MAX {
            return Err(Failure::illegal("Family name is too long"));
        }
        let cell = KeyValue::new(&self.mutation.row, family, qualifier, timestamp, kind, value);
        self.mutation.cells.push(cell);
        Ok(())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.mutation.cells.is_empty()
    }

    pub(crate) fn finish(self) -> Mutation {
        self.mutation
    }
}

fn check_timestamp(timestamp: i64) -> Result<()> {
    if timestamp < 0 {
        return Err(Failure::illegal(format!("Timestamp cannot be negative. ts={timestamp}")));
    }
    Ok(())
}

/// The condition on a column's value. Without a value, the column must not exist.
pub(crate) fn condition(
    row: &Bytes,
    (family, qualifier): (&Bytes, &Bytes),
    operator: CompareOp,
    value: Option<Bytes>,
) -> Condition {
    let operator = if value.is_some() { operator } else { CompareOp::Equal };
    let test = ColumnTest {
        family: family.clone(),
        qualifier: qualifier.clone(),
        operator,
        value: value.unwrap_or_default(),
    };
    Condition { row: row.clone(), time_range: TimeRange::ALL, test: Test::Column(test) }
}

/// An argument error of a method that does not declare one.
pub(crate) fn undeclared(failure: Failure) -> Failure {
    match failure {
        Failure::Argument(_) => Failure::Internal,
        other => other,
    }
}
