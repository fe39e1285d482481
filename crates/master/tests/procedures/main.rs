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
mod power;
mod snapshots;
mod splits;

use cluster::Calls;
pub use power::*;

/// The test program `procedures_encoded` runs the same tests with encoded calls.
pub const CALLS: Calls = Calls::Direct;
