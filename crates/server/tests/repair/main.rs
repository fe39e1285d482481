//! Directories that are damaged as users and disks damage them: the server starts, serves what is whole, says what is not
//! and what to do, and does what an operator then asks for.
#![allow(clippy::disallowed_methods, reason = "directories as they are found on a user's disk")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;

mod directory;
mod internal;
mod meta;
#[path = "../kill9/network.rs"]
mod network;
mod regions;
