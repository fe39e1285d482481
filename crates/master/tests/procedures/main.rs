//! A power loss during a procedure, at any call of the file system: after the next start the
//! procedure is complete or has had no effect, and procedures in the journal continue. An
//! incomplete procedure never prevents the start.
//!
//! The cluster is the real one (master, region server, journal, logs) on an in-memory file system.
//! For each procedure, the Nth call and all later ones fail. Then the test starts a cluster on the
//! data that survives a power loss at that moment, and checks it. This is repeated for every N,
//! until the procedure ends before the disk fails.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod alter;
mod cluster;
mod dead_servers;
mod decommission;
mod failures;
mod integrity;
mod limits;
mod mob;
mod namespaces;
mod placement;
mod power;
mod snapshots;
mod splits;

use std::process::Command;

use cluster::Calls;
pub use power::*;

/// An environment variable that is set in the process of the tests with encoded calls.
const ENCODED_CALLS: &str = "GRAMPUS_TEST_ENCODED_CALLS";

/// How the roles call each other in this process.
pub fn calls() -> Calls {
    match std::env::var_os(ENCODED_CALLS) {
        None => Calls::Direct,
        Some(_) => Calls::Encoded,
    }
}

/// Repeats the other tests of this program in a process whose roles call each other as if they were
/// separate processes.
#[test]
fn all_tests_pass_with_encoded_calls() {
    let program = std::env::current_exe().unwrap();
    let others = ["--skip", "all_tests_pass_with_encoded_calls"];
    let output = Command::new(program).args(others).env(ENCODED_CALLS, "1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(text.contains(" 0 failed") && !text.contains(" 0 passed"), "{text}");
}
