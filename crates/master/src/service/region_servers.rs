//! The reports of region servers.

use cell::region::{RegionInfo, ServerName};
use proto::exception::{Answer, JavaException, class};
use proto::region_state_transition::TransitionCode;
use tracing::{error, info, warn};

use super::splits;
use crate::assignment::RegionState;
use crate::master::Master;

/// `RegionServerStartup`: registers a server, and returns the host name under which the master
/// knows it.
pub(super) async fn startup(
    master: &Master,
    request: proto::RegionServerStartupRequest,
) -> Answer<proto::RegionServerStartupResponse> {
    let host = request.use_this_hostname_instead().to_string();
    let port = u16::try_from(request.port)
        .map_err(|_| JavaException::do_not_retry(format!("{} is not a port", request.port)))?;
    let server = ServerName { host: host.clone(), port, start_code: request.server_start_code };
    info!(%server, "region server started");
    master.context().servers.report(server, proto::ServerLoad::default());
    let name = "hbase.regionserver.hostname.seen.by.master".to_string();
    Ok(proto::RegionServerStartupResponse { map_entries: vec![proto::NameStringPair { name, value: host }] })
}

/// `RegionServerReport`: a server's periodic report, with its load.
pub(super) async fn report(
    master: &Master,
    request: proto::RegionServerReportRequest,
) -> Answer<proto::RegionServerReportResponse> {
    let server = server_name(&request.server)?;
    let servers = &master.context().servers;
    if !servers.is_live(&server) {
        return Err(JavaException::new(class::YOU_ARE_DEAD, format!("{server} has not checked in")));
    }
    servers.report(server, request.load.unwrap_or_default());
    Ok(proto::RegionServerReportResponse {})
}

/// `ReportRSFatalError`: the last report of a server that aborts.
pub(super) async fn fatal_error(
    master: &Master,
    request: proto::ReportRsFatalErrorRequest,
) -> Answer<proto::ReportRsFatalErrorResponse> {
    let server = server_name(&request.server)?;
    if !master.context().servers.is_live(&server) {
        return Err(JavaException::new(class::YOU_ARE_DEAD, format!("{server} has not checked in")));
    }
    error!(%server, message = request.error_message, "region server aborted");
    master.context().servers.remove(&server);
    Ok(proto::ReportRsFatalErrorResponse {})
}

/// `ReportRegionStateTransition`: regions were opened or closed, regions failed to open, or a
/// region is so large that it should be split.
pub(super) async fn transition(
    master: &Master,
    request: proto::ReportRegionStateTransitionRequest,
) -> Answer<proto::ReportRegionStateTransitionResponse> {
    let server = server_name(&request.server)?;
    let refused = |why: String| {
        warn!(%server, why, "refused a report of region transitions");
        Ok(proto::ReportRegionStateTransitionResponse { error_message: Some(why) })
    };
    // HBase also returns these two errors in the message of a successful response.
    if !master.context().servers.is_live(&server) {
        return refused(format!("No server node for {server}"));
    }
    for transition in &request.transition {
        let code = TransitionCode::try_from(transition.transition_code)
            .map_err(|error| JavaException::do_not_retry(error.to_string()))?;
        let regions = transition
            .region_info
            .iter()
            .map(RegionInfo::try_from)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| JavaException::do_not_retry(error.to_string()))?;
        if code == TransitionCode::ReadyToSplit {
            let [parent, _, high] = &regions[..] else {
                return Err(JavaException::do_not_retry("a split takes a parent and two daughters"));
            };
            if master.context().assignment.state(parent) != Some(RegionState::Open(server.clone())) {
                return refused(format!("region {} is not open on {server}", parent.encoded_name()));
            }
            splits::submit_split(master, parent, Some(high.start_key.clone()), (0, 0)).await?;
            continue;
        }
        let failure =
            (transition.failure.as_deref().unwrap_or("its server gave no reason"), transition.damaged());
        let outcome = (transition.open_seq_num.unwrap_or(0), failure);
        match master.context().assignment.report(&server, code, &regions, outcome).await {
            Err(error) if error.is(class::UNEXPECTED_STATE) => return refused(error.message),
            reported => reported?,
        }
    }
    Ok(proto::ReportRegionStateTransitionResponse::default())
}

fn server_name(name: &proto::ServerName) -> Answer<ServerName> {
    ServerName::try_from(name).map_err(|error| JavaException::do_not_retry(error.to_string()))
}
