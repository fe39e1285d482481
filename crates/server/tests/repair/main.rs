//! Damaged directories: the server starts, serves intact regions, reports damage with a remedy, and
//! performs the repairs that an operator requests.
#![allow(clippy::disallowed_methods, reason = "directories as users have them")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;

mod directory;
mod internal;
mod meta;
#[path = "../kill9/network.rs"]
mod network;
mod regions;
