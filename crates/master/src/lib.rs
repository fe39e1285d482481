//! Layer 5: the master: which tables there are, which server serves which region, and what changes them.
//!
//! * [`master`](mod@master): start and initialization;
//! * [`procedure`]: changes of tables that survive a crash;
//! * [`assignment`], [`servers`], [`connections`]: regions, region servers, and how they are reached;
//! * [`meta`], [`location`], [`tables`], [`namespaces`]: what is known of tables, in `hbase:meta`, in files, in memory;
//! * [`sanity`], [`limits`]: which tables and names are accepted;
//! * [`quotas`], [`namespace_quotas`]: what users, tables and namespaces may use;
//! * [`integrity`]: no hole, no overlap; [`inspection`]: what `hbase:meta` and the directories disagree on;
//!   [`repair`]: what an operator, or a start, repairs of that; [`rebuild`]: a new `hbase:meta` from directories;
//! * [`chores`]: what tidies up behind splits and merges, and removes files that nobody needs;
//! * [`instruments`]: what is counted;
//! * [`switches`]: what an administrator has forbidden;
//! * [`service`]: the calls of clients and of region servers.
//!
//! Speaks to region servers through the traits of `wire::service` only. Knows nothing about: regions' insides.

pub mod assignment;
pub mod chores;
pub mod connections;
pub mod context;
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
pub mod refusal;
pub mod repair;
pub mod sanity;
pub mod servers;
pub mod service;
pub mod store;
pub mod switches;
pub mod tables;

pub use connections::Connections;
pub use master::{Master, MasterParts};
