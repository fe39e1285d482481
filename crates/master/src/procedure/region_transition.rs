//! Opens, closes or reopens one region.
//!
//! Source: HBase `TransitRegionStateProcedure`.

use cell::region::{RegionInfo, ServerName};
use proto::exception::{Answer, JavaException, class};
use wire::meta::TableState;

use super::split_region::final_io_error;
use crate::assignment::RegionState;
use crate::context::Context;
use crate::refusal;

/// The change of a region. The codes are stored in journals and must not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegionTransition {
    /// Open it.
    Assign = 1,
    /// Close it.
    Unassign = 2,
    /// Close it and open it again, possibly on another server.
    Reopen = 3,
}

impl RegionTransition {
    /// The code stored in journals.
    pub fn code(self) -> u32 {
        self as u32
    }

    /// Decodes a code.
    pub fn of_code(code: u32) -> Option<RegionTransition> {
        [RegionTransition::Assign, RegionTransition::Unassign, RegionTransition::Reopen]
            .into_iter()
            .find(|known| known.code() == code)
    }
}

/// Checks that a region to open is closed, and that a region to close is open.
pub(super) fn check(context: &Context, region: &RegionInfo, transition: RegionTransition) -> Answer<()> {
    let Some(state) = context.assignment.state(region) else {
        return Err(refusal::unknown_region(&region.name()));
    };
    match (transition, &state) {
        (RegionTransition::Assign, RegionState::Closed | RegionState::FailedOpen) => {
            check_not_disabled(context, region, &state)
        }
        (RegionTransition::Assign, _) => {
            let message = format!("Unexpected state for {}", description(region, &state));
            Err(JavaException::new(class::DO_NOT_RETRY_REGION, message))
        }
        (RegionTransition::Unassign | RegionTransition::Reopen, RegionState::Open(_)) => Ok(()),
        (RegionTransition::Unassign | RegionTransition::Reopen, _) => {
            Err(refusal::region_not_open(region, &state))
        }
    }
}

/// Checks that a region to move is open, and on the server `source` if the move was planned for it.
/// Another move may have ended since.
pub(super) fn check_move(context: &Context, region: &RegionInfo, source: Option<&ServerName>) -> Answer<()> {
    check(context, region, RegionTransition::Reopen)?;
    match (context.assignment.state(region), source) {
        (Some(RegionState::Open(server)), Some(source)) if server != *source => {
            let encoded = region.encoded_name();
            let message =
                format!("region {encoded} is not moved: it is on {server}, and no longer on {source}");
            Err(JavaException::do_not_retry(message))
        }
        _ => Ok(()),
    }
}

/// A region of a disabled table stays closed: enabling the table opens it.
fn check_not_disabled(context: &Context, region: &RegionInfo, state: &RegionState) -> Answer<()> {
    match context.tables.state(&region.table) {
        Some(TableState::Disabled | TableState::Disabling) => {
            let description = description(region, state);
            Err(JavaException::do_not_retry(format!("{} is disabled for {description}", region.table)))
        }
        _ => Ok(()),
    }
}

/// A region and its state, as HBase's exceptions describe it.
fn description(region: &RegionInfo, state: &RegionState) -> String {
    let server = match state {
        RegionState::Open(server)
        | RegionState::Opening(server)
        | RegionState::Closing(server)
        | RegionState::Crashed(server) => server.to_string(),
        _ => "null".to_string(),
    };
    let encoded_name = region.encoded_name();
    format!("state={state}, location={server}, table={}, region={encoded_name}", region.table)
}

/// Runs the procedure. If the region fails to open, the procedure ends with an error. The master
/// retries to open the region later.
pub(super) async fn act(context: &Context, region: &RegionInfo, transition: RegionTransition) -> Answer<()> {
    let regions = std::slice::from_ref(region);
    match transition {
        RegionTransition::Unassign => return context.assignment.close(regions).await,
        RegionTransition::Assign => context.assignment.open_or_retry_later(regions).await?,
        RegionTransition::Reopen => context.assignment.reopen(region).await?,
    }
    context.assignment.wait_for_open(regions).await.map_err(|error| final_io_error(error.message))
}
