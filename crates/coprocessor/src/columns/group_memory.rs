//! Memory of a call's groups and of its response, charged to the budget for all responses.

use std::sync::{Arc, Mutex, PoisonError};

use base::budget::{Budget, BudgetShare};
use proto::exception::{JavaException, class};

/// Maximum memory of a call as a multiple of the groups of all tasks: the groups, the merged
/// groups, and the message.
const RESPONSE_FACTOR: usize = 3;
/// Maximum group memory of one call as a multiple of the size at which it answers. Up to that, the
/// current unit is completed.
const OVERSHOOT_FACTOR: usize = 4;

/// The memory of one call's groups.
pub(super) struct GroupMemory {
    bytes_max: usize,
    usage: Mutex<Usage>,
}

struct Usage {
    // Bytes of groups.
    bytes: usize,
    share: BudgetShare,
}

/// Whether more groups fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GrowResult {
    /// The call may continue.
    Continue,
    /// The call should answer, but may complete the current unit.
    Full,
}

impl GroupMemory {
    /// Room for a call that answers when its groups take `bytes_max` bytes.
    pub(super) fn new(budget: &Arc<Budget>, bytes_max: usize) -> GroupMemory {
        GroupMemory { bytes_max, usage: Mutex::new(Usage { bytes: 0, share: BudgetShare::of(budget) }) }
    }

    /// Records that a task's groups have grown from `before` to `now` bytes.
    ///
    /// # Errors
    /// If the limit of the call or the budget is exceeded.
    pub(super) fn grow(&self, before: usize, now: usize) -> Result<GrowResult, JavaException> {
        let mut usage = self.usage.lock().unwrap_or_else(PoisonError::into_inner);
        usage.bytes = (usage.bytes + now).saturating_sub(before);
        let (groups, held) = (usage.bytes, usage.share.used());
        let missing = (groups * RESPONSE_FACTOR).saturating_sub(held);
        if groups > self.bytes_max.saturating_mul(OVERSHOOT_FACTOR) {
            return Err(JavaException::do_not_retry(format!(
                "groups exceed {} bytes within a few rows: request fewer aggregates or fewer groups",
                self.bytes_max.saturating_mul(OVERSHOOT_FACTOR)
            )));
        }
        if missing == 0 || usage.share.take_large(missing) {
            return Ok(if groups > self.bytes_max { GrowResult::Full } else { GrowResult::Continue });
        }
        // The budget's reserve lets calls complete their current unit.
        if usage.share.take(missing) {
            return Ok(GrowResult::Full);
        }
        Err(JavaException::new(
            class::REGION_TOO_BUSY,
            "out of memory for the groups of a response (grampus.memory)",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_share_one_memory_limit() {
        let budget = Budget::new(1 << 20);
        let (one, other) = (GroupMemory::new(&budget, 100_000), GroupMemory::new(&budget, 1 << 20));
        assert_eq!(one.grow(0, 100_000).unwrap(), GrowResult::Continue);
        assert!(budget.used() >= 300_000, "a response takes more than its groups");
        assert_eq!(one.grow(100_000, 100_001).unwrap(), GrowResult::Full);
        assert_eq!(other.grow(0, 130_000).unwrap(), GrowResult::Continue);
        assert_eq!(other.grow(0, 50_000).unwrap(), GrowResult::Full, "a quarter is reserved for completion");
        let refused = other.grow(0, 100_000).unwrap_err();
        assert!(refused.is(class::REGION_TOO_BUSY), "{refused:?}");
        drop(other);
        let refused = one.grow(0, 400_000).unwrap_err();
        assert!(refused.is(class::DO_NOT_RETRY_IO), "{refused:?}");
        drop(one);
        assert_eq!(budget.used(), 0);
    }
}
