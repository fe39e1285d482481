//! Equal seeds give equal runs of a cluster.
//!
//! Each run is in a process of its own, because tokio wakes the receivers of a watch channel in an
//! order that depends on the threads that the process has had before.
#![allow(clippy::disallowed_methods, reason = "starts the program as a user does")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::Command;

fn timeline(seed: &str, more: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sim"));
    let output = command.args(["--seed", seed, "--steps", "4", "--verbose"]).args(more).output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "seed {seed}:\n{printed}");
    printed
}

fn check_replay(more: &[&str]) {
    let (first, again, other) = (timeline("101", more), timeline("101", more), timeline("102", more));
    let difference = first.lines().zip(again.lines()).find(|(first, again)| first != again);
    assert_eq!(difference, None);
    assert_eq!(first.len(), again.len());
    assert_ne!(first, other);
}

#[test]
fn equal_seeds_give_equal_runs() {
    check_replay(&[]);
}

#[test]
fn equal_seeds_give_equal_runs_on_hdfs() {
    check_replay(&["--hdfs"]);
}
