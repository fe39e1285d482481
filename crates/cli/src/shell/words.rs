//! How failures are told: in the words of HBase's shell where it has its own, else in those of the server.

use client::{Client, Error};
use wire::exception::class;

use super::arguments::table_name;
use super::error::ShellError;
use super::parser::Statement;

/// What is printed behind `ERROR:`.
pub(crate) async fn message(client: &Client, statement: &Statement, error: ShellError) -> String {
    let ShellError::Client(error) = error else { return error.to_string() };
    // HBase's shell too names the first argument, whatever the server named.
    let first = statement.values.first().and_then(|value| value.string()).unwrap_or_default();
    if error.is_class(class::NO_SUCH_COLUMN_FAMILY)
        && let Some(names) = column_names(client, &first).await
    {
        return format!("Unknown column family! Valid column names: {names}");
    }
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
    if is_class(class::NAMESPACE_NOT_FOUND) {
        let namespace = first.split(':').next().unwrap_or_default();
        return format!("Unknown namespace {namespace}!");
    }
    error.to_string()
}

/// The families of a table, as HBase's shell lists them.
async fn column_names(client: &Client, table: &str) -> Option<String> {
    let table = table_name(table.as_bytes()).ok()?;
    let descriptor = client.admin().describe(&table).await.ok()?;
    let names = descriptor.families.keys().map(|family| format!("{}:*", super::text::binary(family)));
    Some(names.collect::<Vec<_>>().join(", "))
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
