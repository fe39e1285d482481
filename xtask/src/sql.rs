//! What must hold of `sql/`, a workspace of its own, which is built below this one's target directory.

use crate::steps::step;

const MANIFEST: [&str; 2] = ["--manifest-path", "sql/Cargo.toml"];
/// Apart from the other workspace's: the crates that both use are built with other features in each.
const TARGET: [&str; 2] = ["--target-dir", "target/sql"];
const SERVERS: [&str; 4] = ["--grampus", "target/debug/grampus", "--sql", "target/sql/debug/grampus-sql"];
/// Random queries, the same ones at every run.
const DUCKDB: [&str; 4] = ["--queries", "60", "--seed", "7"];

/// Its tests, and its answers through a server: by psql beside SQLite's, at random beside DuckDB's.
pub fn test() -> Result<(), String> {
    cargo("tests of SQL", &["test", "--locked"], &[])?;
    // The tests are a binary of their own, and do not need the one that serves.
    cargo("the binary of SQL", &["build", "--locked"], &[])?;
    step("SQL by psql beside SQLite", &[&["compat/sql/run"][..], &SERVERS].concat())?;
    step("random SQL beside DuckDB", &[&["compat/duckdb/run"][..], &DUCKDB, &SERVERS].concat())
}

pub fn format() -> Result<(), String> {
    step("format of SQL", &[&["cargo", "fmt"][..], &MANIFEST, &["--check"]].concat())
}

pub fn lints() -> Result<(), String> {
    let options = ["clippy", "--all-targets", "--locked", "--quiet"];
    cargo("lints of SQL", &options, &["--", "--deny", "warnings"])
}

fn cargo(title: &str, command: &[&str], rest: &[&str]) -> Result<(), String> {
    step(title, &[&["cargo"][..], command, &MANIFEST, &TARGET, rest].concat())
}
