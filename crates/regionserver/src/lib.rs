//! Layer 5: a region server: the services that clients and the master call, and what keeps its regions in order.
//!
//! * [`server`]: start, logs, the word with the master, chores;
//! * [`client`]: `ClientService`, one call a file; [`scanners`]: leases of open scanners;
//! * [`admin`]: `AdminService`; [`opening`]: opening and closing regions; [`splitting`]: when they should be split;
//! * [`regions`], [`schedule`], [`load`]: the regions online, when they are flushed and compacted, their figures;
//! * [`disk`]: free space and loss of the disk;
//! * [`instruments`], [`pauses`], [`clock_jumps`]: what is counted of calls, of times when none is served, and of the
//!   wall clock;
//! * [`quotas`]: what calls may use in a time;
//! * [`hotspots`]: the rows and regions that are asked for most;
//! * [`users`]: what each user asks and uses;
//! * [`slow_log`]: calls that took long, and where their time went;
//! * [`errors`]: the engine's errors as Java exceptions.
//!
//! Speaks to the master through `wire::service` only. Knows nothing about: the master's insides, znodes.

pub mod admin;
pub mod client;
pub mod clock_jumps;
pub mod disk;
pub mod errors;
pub mod hotspots;
pub mod instruments;
pub mod load;
mod memory;
mod opening;
pub mod pauses;
pub mod quotas;
pub mod regions;
pub mod scanners;
pub mod schedule;
pub mod server;
pub mod slow_log;
mod splitting;
mod stopping;
pub mod users;

pub use admin::Admin;
pub use client::{Client, ClientRpc};
pub use disk::Disk;
pub use server::{RegionServer, RegionServerOptions, RegionServerParts};
