//! Opening, closing and reopening one region.
//!
//! Source: HBase `TransitRegionStateProcedure`.

use cell::region::RegionInfo;
use wire::exception::{Answer, JavaException, class};

use super::split_region::final_io;
use crate::assignment::RegionState;
use crate::context::Context;
use crate::refusal;

/// What happens to a region. The codes are in journals: never renumber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transit {
    /// It is opened.
    Assign = 1,
    /// It is closed.
    Unassign = 2,
    /// It is closed and opened again, maybe elsewhere.
    Reopen = 3,
}

impl Transit {
    /// The code in journals.
    pub fn code(self) -> u32 {
        self as u32
    }

    /// The meaning of a code.
    pub fn of_code(code: u32) -> Option<Transit> {
        [Transit::Assign, Transit::Unassign, Transit::Reopen].into_iter().find(|known| known.code() == code)
    }
}

/// A region that is to be opened must be closed, one that is to be closed must be open.
pub(super) fn check(context: &Context, region: &RegionInfo, transit: Transit) -> Answer<()> {
    let Some(state) = context.assignment.state(region) else {
        return Err(refusal::unknown_region(&region.name()));
    };
    match (transit, &state) {
        (Transit::Assign, RegionState::Closed | RegionState::FailedOpen) => Ok(()),
        (Transit::Assign, _) => {
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
        (Transit::Unassign | Transit::Reopen, RegionState::Open(_)) => Ok(()),
        (Transit::Unassign | Transit::Reopen, _) => Err(refusal::region_not_open(region, &state)),
    }
}

/// Does it. A region that cannot be opened ends the procedure; it is retried later all the same.
pub(super) async fn act(context: &Context, region: &RegionInfo, transit: Transit) -> Answer<()> {
    let regions = std::slice::from_ref(region);
    match transit {
        Transit::Unassign => return context.assignment.close(regions).await,
        Transit::Assign => context.assignment.open_or_retry_later(regions).await?,
        Transit::Reopen => context.assignment.reopen(region).await?,
    }
    context.assignment.wait_for_open(regions).await.map_err(|error| final_io(error.message))
}
