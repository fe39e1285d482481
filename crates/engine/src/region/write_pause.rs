//! The pause before a write while memstores fill faster than they are flushed.

use std::time::Duration;

use crate::memstore::CHUNK_BYTES_MAX;
use crate::region::Region;
use crate::write_pace::FreeMemory;

impl Region {
    /// How long the caller must wait before a write of `bytes` bytes, so that writers are in the
    /// pace of flushes. Zero as long as there is enough memory, and if the write would be refused.
    ///
    /// The region itself does not wait, because a call that writes to many regions must not wait
    /// for each of them.
    ///
    /// Writes to `hbase:meta` do not wait: without them, no region can be assigned.
    pub fn write_pause(&self, bytes: usize) -> Duration {
        let (budget, memstore_bytes) = (&self.services.budget, self.memstore_bytes());
        let is_usual = memstore_bytes < self.flush_bytes && !budget.is_above_low_mark();
        let is_refused = memstore_bytes > self.blocking_bytes || budget.is_exhausted();
        if is_usual || is_refused || self.info.table.is_meta() {
            return Duration::ZERO;
        }
        // Memstores grow by chunks, so the last one could pass the limit.
        let chunk_bytes = CHUNK_BYTES_MAX as u64;
        let free = FreeMemory {
            of_region: self.blocking_bytes.saturating_sub(memstore_bytes + chunk_bytes),
            of_server: budget.limit_bytes().saturating_sub(budget.used_bytes() + chunk_bytes),
        };
        let now = self.services.env.clock.monotonic();
        budget.pace().pause(self.encoded_name(), bytes as u64, free, now)
    }
}
