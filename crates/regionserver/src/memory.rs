//! Divides memory between memstores, open files and the block cache: the cache gets what memstores
//! and open files leave unused.
//!
//! Memstores have priority, up to their limit: a write must go to a memstore, but a block can be
//! read again. The cache gets at least its configured share, minus the indexes of open files. If
//! the process uses more than its total memory (allocators retain freed memory), the cache shrinks
//! by the excess.

use std::time::Duration;

use engine::RegionServices;
use tracing::debug;

use crate::regions::OnlineRegions;

/// How often the division is recomputed. The log accepts a few MB in that time, and memstores may
/// grow by as much.
pub(crate) const MOVE_PERIOD: Duration = Duration::from_millis(100);
/// Recomputations between two measurements of open files, whose size changes slowly.
const MOVES_PER_FILE_SCAN: u32 = 10;
/// A fraction of the memory, as 1/n. It is the free space reserved for growing memstores, the
/// minimum size of the cache, and the safety margin below the process limit. A change of the cache
/// size by less than a quarter of it is not applied.
const RESERVE_DIVISOR: u64 = 16;

/// The memory to divide.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SharedMemory {
    /// Maximum size of all memstores.
    pub(crate) memstore_bytes: u64,
    /// The size of the cache when memstores have their maximum size.
    pub(crate) cache_bytes: u64,
    /// The limit of the whole process.
    pub(crate) process_bytes: u64,
    /// Measures the memory that the whole process uses.
    pub(crate) resident_bytes: fn() -> Option<u64>,
}

impl SharedMemory {
    /// The memory that memstores, open files and cached blocks share.
    pub(crate) fn bytes(&self) -> u64 {
        self.memstore_bytes + self.cache_bytes
    }

    /// The free space reserved for growing memstores.
    pub(crate) fn memstore_growth_bytes(&self) -> u64 {
        self.bytes() / RESERVE_DIVISOR
    }

    /// The size that the cache may have, next to the other uses of memory.
    fn cache_target_bytes(&self, used: MemoryUsage) -> u64 {
        let shared = self.bytes();
        let growth =
            self.memstore_growth_bytes().min(self.memstore_bytes.saturating_sub(used.memstore_bytes));
        let others = used.memstore_bytes + growth + used.file_bytes + used.excess_bytes;
        shared.saturating_sub(others).max(shared / RESERVE_DIVISOR)
    }
}

/// Usage of the shared memory by everything except the cache.
#[derive(Clone, Copy, Debug, Default)]
struct MemoryUsage {
    memstore_bytes: u64,
    /// Parts of open files that stay in memory, such as indexes.
    file_bytes: u64,
    /// Compensation for memory that the process uses above its limit.
    excess_bytes: u64,
}

/// Divides memory between memstores and cached blocks.
pub(crate) struct MemoryMover {
    shared: SharedMemory,
    used: MemoryUsage,
    moves: u32,
}

impl MemoryMover {
    pub(crate) fn new(shared: SharedMemory) -> MemoryMover {
        // Freed memstore pages can serve as the space that is reserved for growth.
        base::pages::set_resident_large_bytes(shared.memstore_growth_bytes());
        MemoryMover { shared, used: MemoryUsage::default(), moves: 0 }
    }

    /// Resizes the cache to the memory that the other uses leave. Call it every [`MOVE_PERIOD`].
    pub(crate) fn move_memory(&mut self, services: &RegionServices, regions: &OnlineRegions) {
        if self.moves.is_multiple_of(MOVES_PER_FILE_SCAN) {
            self.used.file_bytes = regions.all().iter().map(|region| region.open_file_bytes()).sum();
        }
        self.moves = self.moves.wrapping_add(1);
        let resident = (self.shared.resident_bytes)().unwrap_or(0);
        self.used.excess_bytes = excess(self.used.excess_bytes, resident, self.shared.process_bytes);
        self.used.memstore_bytes = services.budget.used_bytes();
        let loader = &services.loader;
        let (wanted, has) = (self.shared.cache_target_bytes(self.used), loader.stats().capacity_bytes);
        if wanted.abs_diff(has) >= self.shared.bytes() / RESERVE_DIVISOR / 4 {
            debug!(cache = wanted, used = ?self.used, "memory moved");
            loader.set_cache_bytes(wanted);
        }
    }
}

/// The bytes by which the cache is smaller, to compensate for memory above `limit`. `before` is the
/// result of the last call. The result grows by the whole overshoot immediately, and shrinks slowly
/// while there is free memory.
fn excess(before: u64, resident: u64, limit: u64) -> u64 {
    // The margin covers growth until the next call.
    let wanted = limit - limit / RESERVE_DIVISOR;
    if resident > wanted {
        return (before + (resident - wanted)).min(limit);
    }
    let room = (wanted - resident).saturating_sub(limit / RESERVE_DIVISOR);
    before.saturating_sub(room / 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn cache_mib(memstore_mib: u64, file_mib: u64, excess_mib: u64) -> u64 {
        let shared = SharedMemory {
            memstore_bytes: 400 * MIB,
            cache_bytes: 400 * MIB,
            process_bytes: 1000 * MIB,
            resident_bytes: || None,
        };
        let used = MemoryUsage {
            memstore_bytes: memstore_mib * MIB,
            file_bytes: file_mib * MIB,
            excess_bytes: excess_mib * MIB,
        };
        shared.cache_target_bytes(used) / MIB
    }

    #[test]
    fn the_cache_gets_the_unused_memory() {
        assert_eq!(cache_mib(0, 0, 0), 750, "all except the space reserved for growing memstores");
        assert_eq!(cache_mib(200, 0, 0), 550);
        assert_eq!(cache_mib(390, 0, 0), 400);
        assert_eq!(cache_mib(400, 0, 0), 400, "the cache's configured share");
        assert_eq!(cache_mib(400, 100, 0), 300);
        assert_eq!(cache_mib(400, 100, 50), 250);
        assert_eq!(cache_mib(400, 300, 300), 50, "the minimum");
    }

    #[test]
    fn excess_is_compensated_until_memory_is_free() {
        assert_eq!(excess(0, 900, 1600), 0);
        assert_eq!(excess(0, 1600, 1600), 100, "compensates shortly below the limit");
        assert_eq!(excess(100, 1700, 1600), 300);
        assert_eq!(excess(300, 1450, 1600), 300, "unchanged near the limit");
        assert_eq!(excess(300, 1080, 1600), 290);
        assert_eq!(excess(5000, 1700, 1600), 1600);
    }
}
