//! Calls for chores: enable or disable periodic runs, and run them immediately.

use proto::exception::Answer;

use crate::chores::{cleaner, janitor};
use crate::master::Master;

/// `RunCatalogScan`: returns the number of submitted cleanups.
pub(super) async fn run_janitor(
    master: &Master,
    _: proto::RunCatalogScanRequest,
) -> Answer<proto::RunCatalogScanResponse> {
    Ok(proto::RunCatalogScanResponse { scan_result: Some(janitor::scan(master).await?) })
}

/// `EnableCatalogJanitor`.
pub(super) async fn enable_janitor(
    master: &Master,
    request: proto::EnableCatalogJanitorRequest,
) -> Answer<proto::EnableCatalogJanitorResponse> {
    let prev_value = Some(master.janitor().switch.enable(request.enable));
    Ok(proto::EnableCatalogJanitorResponse { prev_value })
}

/// `IsCatalogJanitorEnabled`.
pub(super) async fn janitor_enabled(
    master: &Master,
    _: proto::IsCatalogJanitorEnabledRequest,
) -> Answer<proto::IsCatalogJanitorEnabledResponse> {
    Ok(proto::IsCatalogJanitorEnabledResponse { value: master.janitor().switch.is_enabled() })
}

/// `RunCleanerChore`.
pub(super) async fn run_cleaner(
    master: &Master,
    _: proto::RunCleanerChoreRequest,
) -> Answer<proto::RunCleanerChoreResponse> {
    Ok(proto::RunCleanerChoreResponse { cleaner_chore_ran: cleaner::run(master).await })
}

/// `SetCleanerChoreRunning`.
pub(super) async fn enable_cleaner(
    master: &Master,
    request: proto::SetCleanerChoreRunningRequest,
) -> Answer<proto::SetCleanerChoreRunningResponse> {
    let prev_value = Some(master.cleaner().switch.enable(request.on));
    Ok(proto::SetCleanerChoreRunningResponse { prev_value })
}

/// `IsCleanerChoreEnabled`.
pub(super) async fn cleaner_enabled(
    master: &Master,
    _: proto::IsCleanerChoreEnabledRequest,
) -> Answer<proto::IsCleanerChoreEnabledResponse> {
    Ok(proto::IsCleanerChoreEnabledResponse { value: master.cleaner().switch.is_enabled() })
}
