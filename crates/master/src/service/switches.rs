//! Calls for switches: those of splits, merges and snapshot cleanup, and those of features that
//! this master lacks, which have a fixed state.

use std::time::Duration;

use proto::exception::{Answer, JavaException};

use crate::chores::balance;
use crate::master::Master;
use crate::procedure::Work;

/// The pause between two checks whether a snapshot cleanup has ended.
const CLEANUP_POLL: Duration = Duration::from_millis(10);

/// `IsMasterInMaintenanceMode`: always false; there is no such mode.
pub(super) async fn maintenance_mode(
    _: &Master,
    _: proto::IsInMaintenanceModeRequest,
) -> Answer<proto::IsInMaintenanceModeResponse> {
    Ok(proto::IsInMaintenanceModeResponse { in_maintenance_mode: false })
}

/// `IsBalancerEnabled`.
pub(super) async fn balancer(
    master: &Master,
    _: proto::IsBalancerEnabledRequest,
) -> Answer<proto::IsBalancerEnabledResponse> {
    Ok(proto::IsBalancerEnabledResponse { enabled: master.context().switches.is_balancer_on() })
}

/// `SetBalancerRunning`.
pub(super) async fn set_balancer(
    master: &Master,
    request: proto::SetBalancerRunningRequest,
) -> Answer<proto::SetBalancerRunningResponse> {
    let before = master.context().switches.set_balancer(request.on).await;
    let before = before.map_err(|error| JavaException::io(error.to_string()))?;
    Ok(proto::SetBalancerRunningResponse { prev_balance_value: Some(before) })
}

/// `Balance`: runs the balancer, if it is on and nothing prevents it.
pub(super) async fn balance(
    master: &Master,
    request: proto::BalanceRequest,
) -> Answer<proto::BalanceResponse> {
    let is_on = master.context().switches.is_balancer_on();
    let ran = if is_on { balance::run(master, request.dry_run()).await } else { None };
    let balanced = ran.unwrap_or_default();
    Ok(proto::BalanceResponse {
        balancer_ran: ran.is_some(),
        moves_calculated: Some(balanced.planned as u32),
        moves_executed: Some(balanced.successful as u32),
    })
}

/// `IsSplitOrMergeEnabled`.
pub(super) async fn split_or_merge(
    master: &Master,
    request: proto::IsSplitOrMergeEnabledRequest,
) -> Answer<proto::IsSplitOrMergeEnabledResponse> {
    let enabled = master.context().switches.is_on(request.switch_type());
    Ok(proto::IsSplitOrMergeEnabledResponse { enabled })
}

/// `SetSplitOrMergeEnabled`: returns the previous value of each switch. With `synchronous`, waits
/// for splits and merges that have already started.
pub(super) async fn set_split_or_merge(
    master: &Master,
    request: proto::SetSplitOrMergeEnabledRequest,
) -> Answer<proto::SetSplitOrMergeEnabledResponse> {
    let mut prev_value = Vec::with_capacity(request.switch_types.len());
    for kind in request.switch_types() {
        let set = master.context().switches.set(kind, request.enabled).await;
        prev_value.push(set.map_err(|error| JavaException::io(error.to_string()))?);
    }
    if request.synchronous() {
        let is_of_kind = |work: &Work| matches!(work, Work::SplitRegion { .. } | Work::MergeRegions { .. });
        master.procedures().wait_for(is_of_kind).await;
    }
    Ok(proto::SetSplitOrMergeEnabledResponse { prev_value })
}

/// `IsNormalizerEnabled`: always false; there is no normalizer yet.
pub(super) async fn normalizer(
    _: &Master,
    _: proto::IsNormalizerEnabledRequest,
) -> Answer<proto::IsNormalizerEnabledResponse> {
    Ok(proto::IsNormalizerEnabledResponse { enabled: false })
}

/// `IsSnapshotCleanupEnabled`.
pub(super) async fn snapshot_cleanup(
    master: &Master,
    _: proto::IsSnapshotCleanupEnabledRequest,
) -> Answer<proto::IsSnapshotCleanupEnabledResponse> {
    let enabled = master.context().switches.is_snapshot_cleanup_on();
    Ok(proto::IsSnapshotCleanupEnabledResponse { enabled })
}

/// `SwitchSnapshotCleanup`: returns the previous value. With `synchronous`, waits for a cleanup
/// that has already started.
pub(super) async fn set_snapshot_cleanup(
    master: &Master,
    request: proto::SetSnapshotCleanupRequest,
) -> Answer<proto::SetSnapshotCleanupResponse> {
    let set = master.context().switches.set_snapshot_cleanup(request.enabled).await;
    let prev_snapshot_cleanup = set.map_err(|error| JavaException::io(error.to_string()))?;
    while request.synchronous() && !request.enabled && master.snapshot_cleaner().switch.is_running() {
        master.context().env.clock.sleep(CLEANUP_POLL).await;
    }
    Ok(proto::SetSnapshotCleanupResponse { prev_snapshot_cleanup })
}
