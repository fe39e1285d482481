//! Results of flushes and compactions, and where they are recorded. Tables and the server have the
//! same metrics.

use std::time::Duration;

use base::metrics::{Counter, Histogram, Sizes, Times};

/// The result of a flush.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FlushWork {
    pub(crate) took: Duration,
    /// Bytes of cells in the memstores.
    pub(crate) memstore_bytes: u64,
    pub(crate) output_bytes: u64,
    /// Cells in the memstores. Not all get into files: a flush drops versions in excess of those
    /// that the family keeps.
    pub(crate) memstore_cells: u64,
}

/// The result of a compaction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CompactionWork {
    /// Whether it was selected as a major compaction, and did not merely take all files.
    pub(crate) is_major: bool,
    pub(crate) took: Duration,
    pub(crate) input_files: u64,
    pub(crate) input_bytes: u64,
    pub(crate) output_files: u64,
    /// Cells in the output files.
    pub(crate) output_cells: u64,
    /// Serialized bytes of these cells.
    pub(crate) output_cell_bytes: u64,
    pub(crate) output_bytes: u64,
}

/// The metrics of flushes.
pub(super) struct FlushMetrics<'a> {
    pub(super) time: &'a Times,
    pub(super) memstore_size: &'a Sizes,
    pub(super) output_size: &'a Sizes,
    pub(super) memstore_bytes: &'a Counter,
    pub(super) output_bytes: &'a Counter,
}

impl FlushMetrics<'_> {
    pub(super) fn record(&self, flush: &FlushWork) {
        self.time.record(flush.took);
        self.memstore_size.record(flush.memstore_bytes);
        self.output_size.record(flush.output_bytes);
        self.memstore_bytes.add(flush.memstore_bytes);
        self.output_bytes.add(flush.output_bytes);
    }
}

/// The metrics of all compactions, or of major ones.
pub(super) struct CompactionMetrics<'a> {
    pub(super) time: &'a Times,
    pub(super) input_files: &'a Histogram,
    pub(super) input_size: &'a Sizes,
    pub(super) output_files: &'a Histogram,
    pub(super) output_size: &'a Sizes,
    pub(super) input_bytes: &'a Counter,
    pub(super) output_bytes: &'a Counter,
}

impl CompactionMetrics<'_> {
    pub(super) fn record(&self, compaction: &CompactionWork) {
        self.time.record(compaction.took);
        self.input_files.record(compaction.input_files);
        self.input_size.record(compaction.input_bytes);
        self.output_files.record(compaction.output_files);
        self.output_size.record(compaction.output_bytes);
        self.input_bytes.add(compaction.input_bytes);
        self.output_bytes.add(compaction.output_bytes);
    }
}
