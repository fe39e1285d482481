//! The roles of a cluster, independent of the process in which they run.
//!
//! * [`member`]: a process of a cluster: its name, files, session, and how it ends;
//! * [`candidate`]: a master, from its election on;
//! * [`cluster_id`]: whether a process uses the directory of the cluster;
//! * `cluster_switch`: the shutdown of the whole cluster;
//! * [`region_server`]: a region server, from its registration on;
//! * [`remote`]: calls between the processes;
//! * [`services`], [`registry`]: the services of the RPC servers;
//! * [`standby`]: services that exist before their role is active;
//! * `unpublished`: region servers that registered and have no znode;
//! * [`watchdog`]: detects ended processes before their sessions expire.
//!
//! Knows nothing about: options, signals, status pages.

pub mod candidate;
pub mod cluster_id;
mod cluster_switch;
pub mod member;
pub mod region_server;
pub mod registry;
pub mod remote;
pub mod services;
pub mod standby;
mod unpublished;
pub mod watchdog;

pub use candidate::{ActiveMaster, Candidate, MasterOptions};
pub use cluster_switch::Elected;
pub use member::{EndProcess, Member};
pub use watchdog::SeenMaster;
