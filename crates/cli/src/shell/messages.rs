//! Messages of failures: those of HBase's shell if it has its own, else the server's.

use client::Error;
use proto::exception::class;

use super::error::ShellError;
use super::parser::Statement;

/// The text after `ERROR:`.
pub(crate) fn message(statement: &Statement, error: ShellError) -> String {
    let ShellError::Client(error) = error else { return error.to_string() };
    // HBase's shell too names the first argument, regardless of what the server named.
    let first = statement.values.first().and_then(|value| value.string()).unwrap_or_default();
    hbase_message(&error, &first)
}

fn hbase_message(error: &Error, first: &str) -> String {
    let is_class = |java_class| error.is_class(java_class);
    if matches!(error, Error::TableNotFound(_)) || is_class(class::TABLE_NOT_FOUND) {
        return format!("Unknown table {first}!");
    }
    if is_class(class::TABLE_EXISTS) {
        return format!("Table already exists: {first}!");
    }
    if matches!(error, Error::TableNotEnabled(_)) || is_class(class::TABLE_NOT_ENABLED) {
        return format!("Table {first} is disabled!");
    }
    if is_class(class::SNAPSHOT_DOES_NOT_EXIST) {
        return format!("Unknown snapshot {first}!");
    }
    if is_class(class::NAMESPACE_NOT_FOUND) {
        let namespace = first.split(':').next().unwrap_or_default();
        return format!("Unknown namespace {namespace}!");
    }
    error.to_string()
}

#[cfg(test)]
mod tests {
    use cell::schema::TableName;
    use proto::exception::JavaException;

    use super::*;

    #[test]
    fn known_failures_have_hbases_messages() {
        let table = TableName::parse("n:t").unwrap();
        let check = |error: Error, expected: &str| assert_eq!(hbase_message(&error, "n:t"), expected);
        check(Error::TableNotFound(table.clone()), "Unknown table n:t!");
        check(JavaException::table_not_found(&table).into(), "Unknown table n:t!");
        check(JavaException::table_exists(&table).into(), "Table already exists: n:t!");
        check(JavaException::table_not_enabled(&table).into(), "Table n:t is disabled!");
        check(JavaException::new(class::NAMESPACE_NOT_FOUND, "n").into(), "Unknown namespace n!");
        let last = Box::new(Error::from(JavaException::table_exists(&table)));
        check(Error::Exhausted { attempts: 3, last }, "Table already exists: n:t!");
        check(JavaException::io("disk").into(), "java.io.IOException: disk");
    }
}
