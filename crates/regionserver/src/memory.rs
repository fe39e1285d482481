//! Who has the memory: what memstores and open files do not use of what they and the cached blocks have together, the
//! cache has.
//!
//! Memstores come first, up to their limit: a write has nowhere else to go, a block can be read again. The cache has at
//! least its own share, less what the indexes of open files take. Where the process is found to take more than all of its
//! memory (allocators keep what they were given back), the cache makes up for that too.

use std::time::Duration;

use engine::RegionServices;
use tracing::debug;

use crate::regions::OnlineRegions;

/// How often memory moves. A disk takes a few MB of log in that time, which memstores may grow by.
pub(crate) const MOVE_PERIOD: Duration = Duration::from_millis(100);
/// Moves between two looks at what changes slowly: open files.
const LOOK_MOVES: u32 = 10;
/// The part of the common memory, as 1/n, that memstores find free when they grow, that the cache has at least, and below
/// which it is not worth moving any.
const MARGIN: u64 = 16;

/// What is divided.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Common {
    /// The most that memstores may have.
    pub(crate) memstore_bytes: u64,
    /// What the cache has when they have that.
    pub(crate) cache_bytes: u64,
    /// What the process may take, with everything else.
    pub(crate) process_bytes: u64,
}

impl Common {
    /// What memstores and cached blocks may have together.
    pub(crate) fn bytes(&self) -> u64 {
        self.memstore_bytes + self.cache_bytes
    }

    /// What memstores find free when they grow.
    pub(crate) fn memstore_growth_bytes(&self) -> u64 {
        self.bytes() / MARGIN
    }

    /// The most that the cache may have, beside what others use.
    fn cache_bytes_beside(&self, used: Used) -> u64 {
        let common = self.bytes();
        let growth =
            self.memstore_growth_bytes().min(self.memstore_bytes.saturating_sub(used.memstore_bytes));
        let others = used.memstore_bytes + growth + used.file_bytes + used.excess_bytes;
        common.saturating_sub(others).max(common / MARGIN)
    }
}

/// What others than the cache use of the common memory.
#[derive(Clone, Copy, Debug, Default)]
struct Used {
    memstore_bytes: u64,
    /// Indexes and the like of open files.
    file_bytes: u64,
    /// What the process takes beyond all of its memory.
    excess_bytes: u64,
}

/// Moves memory between memstores and cached blocks.
pub(crate) struct MemoryMover {
    common: Common,
    used: Used,
    moves: u32,
}

impl MemoryMover {
    pub(crate) fn new(common: Common) -> MemoryMover {
        // What is left free for them may as well be memory that they gave back.
        base::pages::keep_large_at_hand(common.memstore_growth_bytes());
        MemoryMover { common, used: Used::default(), moves: 0 }
    }

    /// Gives the cache what the others leave. To be called every [`MOVE_PERIOD`].
    pub(crate) fn move_memory(&mut self, services: &RegionServices, regions: &OnlineRegions) {
        if self.moves.is_multiple_of(LOOK_MOVES) {
            self.used.file_bytes = regions.all().iter().map(|region| region.open_file_bytes()).sum();
        }
        self.moves = self.moves.wrapping_add(1);
        let resident = base::memory::resident_bytes().unwrap_or(0);
        self.used.excess_bytes = excess(self.used.excess_bytes, resident, self.common.process_bytes);
        self.used.memstore_bytes = services.budget.used_bytes();
        let loader = &services.loader;
        let (wanted, has) = (self.common.cache_bytes_beside(self.used), loader.stats().capacity_bytes);
        if wanted.abs_diff(has) >= self.common.bytes() / MARGIN / 4 {
            debug!(cache = wanted, used = ?self.used, "memory moved");
            loader.set_cache_bytes(wanted);
        }
    }
}

/// What to make up for, where `before` is made up for already: all that is too much at once, and little by little less of it
/// where there is room.
fn excess(before: u64, resident: u64, may: u64) -> u64 {
    // The margin is for what comes until the next move.
    let wanted = may - may / MARGIN;
    if resident > wanted {
        return (before + (resident - wanted)).min(may);
    }
    let room = (wanted - resident).saturating_sub(may / MARGIN);
    before.saturating_sub(room / 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn cache_mib(memstore_mib: u64, file_mib: u64, excess_mib: u64) -> u64 {
        let common = Common { memstore_bytes: 400 * MIB, cache_bytes: 400 * MIB, process_bytes: 1000 * MIB };
        let used = Used {
            memstore_bytes: memstore_mib * MIB,
            file_bytes: file_mib * MIB,
            excess_bytes: excess_mib * MIB,
        };
        common.cache_bytes_beside(used) / MIB
    }

    #[test]
    fn the_cache_has_what_others_leave() {
        assert_eq!(cache_mib(0, 0, 0), 750, "but for some that memstores may grow by");
        assert_eq!(cache_mib(200, 0, 0), 550);
        assert_eq!(cache_mib(390, 0, 0), 400);
        assert_eq!(cache_mib(400, 0, 0), 400, "its share");
        assert_eq!(cache_mib(400, 100, 0), 300);
        assert_eq!(cache_mib(400, 100, 50), 250);
        assert_eq!(cache_mib(400, 300, 300), 50, "a little always");
    }

    #[test]
    fn what_is_too_much_is_made_up_for_until_there_is_room() {
        assert_eq!(excess(0, 900, 1600), 0);
        assert_eq!(excess(0, 1600, 1600), 100, "a little before it is too much");
        assert_eq!(excess(100, 1700, 1600), 300);
        assert_eq!(excess(300, 1450, 1600), 300, "near the limit it stays");
        assert_eq!(excess(300, 1080, 1600), 290);
        assert_eq!(excess(5000, 1700, 1600), 1600);
    }
}
