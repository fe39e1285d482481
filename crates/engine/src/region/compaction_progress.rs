//! The progress of a running compaction.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use base::BoxFuture;

use crate::instruments::{CompactionForecast, ExpectedCompaction, ForecastNumber};
use crate::region::Region;
use crate::region::compact::CompactionThrottle;
use crate::store::StoreFile;

/// Counts the input cells of a compaction: as compacting when it begins, as compacted when this is
/// dropped. What it reads counts in the speed of all compactions.
pub(super) struct CompactionProgress<'a> {
    region: &'a Region,
    throttle: &'a dyn CompactionThrottle,
    cells: u64,
    /// `None` if it does not reduce the number of files.
    number: Option<ForecastNumber>,
}

impl<'a> CompactionProgress<'a> {
    /// A compaction of `inputs` of a store into at most `outputs` files begins. `throttle` limits
    /// its speed.
    pub(super) fn begin(
        region: &'a Region,
        (store, inputs): (usize, &[Arc<StoreFile>]),
        outputs: usize,
        throttle: &'a dyn CompactionThrottle,
    ) -> CompactionProgress<'a> {
        let cells = inputs.iter().map(|file| file.cell_count()).sum();
        region.counters.compacting_cells.fetch_add(cells, Relaxed);
        let mut progress = CompactionProgress { region, throttle, cells, number: None };
        if inputs.len() > outputs {
            let bytes = inputs.iter().map(|file| file.plain_bytes()).sum();
            let store = (region.encoded_name().clone(), store);
            let compaction = ExpectedCompaction { store, bytes, files: inputs.len() - outputs };
            progress.number = Some(progress.forecast().begin(compaction, progress.now()));
        }
        progress
    }

    /// All inputs were read.
    pub(super) fn complete(&self) {
        if let Some(number) = self.number {
            self.forecast().complete(number, self.now());
        }
    }

    fn forecast(&self) -> &CompactionForecast {
        self.region.services.instruments.compaction_forecast()
    }

    fn now(&self) -> Duration {
        self.region.services.env.clock.monotonic()
    }
}

impl CompactionThrottle for CompactionProgress<'_> {
    fn throttle(&self, bytes: u64) -> BoxFuture<'_, bool> {
        if let Some(number) = self.number {
            self.forecast().record_read(number, bytes, self.now());
        }
        self.throttle.throttle(bytes)
    }
}

impl Drop for CompactionProgress<'_> {
    fn drop(&mut self) {
        self.region.counters.compacted_cells.fetch_add(self.cells, Relaxed);
        if let Some(number) = self.number {
            self.forecast().end(number, self.now());
        }
    }
}
