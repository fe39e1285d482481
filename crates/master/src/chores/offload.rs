//! Moves the regions of decommissioned servers to other servers.
//!
//! A region that is in transition cannot move. Moves and openings that began before the server was
//! decommissioned still end on it, and a server gets regions if the master can call no other one.
//! So this is repeated as long as the server is decommissioned.

use std::collections::HashSet;

use cell::region::ServerName;
use tracing::warn;

use crate::assignment::RegionState;
use crate::context::Context;
use crate::master::Master;
use crate::procedure::Work;

/// Begins to move the regions that the servers have now.
pub(super) async fn run(master: &Master) {
    for server in master.context().servers.offloading() {
        offload(master, &server).await;
    }
}

/// The servers that can take regions of decommissioned servers.
pub(crate) fn targets(context: &Context) -> Vec<ServerName> {
    let (mut targets, decommissioned) = (context.servers.available(), context.servers.decommissioned());
    // If there is no other server, the decommissioned ones count as available.
    targets.retain(|target| !decommissioned.contains(target));
    targets
}

async fn offload(master: &Master, server: &ServerName) {
    let context = master.context();
    let regions = context.assignment.regions_on(server);
    if regions.is_empty() {
        return;
    }
    let moving = moving_regions(master);
    let count_of = |target: ServerName| (context.assignment.regions_on(&target).len(), target);
    let mut targets: Vec<(usize, ServerName)> = targets(context).into_iter().map(count_of).collect();
    let open = RegionState::Open(server.clone());
    for region in regions {
        let is_open = context.assignment.state(&region).as_ref() == Some(&open);
        if !is_open || moving.contains(&region.encoded_name()) {
            continue;
        }
        let Some((count, target)) = targets.iter_mut().min() else { return };
        *count += 1;
        let work = Work::MoveRegion { region, source: Some(server.clone()), target: target.clone() };
        if let Err(error) = master.submit_checked(work, (0, 0)).await {
            warn!(%server, %error, "cannot move a region of a decommissioned server; retrying");
        }
    }
}

/// The encoded names of the regions that procedures move.
fn moving_regions(master: &Master) -> HashSet<String> {
    master.procedures().select_running(|work| match work {
        Work::MoveRegion { region, .. } => Some(region.encoded_name()),
        _ => None,
    })
}
