//! Exports of root directories that HBase 2.5.10 wrote, without a server.
#![allow(clippy::disallowed_methods, reason = "archives and exports of this machine")]

#[path = "../../../crates/adoption/tests/support/archive.rs"]
#[allow(dead_code, reason = "these tests use a part of the module")]
mod archive;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use base::env::Env;
use clap::Parser;

use super::{Place, Stored, StoredOptions};
use crate::catalog::Catalog;
use crate::export::{self, ExportArguments};
use crate::session::{self, Sender};
use crate::statements::Engine;
use crate::threads::Threads;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    export: ExportArguments,
}

/// A directory that is removed at the end of the test.
struct TestDir(PathBuf);

impl TestDir {
    fn new(name: &str) -> TestDir {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let (process, number) = (std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let dir = std::env::temp_dir().join(format!("grampus-stored-{name}-{process}-{number}"));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        TestDir(dir)
    }

    /// Writes the files of an archive to `root`.
    fn with_image(name: &str) -> TestDir {
        let dir = TestDir::new(name);
        for (path, content) in archive::unpack(name) {
            let path = dir.0.join("root").join(path);
            match content {
                None => std::fs::create_dir_all(&path).unwrap(),
                Some(content) => {
                    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                    std::fs::write(&path, content).unwrap();
                }
            }
        }
        dir
    }

    /// Runs an export to CSV, and returns its rows without the header, sorted.
    async fn export(&self, sql: &str, options: &[&str]) -> Result<Vec<String>, String> {
        let (declaration, target) = (self.0.join("declaration.sql"), self.0.join("out.csv"));
        std::fs::write(&declaration, sql).unwrap();
        let _ = std::fs::remove_file(&target);
        let root = self.0.join("root");
        let words =
            ["export", "t", path(&target), "--directory", path(&root), "--declaration", path(&declaration)];
        let line = Line::try_parse_from(words.iter().chain(options)).map_err(|error| error.to_string())?;
        let env = env();
        let stored = Arc::new(Stored::open(line.export.stored().unwrap(), &env).await?);
        let catalog = Arc::new(Catalog::new(stored.clone(), stored, env.clone()));
        let context = session::context(&catalog, 64 << 20, Sender::User).unwrap();
        let rows = export::run(&line.export, &Engine { context, catalog }, &env).await?;
        let text = std::fs::read_to_string(&target).unwrap();
        let mut lines: Vec<String> = text.lines().skip(1).map(str::to_string).collect();
        lines.sort();
        assert_eq!(lines.len() as u64, rows);
        Ok(lines)
    }
}

impl Drop for TestDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn env() -> Env {
    os::env(Arc::new(Threads(tokio::runtime::Handle::current())))
}

fn declaration(table: &str, columns: &str, options: &str) -> String {
    format!(
        "CREATE EXTERNAL TABLE t (id VARCHAR PRIMARY KEY, {columns}) STORED AS GRAMPUS LOCATION '{table}' \
         OPTIONS ('table.encoding' 'text'{options})"
    )
}

/// The rows that compat/snapshots/Snapshots.java put. The cells of the family `b` have expired, so
/// their values are empty.
fn expected(rows: usize, values: &[&str]) -> Vec<String> {
    let line = |row: usize| {
        let name = if row.is_multiple_of(2) { "row" } else { "even" };
        let value = |value: &&str| if value.is_empty() { String::new() } else { format!("{value}{row}") };
        let values: Vec<String> = values.iter().map(value).collect();
        format!("{name}{row:02},{}", values.join(","))
    };
    let mut lines: Vec<String> = (0..rows).map(line).collect();
    lines.sort();
    lines
}

#[tokio::test(flavor = "multi_thread")]
async fn snapshots_of_both_layouts_are_exported() {
    let dir = TestDir::with_image("snapshots");
    let two = |table| declaration(table, "a VARCHAR, b VARCHAR", ", 'a' 'a:q', 'b' 'b:q'");
    let one = |table| declaration(table, "q VARCHAR", ", 'q' 'f:q'");
    for (snapshot, sql, rows) in [
        ("plain", two("t1"), expected(20, &["first", ""])),
        // A later flush and compaction changed the family a.
        ("disabled", two("t1"), expected(20, &["second", ""])),
        // The regions have references to the files of a split region.
        ("split", one("ns:t2"), expected(30, &["value"])),
        ("mob", one("tmob"), expected(5, &["a value longer than the threshold"])),
        // The files are links.
        ("clone", two("tclone"), expected(20, &["first", ""])),
        ("changed", one("tchanged"), expected(3, &["value"])),
    ] {
        for name in [snapshot.to_string(), format!("{snapshot}_v1")] {
            // The last byte of a file of this table is not its own.
            let result = dir.export(&sql, &["--snapshot", &name]).await;
            match snapshot {
                "changed" => assert!(result.is_err(), "{name}: {result:?}"),
                _ => assert_eq!(result, Ok(rows.clone()), "{name}"),
            }
        }
    }
    assert_eq!(dir.export(&one("tempty"), &["--snapshot", "empty"]).await, Ok(Vec::new()));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_exported_is_refused() {
    let dir = TestDir::with_image("snapshots");
    let sql = declaration("t1", "a VARCHAR", ", 'a' 'a:q'");
    let refused = async |options: &[&str], reason: &str| {
        let error = dir.export(&sql, options).await.unwrap_err();
        assert!(error.contains(reason), "{options:?}: {error}");
    };
    refused(&["--snapshot", "nothing"], "there is no snapshot \"nothing\"").await;
    refused(&["--snapshot", "clone"], "is of table tclone, not of t1").await;
    refused(&["--snapshot", "plain", "--flushed"], "cannot be used with").await;
    // The archive has no hbase:meta.
    refused(&[], "hbase:meta has no region of table t1").await;
    let lost = declaration("tlost", "q VARCHAR", ", 'q' 'f:q'");
    let error = dir.export(&lost, &["--snapshot", "lost_v1"]).await.unwrap_err();
    assert!(error.contains("does not exist"), "{error}");
    let empty = TestDir::new("empty");
    let options = |directory: &str| {
        let place = Place { directory: directory.to_string(), config: None, settings: Vec::new() };
        StoredOptions { place, snapshot: None, flushed: false }
    };
    let error = Stored::open(options(empty.0.to_str().unwrap()), &env()).await.unwrap_err();
    assert!(error.contains("not a root directory"), "{error}");
    let error = Stored::open(options("/no/such/directory"), &env()).await.unwrap_err();
    assert_eq!(error, "there is no directory /no/such/directory");
    let error = Stored::open(options("s3a://bucket/hbase"), &env()).await.unwrap_err();
    assert!(error.contains("s3a:// is not supported"), "{error}");
    std::fs::write(dir.0.join("root/grampus.volumes"), "").unwrap();
    refused(&["--snapshot", "plain"], "storage tiers").await;
}

/// The newest value of each row in the column `cf1:q`, as the Java client saw them.
fn expected_values() -> Vec<String> {
    let text = String::from_utf8(archive::vector("expected-cells.txt")).unwrap();
    let mut values = std::collections::BTreeMap::new();
    for line in text.lines().filter(|line| line.starts_with("ns1:t1 ") && line.contains(" col=cf1:q ")) {
        let field = |name: &str| line.split(' ').find_map(|word| word.strip_prefix(name)).unwrap();
        // Versions are listed newest first.
        values.entry(field("row=").to_string()).or_insert_with(|| field("val=").to_string());
    }
    values.into_iter().map(|(row, value)| format!("{row},{value}")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_directory_is_exported_and_a_killed_one_only_on_request() {
    let sql = declaration("ns1:t1", "q VARCHAR", ", 'q' 'cf1:q'");
    let expected = expected_values();
    assert!(expected.len() > 20, "{expected:?}");
    let stopped = TestDir::with_image("rootdir-clean");
    assert_eq!(stopped.export(&sql, &[]).await.as_ref(), Ok(&expected));
    let killed = TestDir::with_image("rootdir-live");
    let error = killed.export(&sql, &[]).await.unwrap_err();
    assert!(error.contains("logs have edits of") && error.contains("--flushed"), "{error}");
    let flushed = killed.export(&sql, &["--flushed"]).await.unwrap();
    assert!(!flushed.is_empty() && flushed.len() < expected.len(), "{flushed:?}");
    assert!(flushed.iter().all(|row| expected.contains(row)), "{flushed:?}");
}
