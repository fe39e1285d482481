//! `grampus snapshot`, and snapshots of layout version 1 that HBase 2.5.10 wrote, in a server.
#![allow(clippy::disallowed_methods, reason = "directories as users have them")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;

use common::{Server, TempDir, grampus, run, text, unpack};

/// Runs `grampus snapshot`. Returns what it printed to both outputs.
fn snapshot(arguments: &[&str], code: i32) -> (String, String) {
    let output = run(grampus().arg("snapshot").args(arguments));
    let (shown, errors) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {shown}{errors}");
    (shown, errors)
}

#[test]
fn snapshots_of_a_directory_are_listed_and_printed_with_the_options_of_hbase() {
    let dir = TempDir::new();
    let root = unpack(&dir, "snapshots");
    let path = root.to_str().unwrap();
    let (list, _) = snapshot(&[path], 0);
    assert!(
        list.starts_with("SNAPSHOT             | CREATION TIME        | TTL IN SEC           | TABLE NAME\n")
    );
    assert_eq!(list.lines().count(), 16, "{list}");
    assert!(list.contains("plain_v1             |  2026-"), "{list}");
    let uri = format!("file://{path}");
    assert_eq!(snapshot(&["-remote-dir", &uri, "-list-snapshots"], 0).0, list);
    let (printed, _) = snapshot(&[path, "-snapshot", "plain_v1", "-files", "-stats", "-size-in-bytes"], 0);
    assert!(printed.contains("4 HFiles (2 in archive, 0 in mob storage), total size 19550 ("), "{printed}");
    assert!(!printed.contains("Table Descriptor"), "{printed}");
    let (printed, _) = snapshot(&[path, "--snapshot", "mob", "--schema"], 0);
    assert!(printed.contains("'tmob', {TABLE_ATTRIBUTES => ") && !printed.contains("HFiles ("), "{printed}");
    let (printed, errors) = snapshot(&[path, "-snapshot", "nothing"], 1);
    assert!(printed.is_empty() && errors.contains("Snapshot 'nothing' not found!"), "{printed}{errors}");
    assert!(snapshot(&["/nothing/there"], 1).1.contains("/nothing/there: not a directory"));
    snapshot(&[path, "-files"], 2);
    snapshot(&[], 2);
}

/// Copies the snapshots and their files to the directory of a stopped server, as ExportSnapshot
/// does.
fn copy_snapshots(root: &Path, data: &Path) {
    for (from, to) in
        [(".hbase-snapshot", "."), ("data", "archive"), ("archive/data", "archive"), ("mobdir", ".")]
    {
        fs::create_dir_all(data.join(to)).unwrap();
        let copied = Command::new("cp").arg("-r").arg(root.join(from)).arg(data.join(to)).status().unwrap();
        assert!(copied.success(), "{from}");
    }
}

#[test]
fn tables_are_cloned_and_restored_from_directories_of_layout_version_1() {
    let dir = TempDir::new();
    let (root, data) = (unpack(&dir, "snapshots"), dir.join("data"));
    assert!(Server::start(&data).stop().success());
    copy_snapshots(&root, &data);
    let server = Server::start(&data);
    let run = |commands: &str| {
        let output = server.shell(commands);
        assert!(output.status.success(), "{commands}: {}", text(&output.stdout));
        text(&output.stdout)
    };
    let listed = run("list_snapshots\n");
    assert!(listed.contains("plain_v1") && listed.contains("clone_v1"), "{listed}");
    run("create_namespace 'ns'\n");
    for (name, rows) in [("plain", 20), ("disabled", 20), ("split", 30), ("mob", 5), ("clone", 20)] {
        let scans = [name.to_string(), format!("{name}_v1")].map(|snapshot| {
            let table = format!("c_{snapshot}");
            let scanned = run(&format!("clone_snapshot '{snapshot}', '{table}'\nscan '{table}'\n"));
            assert!(scanned.contains(&format!("{rows} row")), "{snapshot}: {scanned}");
            let lines = scanned.lines().filter(|line| line.contains("column="));
            lines.map(str::to_string).collect::<Vec<String>>()
        });
        assert!(!scans[0].is_empty() && scans[0] == scans[1], "{name}: {scans:?}");
    }
    let restored =
        run("clone_snapshot 'disabled', 't1'\ndisable 't1'\nrestore_snapshot 'plain_v1'\nenable 't1'\n\
         get 't1', 'row00', 'a:q'\ndelete_snapshot 'plain_v1'\nlist_snapshots\n");
    assert!(restored.contains("value=first0") && !restored.contains("plain_v1 "), "{restored}");
    assert!(server.stop().success());
}
