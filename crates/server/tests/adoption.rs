//! `grampus adopt` and `grampus release` on a root directory that a crashed HBase 2.5.10 left.
#![allow(clippy::disallowed_methods, reason = "directories as users have them")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use common::{Server, TempDir, free_offset, grampus, run, text, unpack};

/// The exit code if something in the directory prevents the operation.
const REFUSED: i32 = 3;
/// The exit code if a living HBase may use the directory.
const OWNED: i32 = 4;

/// Runs a command on a directory. Returns its output.
fn command(name: &str, data: &Path, arguments: &[&str], code: i32) -> String {
    let output = run(grampus().arg(name).arg(data).args(arguments));
    let (shown, errors) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{name} {arguments:?}: {shown}{errors}");
    shown + &errors
}

fn adopt(data: &Path, arguments: &[&str], code: i32) -> String {
    command("adopt", data, &[&["--watch", "1"][..], arguments].concat(), code)
}

fn shell(server: &Server, commands: &str) -> String {
    let output = server.shell(commands);
    assert!(output.status.success(), "{commands}: {}", text(&output.stdout));
    text(&output.stdout)
}

/// The time between two questions to a server.
const PAUSE: Duration = Duration::from_millis(100);

/// The names and contents of all files, without locks.
fn tree(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut pending = vec![dir.to_path_buf()];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
            match entry.file_type().unwrap().is_dir() {
                true => pending.push(entry.path()),
                false => found.push((entry.path(), fs::read(entry.path()).unwrap())),
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_directory_is_checked_adopted_served_and_released() {
    let dir = TempDir::new();
    let data = unpack(&dir, "rootdir-live");
    let before = tree(&data);
    // A server does not start on it, and names the command to use.
    let offset = free_offset().to_string();
    let refused = run(grampus().args(["start", "--port-offset", &offset, "--data"]).arg(&data));
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("grampus adopt"), "{}", text(&refused.stderr));
    let shown = adopt(&data, &["--check"], 0);
    assert!(!shown.contains("IS_MOB"), "{shown}");
    let disable = ["--disable", "tmob"];
    let json = adopt(&data, &["--check", "--json", disable[0], disable[1]], 0);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["adoptable"], true);
    let checked = command("fsck", &data, &[], 0);
    assert!(checked.contains("Status: OK"), "{checked}");
    assert!(tree(&data) == before, "a check changes nothing");

    adopt(&data, &disable, 0);
    assert!(!data.join("hbase.version").exists(), "HBase must not start");
    adopt(&data, &["--undo"], 0);
    assert!(tree(&data) == before, "an undo leaves no trace");

    adopt(&data, &disable, 0);
    let server = Server::start(&data);
    let shown = shell(&server, "scan 'ns1:t1'; scan 't1clone'; scan 'tfile'");
    for expected in ["only-in-wal", "only-in-wal-2", "a-row026"] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    // A procedure disables the table. It may still run when the server serves.
    let is_disabled = || shell(&server, "is_disabled 'tmob'").contains("true");
    assert!(
        (0..100).any(|_| is_disabled() || {
            std::thread::sleep(PAUSE);
            false
        }),
        "tmob is disabled"
    );
    shell(&server, "put 'tfile', 'new', 'f:q', 'by grampus'; put 'ns1:t1', 'new', 'cf1:q', 'too'");
    for (name, arguments) in [("release", &["--to", "2.5"][..]), ("fsck", &[])] {
        let running = command(name, &data, arguments, REFUSED);
        assert!(running.contains("in use by another grampus"), "{name}: {running}");
    }
    server.kill();
    let checked = command("fsck", &data, &["--quick"], 0);
    assert!(checked.contains("Status: OK"), "{checked}");
    let shown = adopt(&data, &["--undo"], REFUSED);
    assert!(shown.contains("grampus release"), "{shown}");
    let released = command("release", &data, &["--to", "2.5"], 0);
    assert!(released.contains("one of HBase again"), "{released}");
    let own: Vec<String> = fs::read_dir(&data)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("grampus"))
        .collect();
    assert_eq!(own, [""; 0]);

    // The directory can be adopted again, with what was written.
    adopt(&data, &disable, 0);
    let server = Server::start(&data);
    let shown = shell(
        &server,
        "scan 'tfile'; get 'ns1:t1', 'new'; get 'ns1:t1', 'unflushed-1'; enable 'tmob'; scan 'tmob'",
    );
    let in_mob_file = "B".repeat(300);
    for expected in ["by grampus", "too", "only-in-wal", &in_mob_file] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    assert!(server.stop().success());
}

#[test]
fn signs_of_a_living_hbase_are_found() {
    let dir = TempDir::new();
    let data = unpack(&dir, "rootdir-live");
    let logs = fs::read_dir(data.join("WALs")).unwrap().next().unwrap().unwrap().path();
    let log = fs::read_dir(logs).unwrap().next().unwrap().unwrap().path();
    let open = fs::OpenOptions::new().append(true).open(log).unwrap();
    let mut writer = Command::new("sleep").arg("60").stdout(open).spawn().unwrap();
    let arguments = ["--disable", "tmob"];
    let shown = adopt(&data, &arguments, OWNED);
    writer.kill().unwrap();
    writer.wait().unwrap();
    assert!(shown.contains(&format!("process {} has ", writer.id())), "{shown}");
    assert!(data.join("hbase.version").exists() && !data.join("grampus.lock").exists());
    adopt(&data, &arguments, 0);
}

#[test]
fn a_directory_that_grampus_created_is_released_too() {
    let dir = TempDir::new();
    let data = dir.join("data");
    let server = Server::start(&data);
    shell(&server, "create 't', 'f'; put 't', 'r', 'f:q', 'v'");
    assert!(server.stop().success());
    command("release", &data, &["--to", "2.6"], 0);
    let shown = adopt(&data, &["--check"], 0);
    assert!(shown.contains("hbase:namespace") && shown.contains("ENABLED"), "{shown}");
}
