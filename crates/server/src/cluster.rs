//! `grampus master` and `grampus regionserver`: the roles as processes of a cluster.
//!
//! The processes share a data directory. ZooKeeper has the sessions of all processes, the election
//! of the active master, and the znodes that clients read.
//!
//! * [`master`]: waits until it is elected, then runs the master;
//! * [`region_server`]: registers with the active master and runs a region server;
//! * `starting`: a region server that does not serve yet;
//! * `name`: the name of a process, by which others call it;
//! * [`session`]: the session with ZooKeeper;
//! * [`exit_reporter`]: reports the end of a process before its session expires.
//!
//! The crate `roles` has what does not depend on options, signals and pages.
#![deny(clippy::print_stdout, reason = "ends the server when the reader of its output has gone")]

use std::time::Duration;

use roles::cluster_id::Role;
use roles::{Member, cluster_id};

use crate::data::DataDirectory;

pub mod exit_reporter;
pub mod master;
mod name;
pub mod region_server;
pub(crate) mod session;
mod starting;

/// How long clients may take to read their responses before a process that stops leaves the
/// cluster. A client that does not read must not delay the processes that take over.
const DRAIN_LIMIT: Duration = Duration::from_secs(2);

/// Checks that the directory is that of the cluster. Restores the id of a directory that has lost
/// it, now or when an earlier process used it.
async fn check_cluster_id(member: &Member, data: &mut DataDirectory, role: Role) -> Result<(), String> {
    if data.has_lost_id {
        data.cluster_id = cluster_id::restore(member, &data.cluster_id).await?;
    }
    data.cluster_id = cluster_id::check_or_restore(member, &data.cluster_id, role).await?;
    Ok(())
}
