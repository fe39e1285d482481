//! Calls about the cluster as a whole.

use std::collections::{BTreeMap, HashSet};

use bytes::Bytes;
use cell::region::ServerName;
use cell::schema::TableName;
use proto::Option as StatusPart;
use proto::exception::{Answer, JavaException, class};
use wire::meta::TableState;

use crate::assignment::RegionState;
use crate::master::Master;

/// The version that clients receive: the HBase release with the same behavior.
const HBASE_VERSION: &str = "2.6.4";

/// `IsMasterRunning`: 2.x clients call it before every other call, and wait while the master is not
/// running.
pub(super) async fn is_running(
    master: &Master,
    _: proto::IsMasterRunningRequest,
) -> Answer<proto::IsMasterRunningResponse> {
    if !master.is_initialized() {
        return Err(JavaException::new(class::SERVER_NOT_RUNNING_YET, "Server is not running yet"));
    }
    Ok(proto::IsMasterRunningResponse { is_master_running: true })
}

/// `GetClusterStatus`: the requested parts of the status, or all.
pub(super) async fn status(
    master: &Master,
    request: proto::GetClusterStatusRequest,
) -> Answer<proto::GetClusterStatusResponse> {
    let context = master.context();
    let is_requested =
        |option: StatusPart| request.options.is_empty() || request.options.contains(&(option as i32));
    let mut status = proto::ClusterStatus::default();
    if is_requested(StatusPart::HbaseVersion) {
        status.hbase_version = Some(proto::HBaseVersionFileContent { version: HBASE_VERSION.into() });
    }
    if is_requested(StatusPart::ClusterId) {
        status.cluster_id = Some(proto::ClusterId { cluster_id: master.cluster_id().to_string() });
    }
    if is_requested(StatusPart::Master) {
        status.master = Some(master.server_name().into());
    }
    if is_requested(StatusPart::MasterInfoPort) {
        status.master_info_port = Some(master.info_port());
    }
    if is_requested(StatusPart::BalancerOn) {
        status.balancer_on = Some(context.switches.is_balancer_on());
    }
    let live = context.servers.live();
    if is_requested(StatusPart::ServersName) {
        status.servers_name = live.iter().map(|(server, _)| server.into()).collect();
    }
    if is_requested(StatusPart::DeadServers) {
        status.dead_servers = context.servers.dead().iter().map(Into::into).collect();
    }
    if is_requested(StatusPart::BackupMasters) {
        status.backup_masters = master.backup_masters().await.iter().map(Into::into).collect();
    }
    if is_requested(StatusPart::TableToRegionsCount) {
        status.table_region_states_count = region_counts(&context.assignment.all(), |table| {
            context.tables.state(table) == Some(TableState::Disabled)
        });
    }
    if is_requested(StatusPart::RegionsInTransition) {
        status.regions_in_transition = regions_in_transition(master);
    }
    if is_requested(StatusPart::LiveServers) {
        status.live_servers = live
            .into_iter()
            .map(|(server, server_load)| proto::LiveServerInfo { server: (&server).into(), server_load })
            .collect();
    }
    Ok(proto::GetClusterStatusResponse { cluster_status: status })
}

/// `getLastMajorCompactionTimestamp`: from the last reports of the servers.
pub(super) async fn last_major_compaction(
    master: &Master,
    request: proto::MajorCompactionTimestampRequest,
) -> Answer<proto::MajorCompactionTimestampResponse> {
    let table = TableName::try_from(&request.table_name)
        .map_err(|error| JavaException::do_not_retry(error.to_string()))?;
    let regions = master.context().assignment.regions_of(&table);
    let names: HashSet<Bytes> = regions.iter().map(|(region, _)| region.name()).collect();
    let compaction_timestamp = oldest_major_compaction(master, |region| names.contains(region));
    Ok(proto::MajorCompactionTimestampResponse { compaction_timestamp })
}

/// `getLastMajorCompactionTimestampForRegion`: from its server's last report; 0 for a region that
/// no server reports.
pub(super) async fn last_major_compaction_of_region(
    master: &Master,
    request: proto::MajorCompactionTimestampForRegionRequest,
) -> Answer<proto::MajorCompactionTimestampResponse> {
    let compaction_timestamp = oldest_major_compaction(master, |region| *region == request.region.value);
    Ok(proto::MajorCompactionTimestampResponse { compaction_timestamp })
}

/// The smallest reported time among the regions that `is_selected` selects; 0 if there is none.
fn oldest_major_compaction(master: &Master, is_selected: impl Fn(&Bytes) -> bool) -> i64 {
    let live = master.context().servers.live();
    let loads = live.iter().flat_map(|(_, server)| &server.region_loads);
    let selected = loads.filter(|load| is_selected(&load.region_specifier.value));
    selected.map(|load| load.last_major_compaction_ts() as i64).min().unwrap_or(0)
}

/// The number of regions of each table, by state. As in HBase, regions of disabled tables are not
/// counted.
fn region_counts(
    regions: &[(cell::region::RegionInfo, RegionState)],
    is_disabled: impl Fn(&TableName) -> bool,
) -> Vec<proto::TableRegionStatesCount> {
    let mut counts: BTreeMap<&TableName, proto::RegionStatesCount> = BTreeMap::new();
    for (region, state) in regions {
        let count = counts.entry(&region.table).or_default();
        if is_disabled(&region.table) {
            continue;
        }
        count.total_regions += 1;
        match state {
            RegionState::Open(_) => count.open_regions += 1,
            RegionState::Closed => count.closed_regions += 1,
            RegionState::Split => count.split_regions += 1,
            RegionState::Opening(_)
            | RegionState::Closing(_)
            | RegionState::Crashed(_)
            | RegionState::FailedOpen => {
                count.regions_in_transition += 1;
            }
        }
    }
    counts
        .into_iter()
        .map(|(table, region_states_count)| proto::TableRegionStatesCount {
            table_name: table.into(),
            region_states_count,
        })
        .collect()
}

/// The regions that are opening, closing, or cannot be opened. The region with the longest time in
/// its state is first.
fn regions_in_transition(master: &Master) -> Vec<proto::RegionInTransition> {
    use proto::region_state::State;
    let state_of = |state: &RegionState| match state {
        RegionState::Opening(_) => Some(State::Opening),
        RegionState::Closing(_) => Some(State::Closing),
        RegionState::Crashed(_) => Some(State::AbnormallyClosed),
        RegionState::FailedOpen => Some(State::FailedOpen),
        RegionState::Open(_) | RegionState::Closed | RegionState::Split => None,
    };
    let context = master.context();
    let now_ms = context.env.clock.now_ms();
    let moving = context.assignment.regions_in_transition();
    moving
        .iter()
        .filter_map(|(region, state, took)| Some((region, state_of(state)?, took)))
        .map(|(region, state, took)| proto::RegionInTransition {
            spec: wire::convert::region_specifier(region),
            region_state: proto::RegionState {
                region_info: region.into(),
                state: state as i32,
                stamp: Some(now_ms.saturating_sub(took.as_millis() as u64)),
                failure: context.assignment.failure(region).map(|failure| failure.reason),
            },
        })
        .collect()
}

/// `Shutdown`: stops the whole cluster.
pub(super) async fn shutdown(master: &Master, _: proto::ShutdownRequest) -> Answer<proto::ShutdownResponse> {
    master.shut_down("Shutdown was called").await?;
    Ok(proto::ShutdownResponse {})
}

/// `StopMaster`: also stops the region server if it is in the same process.
pub(super) async fn stop_master(
    master: &Master,
    _: proto::StopMasterRequest,
) -> Answer<proto::StopMasterResponse> {
    master.request_stop("StopMaster was called");
    Ok(proto::StopMasterResponse {})
}

/// `getSecurityCapabilities`: there is no authentication.
pub(super) async fn security_capabilities(
    _: &Master,
    _: proto::SecurityCapabilitiesRequest,
) -> Answer<proto::SecurityCapabilitiesResponse> {
    let simple = proto::security_capabilities_response::Capability::SimpleAuthentication;
    Ok(proto::SecurityCapabilitiesResponse { capabilities: vec![simple as i32] })
}

/// `ClearDeadServers`: no longer lists these dead servers. Returns those that it cannot clear: all
/// of them while a server is being recovered, as in HBase.
pub(super) async fn clear_dead(
    master: &Master,
    request: proto::ClearDeadServersRequest,
) -> Answer<proto::ClearDeadServersResponse> {
    let context = master.context();
    let is_recovering = !context.recoveries.list().is_empty();
    let is_cleared = |message: &proto::ServerName| {
        !is_recovering
            && ServerName::try_from(message).is_ok_and(|server| context.servers.clear_dead(&server))
    };
    let server_name = request.server_name.into_iter().filter(|message| !is_cleared(message)).collect();
    Ok(proto::ClearDeadServersResponse { server_name })
}
