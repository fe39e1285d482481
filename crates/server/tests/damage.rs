//! Lost or damaged disks and logs: a server reports the damage, continues where that is safe, and
//! stops in bounded time where it is not.
#![allow(clippy::disallowed_methods, reason = "files are damaged as a disk or a user might")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use common::{Server, TempDir, free_offset, grampus, run, text};

/// Time for a server on a busy machine to notice damage.
const DETECTED_WITHIN: Duration = Duration::from_secs(20);

fn shell(server: &Server, commands: &str) -> String {
    let output = server.shell(commands);
    text(&output.stdout) + &text(&output.stderr)
}

fn put_rows(server: &Server, table: &str, rows: std::ops::Range<u32>) {
    let puts: Vec<String> =
        rows.map(|row| format!("put '{table}', 'r{row:04}', 'f:q', 'value-{row}'")).collect();
    assert!(server.shell(&puts.join("; ")).status.success());
}

fn count(server: &Server, table: &str) -> usize {
    let told = shell(server, &format!("scan '{table}', {{COLUMNS => ['f:q']}}"));
    told.matches("value=value-").count()
}

/// The log of user tables with the most content.
fn log_of(data: &Path) -> PathBuf {
    let dirs = fs::read_dir(data.join("WALs")).unwrap().map(|dir| dir.unwrap().path());
    let logs = dirs.flat_map(|dir| fs::read_dir(dir).unwrap().map(|log| log.unwrap().path()));
    let logs = logs.filter(|log| log.extension().is_none_or(|suffix| suffix != "meta"));
    logs.max_by_key(|log| content_len(log)).unwrap()
}

/// Bytes up to the last nonzero one.
fn content_len(log: &Path) -> usize {
    fs::read(log).unwrap().iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1)
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < DETECTED_WITHIN, "{what} within {DETECTED_WITHIN:?}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

fn health(server: &Server) -> (bool, String) {
    let output = run(grampus().args(["health", "--port-offset", &server.offset.to_string()]));
    (output.status.success(), text(&output.stdout) + &text(&output.stderr))
}

/// Starts a server, creates a table with rows that are only in the log, and kills the server.
fn killed_with_rows(data: &Path, rows: u32) {
    let server = Server::start(data);
    shell(&server, "create 't', 'f'");
    put_rows(&server, "t", 0..rows);
    // The record of logs is written once per second.
    std::thread::sleep(Duration::from_secs(2));
    server.kill();
}

#[test]
fn a_flipped_byte_in_a_log_loses_its_edits_only_with_consent() {
    let dir = TempDir::new();
    let data = dir.join("data");
    killed_with_rows(&data, 50);
    let log = log_of(&data);
    let mut bytes = fs::read(&log).unwrap();
    let at = bytes.windows(8).position(|window| window == b"value-25").unwrap();
    bytes[at] ^= 1;
    fs::write(&log, bytes).unwrap();
    let server = Server::start_with(&data, &["--set", "hbase.hlog.split.skip.errors=true"]);
    assert_eq!(count(&server, "t"), 49);
    let errors = server.errors();
    for part in ["is damaged at", "hbase.hlog.split.skip.errors is set", "edits of a region may be lost"] {
        assert!(errors.contains(part), "'{part}' in {errors}");
    }
    // Once all readable edits are in store files, the log is moved to `corrupt`.
    shell(&server, "flush 't'");
    let kept = data.join("corrupt").join(log.file_name().unwrap());
    wait_for("the damaged log is kept below corrupt", || kept.exists());
    assert!(!log.exists());
    assert_eq!(server.stop().code(), Some(0));
    let server = Server::start(&data);
    assert_eq!(count(&server, "t"), 49);
}

#[test]
fn a_truncated_log_is_reported_with_the_possible_loss() {
    for (name, damage) in [("zeroed", 0_u8), ("emptied", 1), ("deleted", 2)] {
        let dir = TempDir::new();
        let data = dir.join("data");
        killed_with_rows(&data, 100);
        let log = log_of(&data);
        let (mut bytes, len) = (fs::read(&log).unwrap(), content_len(&log));
        match damage {
            0 => {
                bytes[len - 4096..].fill(0);
                fs::write(&log, bytes).unwrap();
            }
            1 => fs::write(&log, "").unwrap(),
            _ => fs::remove_file(&log).unwrap(),
        }
        let server = Server::start(&data);
        let errors = server.errors();
        let file = log.file_name().unwrap().to_str().unwrap();
        let line = errors.lines().find(|line| line.contains(file) && line.contains("are lost"));
        assert!(line.is_some(), "{name}: {errors}");
        if damage == 0 {
            assert!(errors.contains("without an end mark"), "{name}: {errors}");
            assert!((1..100).contains(&count(&server, "t")), "{name}");
        }
        wait_for("the health check reports the log", || health(&server).1.contains(file));
        assert!(health(&server).0, "{name}: it serves");
    }
}

#[test]
fn removal_of_the_directory_is_detected_and_the_stop_ends() {
    let dir = TempDir::new();
    let data = dir.join("data");
    let server = Server::start(&data);
    shell(&server, "create 't', 'f'");
    put_rows(&server, "t", 0..10);
    fs::rename(&data, dir.join("elsewhere")).unwrap();
    wait_for("health fails", || !health(&server).0);
    assert!(health(&server).1.contains("The data directory is lost"), "{}", health(&server).1);
    assert_eq!(count(&server, "t"), 10, "reads continue");
    let begun = Instant::now();
    assert_eq!(server.stop().code(), Some(1));
    assert!(begun.elapsed() < DETECTED_WITHIN, "{:?}", begun.elapsed());
    // All data is in the moved directory.
    let server = Server::start(&dir.join("elsewhere"));
    assert_eq!(count(&server, "t"), 10);
}

/// Starts a server under a system limit that prevents its start. Returns its one line on standard
/// error.
fn refused(limit: &str, arguments: &[&str]) -> String {
    let dir = TempDir::new();
    let mut command = std::process::Command::new("sh");
    let script = format!("{limit} && exec \"$0\" \"$@\"");
    command.arg("-c").arg(script).arg(grampus().get_program());
    command.args(["start", "--data", dir.join("data").to_str().unwrap()]);
    command.args(["--port-offset", &free_offset().to_string()]).args(arguments);
    command.process_group(0);
    let output = run(&mut command);
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{limit}: {errors}");
    assert_eq!(errors.lines().count(), 1, "{limit}: {errors}");
    errors
}

#[test]
fn too_low_limits_are_reported_in_one_line_with_the_needed_value() {
    let files = refused("ulimit -n 32", &[]);
    assert!(files.contains("the limit of open files is 32") && files.contains("needed"), "{files}");
    let addresses = refused("ulimit -v 1000000", &["--set", "grampus.memory=256 MiB"]);
    assert!(addresses.contains("the limit of address space is 976 MiB"), "{addresses}");
}

#[test]
fn a_small_memory_needs_little_address_space() {
    let dir = TempDir::new();
    let offset = free_offset().to_string();
    let mut command = std::process::Command::new("sh");
    command.arg("-c").arg("ulimit -v 4096000 && exec \"$0\" \"$@\"").arg(grampus().get_program());
    command.args(["start", "--data", dir.join("data").to_str().unwrap(), "--port-offset", &offset]);
    command.args(["--set", "grampus.memory=256 MiB"]);
    let log = dir.join("log");
    let file = fs::File::create(&log).unwrap();
    let mut child = command.stdout(file.try_clone().unwrap()).stderr(file).spawn().unwrap();
    wait_for("it is ready", || {
        let log = fs::read_to_string(&log).unwrap();
        assert!(child.try_wait().unwrap().is_none(), "{log}");
        log.contains(" is ready after ")
    });
    child.kill().unwrap();
    child.wait().unwrap();
}
