//! How long all reads of a table, or all writes, may take together. Who takes longer is told of, and has not failed.

use std::time::Duration;

use super::report::{Report, Sort};

/// A table, what is done with it, and for how long.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Limit {
    table: String,
    sort: Sort,
    ms: u64,
}

impl Limit {
    pub(super) fn of_reads(table: &str, ms: u64) -> Limit {
        Limit { table: table.to_string(), sort: Sort::Read, ms }
    }

    pub(super) fn of_writes(table: &str, ms: u64) -> Limit {
        Limit { table: table.to_string(), sort: Sort::Write, ms }
    }

    /// Says how it went.
    pub(super) fn tell(&self, report: &Report) {
        let Limit { table, sort, ms } = self;
        report.line(&match report.took(table, *sort) {
            None => format!("ERROR: {sort} operation for {table} failed"),
            Some(took) if took > Duration::from_millis(*ms) => {
                let took = took.as_millis();
                format!(
                    "ERROR: {sort} operation for {table} took {took}ms, longer than its timeout of {ms}ms"
                )
            }
            Some(took) => {
                format!("{sort} operation for {table} took {}ms, its timeout is {ms}ms", took.as_millis())
            }
        });
    }
}

/// Reads `table=milliseconds`.
pub(super) fn limit(text: &str) -> Result<(String, u64), String> {
    let (table, ms) = text.split_once('=').ok_or("write TABLE=MILLISECONDS")?;
    let ms = ms.parse().map_err(|_| format!("{ms} is no number of milliseconds"))?;
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
