//! How failures are told: in the words of HBase's shell where it has its own, else in those of the server.

use client::Error;
use wire::exception::class;

use super::error::ShellError;
use super::parser::Statement;

/// What is printed behind `ERROR:`.
pub(crate) fn message(statement: &Statement, error: ShellError) -> String {
    let ShellError::Client(error) = error else { return error.to_string() };
    // HBase's shell too names the first argument, whatever the server named.
    let first = statement.values.first().and_then(|value| value.string()).unwrap_or_default();
    in_hbases_words(&error, &first)
}

fn in_hbases_words(error: &Error, first: &str) -> String {
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
    use wire::exception::JavaException;

    use super::*;

    #[test]
    fn known_failures_have_hbases_words() {
        let table = TableName::parse("n:t").unwrap();
        let check = |error: Error, expected: &str| assert_eq!(in_hbases_words(&error, "n:t"), expected);
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
