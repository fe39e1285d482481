//! The reports of region servers.

use cell::region::{RegionInfo, ServerName};
use proto::exception::{Answer, JavaException, class};
use proto::region_state_transition::TransitionCode;
use tracing::{error, warn};

use super::splits;
use crate::assignment::{RegionState, Report};
use crate::crash;
use crate::master::Master;

/// HBase's value for "no sequence id": -1.
const NO_SEQUENCE_ID: u64 = u64::MAX;
/// The largest difference of clocks with which a server may register
/// (`hbase.master.maxclockskew`).
const CLOCK_SKEW_MAX_MS: u64 = 30_000;
/// The difference of clocks above which a warning is logged (`hbase.master.warningclockskew`).
const CLOCK_SKEW_WARNING_MS: u64 = 10_000;

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
    check_clock(&server, request.server_current_time, master.context().env.clock.now_ms())?;
    master.add_server(&server).await?;
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
        match master.known_servers() {
            // In a cluster, the server registered with the previous master, or counts as dead.
            Some(_) => master.add_server(&server).await?,
            None => return Err(not_registered(&server)),
        }
    }
    let load = request.load.unwrap_or_default();
    let flushed = master.context().assignment.flushed_regions(&server, &load);
    if !servers.receive(server.clone(), load, master.context().env.clock.monotonic()) {
        return Err(crash::dead(&server));
    }
    master.context().recoveries.record_flushed(&flushed).await?;
    Ok(proto::RegionServerReportResponse {})
}

/// Refuses a server whose clock differs too much: the timestamps of cells would not be in the order
/// of the writes after a region moves.
fn check_clock(server: &ServerName, server_ms: u64, now_ms: u64) -> Answer<()> {
    let skew_ms = server_ms.abs_diff(now_ms);
    if skew_ms > CLOCK_SKEW_MAX_MS {
        let message = format!(
            "Server {server} has been rejected; Reported time is too far out of sync with master.  Time difference \
             of {skew_ms}ms > max allowed of {CLOCK_SKEW_MAX_MS}ms"
        );
        return Err(JavaException::new(class::CLOCK_OUT_OF_SYNC, message));
    }
    if skew_ms > CLOCK_SKEW_WARNING_MS {
        warn!(%server, skew_ms, "the clock of a region server differs from that of the master");
    }
    Ok(())
}

fn not_registered(server: &ServerName) -> JavaException {
    JavaException::new(class::YOU_ARE_DEAD, format!("{server} has not checked in"))
}

/// `ReportRSFatalError`: the last report of a server that aborts.
pub(super) async fn fatal_error(
    master: &Master,
    request: proto::ReportRsFatalErrorRequest,
) -> Answer<proto::ReportRsFatalErrorResponse> {
    let server = server_name(&request.server)?;
    if !master.context().servers.is_live(&server) {
        return Err(not_registered(&server));
    }
    error!(%server, message = request.error_message, "region server aborted");
    if master.known_servers().is_none() {
        master.expire(&server, "it reported a fatal error").await;
    }
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
    // HBase also reports an unknown server and an unexpected region state in the message of a
    // successful response.
    let servers = &master.context().servers;
    if servers.is_dead(&server) || master.context().is_loaded() && !servers.is_live(&server) {
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
        if !regions.iter().all(|region| is_known(master, &server, region)) {
            // The previous master may have ordered the server to open these regions. So the report
            // is answered with an exception, and the server repeats it. After a refusal in the
            // response, the server would close an opened region.
            let message = format!("the master does not know the regions of {server} yet");
            return Err(JavaException::new(class::SERVER_NOT_RUNNING_YET, message));
        }
        if code == TransitionCode::ReadyToSplit {
            if !master.has_resumed_procedures() {
                let message = "the master has not resumed procedures yet";
                return Err(JavaException::new(class::SERVER_NOT_RUNNING_YET, message));
            }
            let [parent, _, high] = &regions[..] else {
                return Err(JavaException::do_not_retry("a split takes a parent and two daughters"));
            };
            if master.context().assignment.state(parent) != Some(RegionState::Open(server.clone())) {
                return refused(format!("region {} is not open on {server}", parent.encoded_name()));
            }
            splits::submit_split(master, parent, Some(high.start_key.clone()), (0, 0)).await?;
            continue;
        }
        let report = Report {
            server: &server,
            code,
            order: transition.proc_id.first().copied().unwrap_or(-1),
            open_seq_num: transition.open_seq_num.unwrap_or(0),
            failure: transition.failure.as_deref().unwrap_or("its server gave no reason"),
            is_damage: transition.damaged(),
        };
        match master.context().assignment.report(&report, &regions).await {
            Err(error) if error.is(class::UNEXPECTED_STATE) => return refused(error.message),
            reported => reported?,
        }
    }
    Ok(proto::ReportRegionStateTransitionResponse::default())
}

/// Whether the state of a region is known. A new master first learns the state of `hbase:meta`, and
/// loads the states of all other regions from `hbase:meta`.
fn is_known(master: &Master, server: &ServerName, region: &RegionInfo) -> bool {
    let context = master.context();
    let is_known_meta = || context.servers.is_live(server) && context.assignment.state(region).is_some();
    context.is_loaded() || region.table.is_meta() && is_known_meta()
}

/// `GetLastFlushedSequenceId`: as HBase, -1 for a region that no live server has reported.
pub(super) async fn last_flushed(
    master: &Master,
    request: proto::GetLastFlushedSequenceIdRequest,
) -> Answer<proto::GetLastFlushedSequenceIdResponse> {
    let encoded = cell::region::encoded_name_of(&request.region_name);
    let live = master.context().servers.live();
    let loads = live.iter().flat_map(|(_, load)| &load.region_loads);
    let of_region = |load: &&proto::RegionLoad| {
        encoded.is_some() && wire::convert::specified_region(&load.region_specifier) == encoded
    };
    let newest = loads.filter(of_region).max_by_key(|load| load.grampus_open_seq_num());
    Ok(proto::GetLastFlushedSequenceIdResponse {
        last_flushed_sequence_id: newest.map_or(NO_SEQUENCE_ID, proto::RegionLoad::complete_sequence_id),
        store_last_flushed_sequence_id: newest
            .map(|load| load.store_complete_sequence_id.clone())
            .unwrap_or_default(),
    })
}

/// `ReportProcedureDone`: has no effect, because this master waits for no such report. Servers
/// report opened and closed regions with `ReportRegionStateTransition`, and all other remote
/// procedures end within the call that starts them.
pub(super) async fn procedure_done(
    _: &Master,
    _: proto::ReportProcedureDoneRequest,
) -> Answer<proto::ReportProcedureDoneResponse> {
    Ok(proto::ReportProcedureDoneResponse {})
}

/// `GetLiveRegionServers`: at most as many as requested, and the number of all.
pub(super) async fn live(
    master: &Master,
    request: proto::GetLiveRegionServersRequest,
) -> Answer<proto::GetLiveRegionServersResponse> {
    let live = master.context().servers.live_names();
    Ok(proto::GetLiveRegionServersResponse {
        server: live.iter().take(request.count as usize).map(Into::into).collect(),
        total: u32::try_from(live.len()).unwrap_or(u32::MAX),
    })
}

fn server_name(name: &proto::ServerName) -> Answer<ServerName> {
    ServerName::try_from(name).map_err(|error| JavaException::do_not_retry(error.to_string()))
}
