//! Calls that open, close and move one region. They respond when the procedure has ended.

use cell::region::ServerName;
use proto::exception::{Answer, JavaException};

use super::splits::find;
use crate::assignment::RegionState;
use crate::master::Master;
use crate::procedure::executor::Progress;
use crate::procedure::{RegionTransition, Work};

/// `MoveRegion`: reopens the region if the named server is live and is not the current one. Without
/// a named server, reopens it if another server is live. The procedure chooses the new server.
pub(super) async fn move_region(
    master: &Master,
    request: proto::MoveRegionRequest,
) -> Answer<proto::MoveRegionResponse> {
    let region = find(master, &request.region)?;
    let servers = &master.context().servers;
    let target = match &request.dest_server_name {
        Some(name) => {
            Some(ServerName::try_from(name).map_err(|error| JavaException::do_not_retry(error.to_string()))?)
        }
        None => None,
    };
    let current = match master.context().assignment.state(&region) {
        Some(RegionState::Open(server)) => Some(server),
        _ => None,
    };
    let is_elsewhere = match (&target, &current) {
        // HBase also moves no region to a server that is not live.
        (Some(target), current) => Some(target) != current.as_ref() && servers.is_live(target),
        (None, current) => servers.live().iter().any(|(server, _)| Some(server) != current.as_ref()),
    };
    let live = servers.live_names();
    let other = live.into_iter().find(|server| Some(server) != current.as_ref());
    if let (true, Some(target)) = (is_elsewhere, target.or(other)) {
        submit_and_wait(master, Work::MoveRegion(region, target)).await?;
    }
    Ok(proto::MoveRegionResponse {})
}

/// `AssignRegion`.
pub(super) async fn assign(
    master: &Master,
    request: proto::AssignRegionRequest,
) -> Answer<proto::AssignRegionResponse> {
    let region = find(master, &request.region)?;
    submit_and_wait(master, Work::RegionTransition(region, RegionTransition::Assign)).await?;
    Ok(proto::AssignRegionResponse {})
}

/// `UnassignRegion`.
pub(super) async fn unassign(
    master: &Master,
    request: proto::UnassignRegionRequest,
) -> Answer<proto::UnassignRegionResponse> {
    let region = find(master, &request.region)?;
    submit_and_wait(master, Work::RegionTransition(region, RegionTransition::Unassign)).await?;
    Ok(proto::UnassignRegionResponse {})
}

async fn submit_and_wait(master: &Master, work: Work) -> Answer<()> {
    let id = master.submit_checked(work, (0, 0)).await?;
    match master.procedures().wait(id).await.map(|status| status.progress) {
        Some(Progress::Finished(Some(exception))) => Err(exception),
        _ => Ok(()),
    }
}
