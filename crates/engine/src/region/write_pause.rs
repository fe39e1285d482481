//! The pause before a write while memstores fill faster than they are flushed.

use cell::mutation::Mutation;

use crate::memstore::CHUNK_BYTES_MAX;
use crate::region::Region;
use crate::write_pace::FreeMemory;

impl Region {
    /// Waits until a write of these mutations is in the pace of flushes. Called before the write
    /// holds any lock.
    ///
    /// Writes to `hbase:meta` do not wait: without them, no region can be assigned.
    pub(super) async fn pause_write(&self, mutations: &[Mutation]) {
        let (budget, memstore_bytes) = (&self.services.budget, self.memstore_bytes());
        let is_usual = memstore_bytes < self.flush_bytes && !budget.is_above_low_mark();
        if is_usual || self.info.table.is_meta() {
            return;
        }
        let cells = mutations.iter().flat_map(|mutation| &mutation.cells);
        let bytes = cells.map(|cell| cell.bytes().len() as u64).sum();
        // Memstores grow by chunks, so the last one could pass the limit.
        let chunk_bytes = CHUNK_BYTES_MAX as u64;
        let free = FreeMemory {
            of_region: self.blocking_bytes.saturating_sub(memstore_bytes + chunk_bytes),
            of_server: budget.limit_bytes().saturating_sub(budget.used_bytes() + chunk_bytes),
        };
        let clock = &self.services.env.clock;
        let pause = budget.pace().pause(self.encoded_name(), bytes, free, clock.monotonic());
        if !pause.is_zero() {
            clock.sleep(pause).await;
        }
    }
}
