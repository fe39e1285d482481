//! The tests of the other program, `procedures`, with calls between the roles as encoded messages.
//! The two programs differ in nothing else.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "../procedures/alter.rs"]
mod alter;
#[path = "../procedures/cluster.rs"]
mod cluster;
#[path = "../procedures/dead_servers.rs"]
mod dead_servers;
#[path = "../procedures/decommission.rs"]
mod decommission;
#[path = "../procedures/failures.rs"]
mod failures;
#[path = "../procedures/integrity.rs"]
mod integrity;
#[path = "../procedures/limits.rs"]
mod limits;
#[path = "../procedures/mob.rs"]
mod mob;
#[path = "../procedures/namespaces.rs"]
mod namespaces;
#[path = "../procedures/power.rs"]
mod power;
#[path = "../procedures/snapshots.rs"]
mod snapshots;
#[path = "../procedures/splits.rs"]
mod splits;

use cluster::Calls;
pub use power::*;

/// The roles call each other as if they were separate processes.
pub const CALLS: Calls = Calls::Encoded;
