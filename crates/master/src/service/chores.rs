//! Calls about chores: whether they run by themselves, and a run now.

use wire::exception::Answer;

use crate::chores::{cleaner, janitor};
use crate::master::Master;

/// `RunCatalogScan`: how much there was to tidy up.
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
    let prev_value = Some(master.janitor().turn.enable(request.enable));
    Ok(proto::EnableCatalogJanitorResponse { prev_value })
}

/// `IsCatalogJanitorEnabled`.
pub(super) async fn janitor_enabled(
    master: &Master,
    _: proto::IsCatalogJanitorEnabledRequest,
) -> Answer<proto::IsCatalogJanitorEnabledResponse> {
    Ok(proto::IsCatalogJanitorEnabledResponse { value: master.janitor().turn.is_enabled() })
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
    let prev_value = Some(master.cleaner().turn.enable(request.on));
    Ok(proto::SetCleanerChoreRunningResponse { prev_value })
}

/// `IsCleanerChoreEnabled`.
pub(super) async fn cleaner_enabled(
    master: &Master,
    _: proto::IsCleanerChoreEnabledRequest,
) -> Answer<proto::IsCleanerChoreEnabledResponse> {
    Ok(proto::IsCleanerChoreEnabledResponse { value: master.cleaner().turn.is_enabled() })
}
