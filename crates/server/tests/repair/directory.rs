//! Commands of a server on a directory, and access to the files in the directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::common::{Server, grampus, run, text};

/// Maximum wait for an expected change.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(60);

/// Runs commands in the server's shell and returns the output. They must succeed.
pub fn shell(server: &Server, commands: &str) -> String {
    let output = server.shell(commands);
    let shown = text(&output.stdout);
    assert!(output.status.success(), "{commands}: {shown}\n{}", server.errors());
    shown
}

/// Runs `grampus repair` and returns the output. It must succeed.
pub fn repair(server: &Server, arguments: &[&str]) -> String {
    let offset = server.offset.to_string();
    let output = run(grampus().arg("repair").args(arguments).args(["--port-offset", &offset]));
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// The rows of a table as `row=value`.
pub fn rows(server: &Server, table: &str) -> Vec<String> {
    let shown = shell(server, &format!("scan '{table}'"));
    let row = |line: &str| {
        let (row, rest) = line.trim().split_once(' ')?;
        Some(format!("{row}={}", rest.split_once("value=")?.1))
    };
    shown.lines().filter_map(row).collect()
}

/// Polls until `done` returns true.
pub fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + CHANGE_TIMEOUT;
    while !done() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The region directories of a table in the default namespace.
pub fn region_dirs(data: &Path, table: &str) -> Vec<PathBuf> {
    let dir = data.join("data/default").join(table);
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let is_region = |name: &str| name.len() == 32 && !name.starts_with('.');
    let mut dirs: Vec<PathBuf> = entries
        .filter(|entry| is_region(entry.file_name().to_str().unwrap()))
        .map(|entry| entry.path())
        .collect();
    dirs.sort();
    dirs
}

/// All files in a directory and its subdirectories.
pub fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap()) {
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(files(&entry.path())),
            false => found.push(entry.path()),
        }
    }
    found.sort();
    found
}

/// Copies a directory.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(|entry| entry.unwrap()) {
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to),
            false => fs::copy(entry.path(), to).map(|_| ()).unwrap(),
        }
    }
}

/// Flips one bit in a file, at a quarter of its length.
pub fn damage(file: &Path) {
    let mut bytes = fs::read(file).unwrap();
    let middle = bytes.len() / 4;
    bytes[middle] ^= 1;
    fs::write(file, bytes).unwrap();
}
