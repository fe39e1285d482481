//! `kill -9` of `grampus adopt`, `adopt --undo` and `grampus release` at moments spread over their
//! whole run, on a root directory that a crashed HBase 2.5.10 left.
//!
//! Each killed command is repeated until it ends. Afterwards every cell must be there, also those
//! that Grampus wrote. The in-process tests of `adoption` kill at each call to the file system;
//! this test kills the process, with its locks, threads and page cache.
//!
//! `GRAMPUS_KILL_ROUNDS`: rounds of about a dozen kills (default 2).
#![allow(clippy::disallowed_methods, reason = "directories as users have them")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{Server, TempDir, grampus, run, text, unpack};

const ROUNDS: u32 = 2;
/// Kills of each command in a round.
const KILLS: u32 = 4;
/// What a command prints if there is nothing left to do.
const ADOPTED: &str = "the directory is one of Grampus already";
const UNDONE: &str = "the directory is not adopted: there is nothing to undo";
const RELEASED: &str = "one of HBase already";
/// The signal of `kill -9`.
const SIGKILL: i32 = 9;
const TABLES: [&str; 4] = ["ns1:t1", "t1clone", "tfile", "tmob"];

/// A command on a directory.
struct Offline<'a> {
    name: &'a str,
    data: &'a Path,
    arguments: &'a [&'a str],
}

impl Offline<'_> {
    fn command(&self) -> Command {
        let mut command = grampus();
        command.arg(self.name).arg(self.data).args(self.arguments);
        command
    }

    /// Runs it to its end, unless `done` was reached before a kill. Returns how long it took.
    fn complete(&self, done: &str) -> Duration {
        let began = Instant::now();
        let output = run(&mut self.command());
        let shown = text(&output.stdout) + &text(&output.stderr);
        let is_complete = output.status.success() || shown.contains(done);
        assert!(is_complete, "{} {:?}: {shown}", self.name, self.arguments);
        began.elapsed()
    }

    /// Kills it after `delay`, unless it has ended. Returns whether it was killed.
    fn kill_after(&self, delay: Duration) -> bool {
        let mut child = self.command().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(delay);
        child.kill().unwrap();
        child.wait().unwrap().signal() == Some(SIGKILL)
    }
}

/// Delays spread over the run time of a command. Each value is far from the earlier ones.
struct Delays {
    taken: u32,
}

impl Delays {
    fn next(&mut self, run_time: Duration) -> Duration {
        const GOLDEN_RATIO: f64 = 0.618_033_988_749_895;
        self.taken += 1;
        run_time.mul_f64((f64::from(self.taken) * GOLDEN_RATIO).fract())
    }
}

/// All versions of all cells. Delete markers are left out, because compactions remove them.
fn cells(server: &Server) -> Vec<String> {
    let scans = TABLES.map(|table| format!("scan '{table}', {{VERSIONS => 10}}"));
    let output = server.shell(&scans.join("\n"));
    let shown = text(&output.stdout);
    assert!(output.status.success(), "{shown}");
    let lines: Vec<String> =
        shown.lines().filter(|line| line.contains("column=")).map(String::from).collect();
    assert!(lines.len() > 100, "{shown}");
    lines
}

fn assert_same(found: &[String], expected: &[String], round: u32) {
    let counted = |lines: &[String]| {
        let mut counts = BTreeMap::new();
        lines.iter().for_each(|line| *counts.entry(line.clone()).or_insert(0) += 1);
        counts
    };
    let (found, expected) = (counted(found), counted(expected));
    let without = |these: &BTreeMap<String, u32>, others: &BTreeMap<String, u32>| {
        these
            .iter()
            .filter(|(line, count)| others.get(*line) != Some(count))
            .fold(String::new(), |text, (line, count)| format!("{text}\n  {count} times {line}"))
    };
    let (missing, added) = (without(&expected, &found), without(&found, &expected));
    assert!(found == expected, "round {round}: expected:{missing}\nfound:{added}");
}

fn put(server: &Server, row: &str) {
    let puts = TABLES.map(|table| match table {
        "ns1:t1" | "t1clone" => format!("put '{table}', '{row}', 'cf1:q', 'by grampus', 7"),
        _ => format!("put '{table}', '{row}', 'f:q', 'by grampus', 7"),
    });
    let output = server.shell(&puts.join("\n"));
    assert!(output.status.success(), "{}", text(&output.stdout));
}

/// Runs the whole way there and back without a kill. Returns the cells at its end, and the run
/// times of adoption and release.
fn undisturbed() -> (Vec<String>, Duration, Duration) {
    let dir = TempDir::new();
    let data = unpack(&dir, "rootdir-live");
    let adopt = Offline { name: "adopt", data: &data, arguments: &["--ignore-owner"] };
    let release = Offline { name: "release", data: &data, arguments: &["--to", "2.5"] };
    let adoption_time = adopt.complete(ADOPTED);
    let server = Server::start(&data);
    put(&server, "new");
    server.kill();
    let release_time = release.complete(RELEASED);
    adopt.complete(ADOPTED);
    let server = Server::start(&data);
    (cells(&server), adoption_time, release_time)
}

#[test]
fn killed_adoptions_and_releases_are_repeated_without_loss() {
    let rounds = std::env::var("GRAMPUS_KILL_ROUNDS").map_or(ROUNDS, |text| text.parse().unwrap());
    let (expected, adoption_time, release_time) = undisturbed();
    let mut delays = Delays { taken: 0 };
    let mut kills = 0;
    for round in 0..rounds {
        let dir = TempDir::new();
        let data = unpack(&dir, "rootdir-live");
        let adopt = Offline { name: "adopt", data: &data, arguments: &["--ignore-owner"] };
        let undo = Offline { name: "adopt", data: &data, arguments: &["--undo"] };
        let release = Offline { name: "release", data: &data, arguments: &["--to", "2.5"] };
        let mut disturb = |command: &Offline, run_time| {
            (0..KILLS).filter(|_| command.kill_after(delays.next(run_time))).count() as u32
        };
        kills += disturb(&adopt, adoption_time);
        adopt.complete(ADOPTED);
        kills += disturb(&undo, adoption_time);
        // After a killed undo, the adoption can be completed too, unless the undo had almost ended.
        if round % 2 == 0 || !adopt.command().output().unwrap().status.success() {
            undo.complete(UNDONE);
        }
        adopt.complete(ADOPTED);
        let server = Server::start(&data);
        put(&server, "new");
        server.kill();
        kills += disturb(&release, release_time);
        release.complete(RELEASED);
        adopt.complete(ADOPTED);
        assert_same(&cells(&Server::start(&data)), &expected, round);
    }
    println!("{kills} kills in {rounds} rounds");
    assert!(kills >= rounds * KILLS, "{kills} kills in {rounds} rounds: the commands end too early");
}
