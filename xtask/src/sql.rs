//! Tasks for `sql/`, a separate workspace, which is built below this workspace's target directory.

use crate::steps::step;

const MANIFEST: [&str; 2] = ["--manifest-path", "sql/Cargo.toml"];
/// A separate target directory: the crates that both workspaces use have different features in
/// each.
const TARGET: [&str; 2] = ["--target-dir", "target/sql"];
const SERVERS: [&str; 4] = ["--grampus", "target/debug/grampus", "--sql", "target/sql/debug/grampus-sql"];
/// Few rows: debug builds are slow.
const FILES: [&str; 4] = ["--rows", "30000", "--kills", "4"];
/// Random queries, the same ones in every run.
const DUCKDB: [&str; 4] = ["--queries", "60", "--seed", "7"];

/// Runs its tests, and compares its results through a server: by psql with SQLite, exports with
/// imports, and random queries with DuckDB.
pub fn test() -> Result<(), String> {
    cargo("tests of SQL", &["test", "--locked"], &[])?;
    // `cargo test` does not build the binary that the comparisons start.
    cargo("the binary of SQL", &["build", "--locked"], &[])?;
    step("SQL by psql compared with SQLite", &[&["compat/sql/run"][..], &SERVERS].concat())?;
    step("exports and imports", &[&["compat/sql/files"][..], &FILES, &SERVERS].concat())?;
    step("random SQL compared with DuckDB", &[&["compat/duckdb/run"][..], &DUCKDB, &SERVERS].concat())
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
