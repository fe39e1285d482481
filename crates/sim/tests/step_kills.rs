//! A cluster completes its operations when processes are killed at durable steps.
#![allow(clippy::disallowed_methods, reason = "starts the program as a user does")]

use std::process::Command;

/// The seeds. They have all operations and all victims.
const SEEDS: &str = "0..36";

#[test]
fn operations_complete_after_kills_at_durable_steps() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sim"));
    let output = command.args(["--step-kills", "--seeds", SEEDS]).output().expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
