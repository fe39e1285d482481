//! The progress of a running compaction.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use base::BoxFuture;

use crate::instruments::MergeSpeed;
use crate::region::Region;
use crate::region::compact::CompactionThrottle;
use crate::store::StoreFile;

/// Counts the input cells of a compaction: as compacting when it begins, as compacted when this is
/// dropped. What it reads counts in the speed of all compactions.
pub(super) struct CompactionProgress<'a> {
    region: &'a Region,
    throttle: &'a dyn CompactionThrottle,
    cells: u64,
    /// Bytes of the inputs without compression, and those that were read.
    bytes: u64,
    read_bytes: AtomicU64,
    /// By how many files the compaction reduces the store.
    merged_files: usize,
}

impl<'a> CompactionProgress<'a> {
    /// A compaction of `inputs` into at most `outputs` files begins. `throttle` limits its speed.
    pub(super) fn begin(
        region: &'a Region,
        inputs: &[Arc<StoreFile>],
        outputs: usize,
        throttle: &'a dyn CompactionThrottle,
    ) -> CompactionProgress<'a> {
        let progress = CompactionProgress {
            region,
            throttle,
            cells: inputs.iter().map(|file| file.cell_count()).sum(),
            bytes: inputs.iter().map(|file| file.reader().trailer().total_plain_bytes).sum(),
            read_bytes: AtomicU64::new(0),
            merged_files: inputs.len().saturating_sub(outputs),
        };
        region.counters.compacting_cells.fetch_add(progress.cells, Relaxed);
        if progress.merges() {
            progress.speed().begin(region.services.env.clock.monotonic());
        }
        progress
    }

    /// All inputs were read.
    pub(super) fn complete(&self) {
        self.record_read(self.bytes);
    }

    fn merges(&self) -> bool {
        self.merged_files > 0
    }

    fn record_read(&self, bytes: u64) {
        // The bytes of the cells differ a little from those of the files.
        let left = self.bytes.saturating_sub(self.read_bytes.fetch_add(bytes, Relaxed));
        let share = bytes.min(left) as f64 / self.bytes.max(1) as f64;
        if self.merges() {
            let now = self.region.services.env.clock.monotonic();
            self.speed().add(self.merged_files as f64 * share, now);
        }
    }

    fn speed(&self) -> &MergeSpeed {
        self.region.services.instruments.merges()
    }
}

impl CompactionThrottle for CompactionProgress<'_> {
    fn throttle(&self, bytes: u64) -> BoxFuture<'_, bool> {
        self.record_read(bytes);
        self.throttle.throttle(bytes)
    }
}

impl Drop for CompactionProgress<'_> {
    fn drop(&mut self) {
        self.region.counters.compacted_cells.fetch_add(self.cells, Relaxed);
        if self.merges() {
            self.speed().end(self.region.services.env.clock.monotonic());
        }
    }
}
