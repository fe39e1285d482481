//! The exceptions that the master answers with, in HBase's words.

use cell::schema::TableName;
use wire::exception::{JavaException, class};
use wire::meta::TableState;

/// There is such a table already.
pub fn table_exists(table: &TableName) -> JavaException {
    JavaException::new(class::TABLE_EXISTS, table.to_string())
}

/// There is no such table.
pub fn table_not_found(table: &TableName) -> JavaException {
    JavaException::new(class::TABLE_NOT_FOUND, table.to_string())
}

/// The table would have to be enabled to be disabled.
pub fn table_not_enabled(table: &TableName) -> JavaException {
    JavaException::new(class::TABLE_NOT_ENABLED, table.to_string())
}

/// The table would have to be disabled to be deleted.
pub fn not_disabled(table: &TableName, state: TableState) -> JavaException {
    JavaException::new(class::TABLE_NOT_DISABLED, format!("Not DISABLED; {}", table_and_state(table, state)))
}

/// The table would have to be disabled to be enabled.
pub fn table_not_disabled(table: &TableName, state: TableState) -> JavaException {
    JavaException::new(class::TABLE_NOT_DISABLED, table_and_state(table, state))
}

/// There is no such namespace.
pub fn namespace_not_found(namespace: &str) -> JavaException {
    JavaException::new(class::NAMESPACE_NOT_FOUND, namespace)
}

/// There is no such snapshot.
pub fn no_such_snapshot(name: &str) -> JavaException {
    JavaException::new(
        class::SNAPSHOT_DOES_NOT_EXIST,
        format!("Snapshot '{name}' doesn't exist on the filesystem"),
    )
}

fn table_and_state(table: &TableName, state: TableState) -> String {
    format!("tableName={table}, state={}", format!("{state:?}").to_uppercase())
}

/// The schema of a request is no table.
pub fn bad_schema(error: proto::convert::Invalid) -> JavaException {
    JavaException::do_not_retry(error.to_string())
}
