//! Logs in a separate directory (`hbase.wal.dir`).
#![allow(clippy::disallowed_methods, reason = "directories as users have them")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::path::Path;

use common::{Server, TempDir, free_offset, grampus, run, text};

#[test]
fn logs_are_in_their_own_directory_and_survive_a_kill() {
    let dir = TempDir::new();
    let (data, logs) = (dir.join("data"), dir.join("logs"));
    let option = format!("hbase.wal.dir={}", logs.display());
    let server = Server::start_with(&data, &["--set", &option]);
    let made = server.shell("create 't', 'f'\nput 't', 'r', 'f:q', 'kept'\n");
    assert!(made.status.success(), "{}", text(&made.stderr));
    server.kill();

    for name in ["WALs", "MasterData/WALs"] {
        assert!(fs::read_dir(logs.join(name)).unwrap().count() > 0, "{name}");
        assert!(!data.join(name).exists(), "{name}");
    }
    let server = Server::start_with(&data, &["--set", &option]);
    let found = text(&server.shell("get 't', 'r'\n").stdout).to_string();
    assert!(found.contains("kept"), "{found}");
    server.stop();
    assert!(logs.join("oldWALs").is_dir() && !data.join("oldWALs").exists());
}

#[test]
fn a_start_without_the_directory_of_the_logs_does_not_lose_them_silently() {
    let dir = TempDir::new();
    let (data, logs) = (dir.join("data"), dir.join("logs"));
    let server = Server::start_with(&data, &["--set", &format!("hbase.wal.dir={}", logs.display())]);
    let made = server.shell("create 't', 'f'\nput 't', 'r', 'f:q', 'kept'\n");
    assert!(made.status.success(), "{}", text(&made.stderr));
    server.kill();

    let error = refused(&["start", "--data", &data.display().to_string()]);
    assert!(error.contains("WALs"), "{error}");
}

#[test]
fn a_lost_id_is_restored_from_the_directory_of_the_logs() {
    let dir = TempDir::new();
    let (data, logs) = (dir.join("data"), dir.join("logs"));
    let option = format!("hbase.wal.dir={}", logs.display());
    Server::start_with(&data, &["--set", &option]).stop();
    let before = fs::read(data.join("hbase.id")).unwrap();

    fs::remove_file(data.join("hbase.id")).unwrap();
    Server::start_with(&data, &["--set", &option]).stop();
    assert_eq!(fs::read(data.join("hbase.id")).unwrap(), before);
}

#[test]
fn directories_that_would_mix_up_logs_are_refused() {
    let dir = TempDir::new();
    let (first, second, logs) = (dir.join("first"), dir.join("second"), dir.join("logs"));
    Server::start_with(&first, &["--set", &format!("hbase.wal.dir={}", logs.display())]).stop();

    check(&second, &logs, "the logs belong to the cluster");
    check(&second, &second.join("logs"), "it must not be below hbase.rootdir");
    let error =
        refused(&["start", "--data", &second.display().to_string(), "--set", "hbase.wal.dir=hdfs://nn/wal"]);
    assert!(error.contains("hdfs:// is not possible here"), "{error}");
}

fn check(data: &Path, logs: &Path, part: &str) {
    let option = format!("hbase.wal.dir={}", logs.display());
    let error = refused(&["start", "--data", &data.display().to_string(), "--set", &option]);
    assert!(error.contains("hbase.wal.dir") && error.contains(part), "{error}");
}

/// Standard error of a start that fails.
fn refused(arguments: &[&str]) -> String {
    let output = run(grampus().args(arguments).args(["--port-offset", &free_offset().to_string()]));
    assert_eq!(output.status.code(), Some(1));
    text(&output.stderr).to_string()
}
