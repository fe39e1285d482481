//! The coprocessors that a table names in its attributes `coprocessor$N`:
//! `path|class|priority|arguments`.
//!
//! Java classes are never loaded. Some of HBase's endpoints are built in, under their class names.

use bytes::Bytes;

use crate::schema::TableDescriptor;

/// The endpoint that changes several rows of a region atomically.
pub const MULTI_ROW_MUTATION: &str = "org.apache.hadoop.hbase.coprocessor.MultiRowMutationEndpoint";

/// The endpoint that aggregates columns of a region. Every region has it, even if the table does
/// not name it.
pub const AGGREGATE: &str = "org.apache.hadoop.hbase.coprocessor.AggregateImplementation";

/// HBase's example endpoint, which counts rows and cells. Every region has it, even if the table
/// does not name it.
pub const ROW_COUNT: &str = "org.apache.hadoop.hbase.coprocessor.example.RowCountEndpoint";

/// All built-in endpoints.
pub const BUILT_IN: &[&str] = &[MULTI_ROW_MUTATION, AGGREGATE, ROW_COUNT];

const PREFIX: &[u8] = b"coprocessor$";

/// Names and values of `table`'s attributes that name coprocessors.
pub fn attributes(table: &TableDescriptor) -> impl Iterator<Item = (&Bytes, &Bytes)> {
    table.attributes.iter().filter(|(name, _)| name.starts_with(PREFIX))
}

/// The class in an attribute's value; `None` if the value names a file to load.
pub fn built_in_class(value: &[u8]) -> Option<&str> {
    let mut parts = std::str::from_utf8(value).ok()?.split('|').map(str::trim);
    let (path, class) = (parts.next()?, parts.next()?);
    path.is_empty().then_some(class)
}

/// Whether `table` names `class`.
pub fn is_named(table: &TableDescriptor, class: &str) -> bool {
    attributes(table).any(|(_, value)| built_in_class(value) == Some(class))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_is_between_the_first_two_bars() {
        assert_eq!(built_in_class(b"|a.B|1073741823|"), Some("a.B"));
        assert_eq!(built_in_class(b" | a.B |"), Some("a.B"));
        assert_eq!(built_in_class(b"hdfs:///x.jar|a.B|1|"), None);
        assert_eq!(built_in_class(b"a.B"), None);
        assert_eq!(built_in_class(b"\xff|a.B|"), None);
    }
}
