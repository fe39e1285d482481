//! Time limits for all reads or all writes of a table together. An exceeded limit is reported but
//! does not count as a failure.

use std::time::Duration;

use super::report::{OperationKind, Report};

/// A time limit for one table and one kind of operation.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Limit {
    table: String,
    operation: OperationKind,
    ms: u64,
}

impl Limit {
    pub(super) fn for_reads(table: &str, ms: u64) -> Limit {
        Limit { table: table.to_string(), operation: OperationKind::Read, ms }
    }

    pub(super) fn for_writes(table: &str, ms: u64) -> Limit {
        Limit { table: table.to_string(), operation: OperationKind::Write, ms }
    }

    /// Prints whether the limit was kept.
    pub(super) fn report(&self, report: &Report) {
        let Limit { table, operation, ms } = self;
        report.line(&match report.read_or_write_time(table, *operation) {
            None => format!("ERROR: {operation} operation for {table} failed"),
            Some(took) if took > Duration::from_millis(*ms) => {
                let took = took.as_millis();
                format!(
                    "ERROR: {operation} operation for {table} took {took}ms, longer than its timeout of {ms}ms"
                )
            }
            Some(took) => {
                format!("{operation} operation for {table} took {}ms, its timeout is {ms}ms", took.as_millis())
            }
        });
    }
}

/// Parses `table=milliseconds`.
pub(super) fn limit(text: &str) -> Result<(String, u64), String> {
    let (table, ms) = text.split_once('=').ok_or("expected TABLE=MILLISECONDS")?;
    let ms = ms.parse().map_err(|_| format!("{ms} is not a number of milliseconds"))?;
    Ok((table.to_string(), ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_table_and_a_time() {
        assert_eq!(limit("n:t=500"), Ok(("n:t".to_string(), 500)));
        assert!(limit("t").is_err() && limit("t=soon").is_err());
    }
}
