//! Runs the commands of docs/migration.md in the order of the page, on a root directory that a
//! crashed HBase 2.5.10 left. Commands that need a running HBase or HDFS are not run.
#![allow(clippy::disallowed_methods, reason = "directories as users have them")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use common::{Server, TempDir, grampus, run, text, unpack};

const PAGE: &str = "../../docs/migration.md";
/// The first words of commands that need no other system.
const OFFLINE: [&str; 4] = ["cp ", "grampus adopt ", "grampus start ", "grampus release "];
/// The page's directories.
const DIRS: [&str; 2] = ["/hbase", "/rehearsal"];
/// Commands on the page when this test was written.
const COMMANDS_MIN: usize = 9;

/// The exit code if something in the directory prevents the operation.
const REFUSED: i32 = 3;

/// The commands of the page: lines of its blocks, and code in its text.
fn commands(page: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut in_block = false;
    for line in page.lines() {
        match line.starts_with("```") {
            true => in_block = !in_block,
            false if in_block => commands.push(line.split(" # ").next().unwrap().trim().to_string()),
            // Every second part is between backquotes.
            false => commands.extend(line.split('`').skip(1).step_by(2).map(str::to_string)),
        }
    }
    let names_dir = |command: &str| command.split_whitespace().any(|word| DIRS.contains(&word));
    let is_offline = |command: &str| OFFLINE.iter().any(|first| command.starts_with(first));
    commands.retain(|command| is_offline(command) && names_dir(command));
    commands
}

/// The path of a word of a command, if it is one of the page's directories.
fn place(dir: &TempDir, word: &str) -> Option<PathBuf> {
    DIRS.contains(&word).then(|| dir.join(&word[1..]))
}

/// Runs a command in a shell.
fn shell(dir: &TempDir, command: &str) -> Output {
    let binary = grampus();
    let words = command.split_whitespace().map(|word| match (word, place(dir, word)) {
        (_, Some(path)) => path.display().to_string(),
        ("grampus", None) => binary.get_program().to_str().unwrap().to_string(),
        _ => word.to_string(),
    });
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(words.collect::<Vec<_>>().join(" ")).current_dir(dir.join(""));
    for (name, value) in binary.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    run(&mut shell)
}

/// Starts a server as the command does, but on free ports; reads rows of HBase; stops it.
fn serve(dir: &TempDir, command: &str) {
    let words: Vec<&str> = command.split_whitespace().skip(2).collect();
    let (mut data, mut rest): (Vec<PathBuf>, Vec<&str>) = (Vec::new(), Vec::new());
    for pair in words.chunks(2) {
        match pair {
            ["--data", path] => data.push(place(dir, path).unwrap()),
            ["--port-offset", _] => {}
            other => rest.extend_from_slice(other),
        }
    }
    assert_eq!(data.len(), 1, "{command}");
    let server = Server::start_with(&data[0], &rest);
    let shown = text(&server.shell("scan 'ns1:t1'; scan 'tmob'").stdout);
    assert!(shown.contains("only-in-wal") && shown.contains(&"B".repeat(300)), "{command}: {shown}");
    assert!(server.stop().success(), "{command}");
}

#[test]
fn the_commands_of_the_page_work_in_their_order() {
    let dir = TempDir::new();
    fs::rename(unpack(&dir, "rootdir-live"), dir.join("hbase")).unwrap();

    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE)).unwrap();
    let commands = commands(&page);
    assert!(commands.len() >= COMMANDS_MIN, "{commands:?}");
    let mut served = Vec::new();
    for command in &commands {
        let target = command.split_whitespace().find_map(|word| place(&dir, word)).unwrap();
        if command.starts_with("grampus start ") {
            serve(&dir, command);
            served.push(target);
            continue;
        }
        let output = shell(&dir, command);
        // As the page says, a server's start ends the time for `--undo`.
        let expected = match command.ends_with("--undo") && served.contains(&target) {
            true => REFUSED,
            false => 0,
        };
        let shown = text(&output.stdout) + &text(&output.stderr);
        assert_eq!(output.status.code(), Some(expected), "{command}: {shown}");
    }
    let report: serde_json::Value =
        serde_json::from_slice(&fs::read(dir.join("report.json")).unwrap()).unwrap();
    assert_eq!(report["adoptable"], true);
    // The directory is one of HBase again.
    assert!(dir.join("hbase").join("hbase.version").exists());
}
