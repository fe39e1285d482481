//! `grampus migrate` without an HBase. `compat/migrate/run` has the whole path.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "a test's own files")]

mod common;

use common::{Server, TempDir, grampus, run, text};

/// The exit code and the message of a step that fails.
fn fails(arguments: &[&str]) -> String {
    let failed = run(grampus().arg("migrate").args(arguments));
    assert_eq!(failed.status.code(), Some(2), "{arguments:?}: {}", text(&failed.stdout));
    text(&failed.stderr)
}

#[test]
fn steps_need_a_started_migration() {
    let dir = TempDir::new();
    let state = dir.join("state.json");
    let state = state.to_str().unwrap();
    for step in ["copy", "status", "verify", "switch", "abort"] {
        let message = fails(&[step, "--state", state]);
        assert!(message.contains("run `grampus migrate start` first"), "{step}: {message}");
    }
    std::fs::write(state, "{}").unwrap();
    let message = fails(&["copy", "--state", state]);
    assert!(message.contains("is not a record of a migration"), "{message}");
}

#[test]
fn a_source_without_peers_is_refused_before_anything_changes() {
    let dir = TempDir::new();
    let server = Server::start(&dir.join("data"));
    let (zookeeper, state) = (server.zookeeper(), dir.join("state.json"));
    let clusters = ["--from", &zookeeper, "--to", &zookeeper];
    let empty = fails(&[&["check"], &clusters[..]].concat());
    assert!(empty.contains("has no tables of users"), "{empty}");
    server.shell("create 't', 'f'\n");
    let start = [&["start", "--state", state.to_str().unwrap()], &clusters[..]].concat();
    let message = fails(&start);
    assert!(message.starts_with("grampus: HBase at "), "{message}");
    assert!(!state.exists());
    let missing = fails(&[&start[..], &["none"]].concat());
    assert!(missing.contains("table none does not exist"), "{missing}");
    let name = fails(&[&start[..], &["--peer", "a-b"]].concat());
    assert!(name.contains("must not be empty, and not contain"), "{name}");
}
