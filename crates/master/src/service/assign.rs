//! Calls that open, close and move regions. Those of one region respond when the procedure has
//! ended.

use cell::region::ServerName;
use proto::exception::{Answer, JavaException};

use super::splits::find;
use crate::assignment::RegionState;
use crate::chores::offload;
use crate::context::Context;
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
        Some(name) => Some(server_name(name)?),
        None => None,
    };
    let current = match master.context().assignment.state(&region) {
        Some(RegionState::Open(server)) => Some(server),
        _ => None,
    };
    let is_elsewhere = match (&target, &current) {
        // HBase also moves no region to a server that is not live.
        (Some(target), current) => Some(target) != current.as_ref() && servers.is_live(target),
        (None, current) => servers.available().iter().any(|server| Some(server) != current.as_ref()),
    };
    let other = servers.available().into_iter().find(|server| Some(server) != current.as_ref());
    if let (true, Some(target)) = (is_elsewhere, target.or(other)) {
        submit_and_wait(master, Work::MoveRegion { region, source: None, target }).await?;
    }
    Ok(proto::MoveRegionResponse {})
}

/// `DecommissionRegionServers`: the live ones of these servers get no more regions. With `offload`,
/// their regions move to other servers; the response does not wait for that.
pub(super) async fn decommission(
    master: &Master,
    request: proto::DecommissionRegionServersRequest,
) -> Answer<proto::DecommissionRegionServersResponse> {
    let named = request.server_name.iter().map(server_name).collect::<Answer<Vec<_>>>()?;
    master.decommission(&named).await.map_err(|error| JavaException::io(error.to_string()))?;
    if request.offload {
        begin_offload(master.context(), &named)?;
    } else {
        named.iter().for_each(|server| master.context().servers.end_offload(server));
    }
    Ok(proto::DecommissionRegionServersResponse {})
}

/// Requests that all regions of the live ones of these servers move to other servers. Unlike
/// HBase, this includes servers that were decommissioned before, so that the call can be repeated.
fn begin_offload(context: &Context, from: &[ServerName]) -> Answer<()> {
    for server in from.iter().filter(|server| context.servers.is_live(server)) {
        let is_empty = context.assignment.regions_on(server).is_empty();
        if !is_empty && offload::targets(context).is_empty() {
            return Err(JavaException::io(format!("no server can take the regions of {server}")));
        }
        context.servers.begin_offload(server);
    }
    Ok(())
}

/// `RecommissionRegionServer`: the server may get regions again, and gets the named ones now.
pub(super) async fn recommission(
    master: &Master,
    request: proto::RecommissionRegionServerRequest,
) -> Answer<proto::RecommissionRegionServerResponse> {
    let server = server_name(&request.server_name)?;
    master.recommission(&server).await.map_err(|error| JavaException::io(error.to_string()))?;
    for specifier in &request.region {
        let region = find(master, specifier)?;
        let is_there =
            master.context().assignment.state(&region).is_some_and(|state| state.server() == Some(&server));
        if !is_there && master.context().servers.is_live(&server) {
            let work = Work::MoveRegion { region, source: None, target: server.clone() };
            master.submit_checked(work, (0, 0)).await?;
        }
    }
    Ok(proto::RecommissionRegionServerResponse {})
}

/// `ListDecommissionedRegionServers`.
pub(super) async fn decommissioned(
    master: &Master,
    _: proto::ListDecommissionedRegionServersRequest,
) -> Answer<proto::ListDecommissionedRegionServersResponse> {
    let servers = master.context().servers.decommissioned();
    Ok(proto::ListDecommissionedRegionServersResponse {
        server_name: servers.iter().map(Into::into).collect(),
    })
}

fn server_name(message: &proto::ServerName) -> Answer<ServerName> {
    ServerName::try_from(message).map_err(|error| JavaException::do_not_retry(error.to_string()))
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
