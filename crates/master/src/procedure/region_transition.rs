//! Opens, closes or reopens one region.
//!
//! Source: HBase `TransitRegionStateProcedure`.

use cell::region::RegionInfo;
use proto::exception::{Answer, JavaException, class};

use super::split_region::final_io_error;
use crate::assignment::RegionState;
use crate::context::Context;
use crate::refusal;

/// What happens to a region. The codes are stored in journals: never renumber.
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

/// A region to open must be closed, and a region to close must be open.
pub(super) fn check(context: &Context, region: &RegionInfo, transition: RegionTransition) -> Answer<()> {
    let Some(state) = context.assignment.state(region) else {
        return Err(refusal::unknown_region(&region.name()));
    };
    match (transition, &state) {
        (RegionTransition::Assign, RegionState::Closed | RegionState::FailedOpen) => Ok(()),
        (RegionTransition::Assign, _) => {
            let server = match &state {
                RegionState::Open(server) | RegionState::Opening(server) | RegionState::Closing(server) => {
                    server.to_string()
                }
                _ => "null".to_string(),
            };
            let message = format!(
                "Unexpected state for state={state}, location={server}, table={}, region={}",
                region.table,
                region.encoded_name()
            );
            Err(JavaException::new(class::DO_NOT_RETRY_REGION, message))
        }
        (RegionTransition::Unassign | RegionTransition::Reopen, RegionState::Open(_)) => Ok(()),
        (RegionTransition::Unassign | RegionTransition::Reopen, _) => {
            Err(refusal::region_not_open(region, &state))
        }
    }
}

/// Runs the procedure. If the region cannot be opened, the procedure ends, but the region is still
/// retried later.
pub(super) async fn act(context: &Context, region: &RegionInfo, transition: RegionTransition) -> Answer<()> {
    let regions = std::slice::from_ref(region);
    match transition {
        RegionTransition::Unassign => return context.assignment.close(regions).await,
        RegionTransition::Assign => context.assignment.open_or_retry_later(regions).await?,
        RegionTransition::Reopen => context.assignment.reopen(region).await?,
    }
    context.assignment.wait_for_open(regions).await.map_err(|error| final_io_error(error.message))
}
