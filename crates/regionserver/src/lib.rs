//! A region server. It implements the services that clients and the master call, and
//! maintains its regions.
//!
//! * [`server`]: start, logs, registration and reports to the master, chores;
//! * [`client`]: `ClientService`, one file per call; [`OpenScanner`], [`scanners`]: open scanners
//!   and their leases;
//! * [`admin`]: `AdminService`; [`opening`]: opens and closes regions; [`splitting`]: requests
//!   splits of large regions;
//! * [`regions`]: the online regions; [`schedule`]: when they are flushed and compacted; [`load`]:
//!   their metrics;
//! * [`locality`]: which share of their bytes is on this host;
//! * [`disk`]: the disk; `disk_poll`: its free space and its loss; [`volumes`]: those of the
//!   storage tiers;
//! * [`foreign_files`]: the files that clients name by URIs;
//! * [`FileMoves`]: moves files between storage tiers;
//! * [`instruments`], [`pauses`], [`clock_jumps`]: counters of calls, process pauses and wall clock
//!   jumps;
//! * [`quotas`]: limits on what calls may use per time unit;
//! * [`replication_sink`]: applies the log entries of other clusters;
//! * [`hotspots`]: the most requested rows and regions;
//! * [`users`]: requests and resource usage of each user;
//! * [`slow_log`]: slow calls and their latency breakdown; [`slow_calls`]: adds them;
//! * [`errors`]: converts engine errors to Java exceptions.
//!
//! Calls the master through `wire::service` only. Knows nothing about: the internals of the master,
//! znodes.

pub mod admin;
pub mod client;
pub mod clock_jumps;
mod dead_servers;
pub mod disk;
mod disk_poll;
pub mod errors;
pub mod fatal;
mod file_moves;
pub mod foreign_files;
pub mod hotspots;
pub mod instruments;
pub mod lease;
pub mod load;
pub mod locality;
mod memory;
mod mob_cleaner;
mod open_scanner;
mod opening;
mod orders;
pub mod pauses;
pub mod quotas;
pub mod regions;
pub mod replication_sink;
pub mod scanners;
pub mod schedule;
pub mod server;
pub mod slow_calls;
pub mod slow_log;
mod splitting;
mod stopping;
pub mod users;
pub mod volumes;
mod write_pause;

pub use admin::Admin;
pub use client::{ClientRpc, LocalCaller};
pub use disk::Disk;
pub use file_moves::FileMoves;
pub use foreign_files::{ForeignFile, ForeignFiles, FoundFile, NoForeignFiles};
pub use lease::Lease;
pub use open_scanner::OpenScanner;
pub use replication_sink::ClusterWriter;
pub use server::{QuotaReader, RegionServer, RegionServerOptions, RegionServerParts, register};
