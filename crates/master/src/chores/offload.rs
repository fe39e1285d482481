//! Moves the regions of decommissioned servers to other servers, until such a server has none.
//!
//! A region that is in transition cannot move, and moves and openings that began before the server
//! was decommissioned still end on it. So this is repeated.

use std::collections::HashSet;

use cell::region::ServerName;
use tracing::{info, warn};

use crate::assignment::RegionState;
use crate::context::Context;
use crate::master::Master;
use crate::procedure::Work;
use crate::procedure::executor::Progress;

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
    let moving = running_moves(master);
    if regions.is_empty() && !moving.iter().any(|(_, target)| target == server) {
        info!(%server, "the decommissioned server has no regions");
        return context.servers.end_offload(server);
    }
    let moving: HashSet<String> = moving.into_iter().map(|(region, _)| region).collect();
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
        let work = Work::MoveRegion(region, target.clone());
        if let Err(error) = master.submit_checked(work, (0, 0)).await {
            warn!(%server, %error, "cannot move a region of a decommissioned server; retrying");
        }
    }
}

/// The regions that procedures move, by encoded name, and where to.
fn running_moves(master: &Master) -> Vec<(String, ServerName)> {
    let procedures = master.procedures().list().into_iter();
    let running = procedures.filter(|(_, status)| status.progress == Progress::Running);
    let moves = running.filter_map(|(_, status)| match status.work {
        Work::MoveRegion(region, target) => Some((region.encoded_name(), target)),
        _ => None,
    });
    moves.collect()
}
