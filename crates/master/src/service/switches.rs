//! Switches of chores that this master has not: each answers off, or on where the thing happens anyway.

use wire::exception::Answer;

use crate::master::Master;

/// The balancer is never switched off; with one server it finds nothing to do.
pub(super) const BALANCER_ON: bool = true;

/// `IsMasterInMaintenanceMode`: there is no such mode.
pub(super) async fn maintenance_mode(
    _: &Master,
    _: proto::IsInMaintenanceModeRequest,
) -> Answer<proto::IsInMaintenanceModeResponse> {
    Ok(proto::IsInMaintenanceModeResponse { in_maintenance_mode: false })
}

/// `IsBalancerEnabled`.
pub(super) async fn balancer(
    _: &Master,
    _: proto::IsBalancerEnabledRequest,
) -> Answer<proto::IsBalancerEnabledResponse> {
    Ok(proto::IsBalancerEnabledResponse { enabled: BALANCER_ON })
}

/// `IsSplitOrMergeEnabled`: regions are neither split nor merged yet.
pub(super) async fn split_or_merge(
    _: &Master,
    _: proto::IsSplitOrMergeEnabledRequest,
) -> Answer<proto::IsSplitOrMergeEnabledResponse> {
    Ok(proto::IsSplitOrMergeEnabledResponse { enabled: false })
}

/// `IsNormalizerEnabled`: there is no normalizer yet.
pub(super) async fn normalizer(
    _: &Master,
    _: proto::IsNormalizerEnabledRequest,
) -> Answer<proto::IsNormalizerEnabledResponse> {
    Ok(proto::IsNormalizerEnabledResponse { enabled: false })
}

/// `IsCatalogJanitorEnabled`: without splits there is nothing to tidy up.
pub(super) async fn catalog_janitor(
    _: &Master,
    _: proto::IsCatalogJanitorEnabledRequest,
) -> Answer<proto::IsCatalogJanitorEnabledResponse> {
    Ok(proto::IsCatalogJanitorEnabledResponse { value: false })
}

/// `IsCleanerChoreEnabled`: archived files are kept.
pub(super) async fn cleaner(
    _: &Master,
    _: proto::IsCleanerChoreEnabledRequest,
) -> Answer<proto::IsCleanerChoreEnabledResponse> {
    Ok(proto::IsCleanerChoreEnabledResponse { value: false })
}

/// `IsSnapshotCleanupEnabled`: snapshots are kept until they are deleted.
pub(super) async fn snapshot_cleanup(
    _: &Master,
    _: proto::IsSnapshotCleanupEnabledRequest,
) -> Answer<proto::IsSnapshotCleanupEnabledResponse> {
    Ok(proto::IsSnapshotCleanupEnabledResponse { enabled: false })
}
