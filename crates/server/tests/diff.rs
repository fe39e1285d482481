//! `grampus diff`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::process::Output;

use common::{Server, TempDir, grampus, run, text};

const TABLES: &str = "create 'one', {NAME => 'f', VERSIONS => 3}, SPLITS => ['m']
create 'two', {NAME => 'f', VERSIONS => 3}, SPLITS => ['g', 't']
create 'other', {NAME => 'f', VERSIONS => 3}, 'g'
";

/// A put of the same cell into both tables.
fn put_both(row: &str, value: &str, timestamp: u32) -> String {
    let put = |table| format!("put '{table}', '{row}', 'f:q', '{value}', {timestamp}\n");
    put("one") + &put("two")
}

fn diff(server: &Server, arguments: &[&str]) -> Output {
    let zookeeper = server.zookeeper();
    run(grampus().args(["diff", "--zookeeper", &zookeeper]).args(arguments))
}

#[test]
fn tables_are_compared_cell_by_cell() {
    let dir = TempDir::new();
    let server = Server::start(&dir.join("data"));
    let rows: String = ["a", "h", "m", "z"].map(|row| put_both(row, "same", 1)).concat();
    server.shell(&(TABLES.to_owned() + &rows));
    let equal = diff(&server, &["one", "two"]);
    assert_eq!((equal.status.code(), text(&equal.stdout).as_str()), (Some(0), "equal: 4 rows, 4 cells\n"));

    server.shell("put 'two', 'h', 'f:q', 'same', 0\nput 'one', 'z', 'f:q', 'changed', 1\nput 'two', 'zz', 'f:q', 'x', 9\n");
    let differs = diff(&server, &["one", "two"]);
    let lines: Vec<String> = text(&differs.stdout).lines().map(|line| words(line).join(" ")).collect();
    let expected = [
        "row column timestamp type one two",
        "h f:q 0 Put (missing) same",
        "z f:q 1 Put changed same",
        "zz f:q 9 Put (missing) x",
        "3 of 5 rows differ: 1 cells with other values, 0 cells only in one, 2 only in two",
    ];
    assert_eq!((differs.status.code(), lines), (Some(1), expected.map(str::to_owned).to_vec()));

    for selection in
        [&["--stop-row", "h"][..], &["--start-row", "i", "--stop-row", "z"], &["--start-time", "10"]]
    {
        let part = diff(&server, &[&["one", "two"], selection].concat());
        assert_eq!(part.status.code(), Some(0), "{selection:?}: {}", text(&part.stdout));
    }
    let newest = diff(&server, &["one", "two", "--versions", "1", "--stop-row", "z", "--json"]);
    let newest: serde_json::Value = serde_json::from_slice(&newest.stdout).unwrap();
    assert_eq!((&newest["equal"], &newest["rows"]), (&true.into(), &3.into()));
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

#[test]
fn delete_markers_count_only_if_requested() {
    let dir = TempDir::new();
    let server = Server::start(&dir.join("data"));
    server.shell(&(TABLES.to_owned() + &put_both("a", "x", 1) + "delete 'two', 'a', 'f:none', 5\n"));
    assert_eq!(diff(&server, &["one", "two"]).status.code(), Some(0));
    let raw = diff(&server, &["one", "two", "--raw"]);
    assert_eq!(raw.status.code(), Some(1));
    assert!(text(&raw.stdout).contains("0 cells only in one, 1 only in two"), "{}", text(&raw.stdout));
}

#[test]
fn tables_that_cannot_be_compared_are_named() {
    let dir = TempDir::new();
    let server = Server::start(&dir.join("data"));
    server.shell(TABLES);
    for (arguments, reason) in [
        (&["one"][..], "one cannot be compared with itself"),
        (&["one", "none"], "none: table none does not exist"),
        (&["one", "other"], "one has no family g: choose common ones with --families"),
        (&["one", "other", "--families", "x"], "one has no family x"),
    ] {
        let failed = diff(&server, arguments);
        assert_eq!(failed.status.code(), Some(2), "{arguments:?}");
        assert!(text(&failed.stderr).contains(reason), "{arguments:?}: {}", text(&failed.stderr));
    }
    assert_eq!(diff(&server, &["one", "other", "--families", "f"]).status.code(), Some(0));
}
