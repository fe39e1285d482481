//! The master. It manages tables and namespaces, and assigns regions to region servers.
//!
//! * [`master`](mod@master): start and initialization;
//! * [`procedure`]: changes of tables that survive a crash;
//! * [`assignment`], [`servers`], [`connections`], `contact`: regions, region servers, connections
//!   to them, and the first call to each;
//! * [`balancer`]: which regions move to which servers;
//! * [`crash`], [`recoveries`]: servers that died, and the regions that still need their logs;
//! * [`meta`], [`location`], [`tables`], [`namespaces`]: the state of tables in `hbase:meta`, in
//!   files and in memory;
//! * [`sanity`], [`limits`]: validation of tables and names;
//! * [`quotas`], [`namespace_quotas`]: limits of users, tables and namespaces;
//! * [`integrity`]: rejects edits that would create holes or overlaps of regions; [`inspection`]:
//!   finds differences between `hbase:meta` and the directories; [`repair`]: repairs them, at start
//!   or for an operator; [`rebuild`]: rebuilds `hbase:meta` from the directories;
//! * [`chores`]: cleanup after splits and merges, and removal of unneeded files;
//! * [`instruments`]: metrics of the master;
//! * [`switches`]: operations that an administrator has disabled;
//! * [`service`]: the calls of clients and of region servers.
//!
//! Calls region servers through the traits of `wire::service` only. Knows nothing about: the
//! internals of regions.

pub mod assignment;
pub mod balancer;
pub mod chores;
pub mod connections;
mod contact;
pub mod context;
pub mod crash;
mod decommission;
pub mod inspection;
pub mod instruments;
pub mod integrity;
pub mod limits;
pub mod location;
pub mod master;
pub mod meta;
pub mod namespace_quotas;
pub mod namespaces;
pub mod procedure;
pub mod quotas;
pub mod rebuild;
pub mod recoveries;
pub mod refusal;
pub mod repair;
pub mod sanity;
pub mod servers;
pub mod service;
pub mod store;
pub mod switches;
pub mod tables;

pub use connections::Connections;
pub use master::{Cluster, Master, MasterParts};
