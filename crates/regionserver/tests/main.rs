//! The tests of a region server without a network.
//!
//! One program, because each further one would compile the generic code of its dependencies again.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bulk_load;
mod client_service;
mod corrupt_file;
mod disk;
mod multi;
mod poison;
mod recovery;
mod replication_sink;
mod reports;
mod scanner_calls;
mod schedule;
mod slow_flushes;
mod slow_log;
mod stopping;
mod world;
