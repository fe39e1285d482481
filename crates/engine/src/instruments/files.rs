//! What flushes and compactions did, and where that is noted: a table's places and the server's are alike.

use std::time::Duration;

use base::metrics::{Counter, Histogram, Sizes, Times};

/// A flush that ended.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FlushWork {
    pub(crate) took: Duration,
    /// Bytes of cells in the memstores.
    pub(crate) memstore_bytes: u64,
    pub(crate) output_bytes: u64,
    /// These cells, which are not all in files: of a column no more versions are than its family keeps.
    pub(crate) memstore_cells: u64,
}

/// A compaction that ended.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CompactionWork {
    /// Whether it was to take all files, and did; not one that happened to.
    pub(crate) is_major: bool,
    pub(crate) took: Duration,
    pub(crate) input_files: u64,
    pub(crate) input_bytes: u64,
    pub(crate) output_files: u64,
    /// Cells in these.
    pub(crate) output_cells: u64,
    /// Serialized bytes of these.
    pub(crate) output_cell_bytes: u64,
    pub(crate) output_bytes: u64,
}

/// Where flushes are noted.
pub(super) struct FlushPlaces<'a> {
    pub(super) time: &'a Times,
    pub(super) memstore_size: &'a Sizes,
    pub(super) output_size: &'a Sizes,
    pub(super) memstore_bytes: &'a Counter,
    pub(super) output_bytes: &'a Counter,
}

impl FlushPlaces<'_> {
    pub(super) fn note(&self, flush: &FlushWork) {
        self.time.record(flush.took);
        self.memstore_size.record(flush.memstore_bytes);
        self.output_size.record(flush.output_bytes);
        self.memstore_bytes.add(flush.memstore_bytes);
        self.output_bytes.add(flush.output_bytes);
    }
}

/// Where compactions are noted, or major ones.
pub(super) struct CompactionPlaces<'a> {
    pub(super) time: &'a Times,
    pub(super) input_files: &'a Histogram,
    pub(super) input_size: &'a Sizes,
    pub(super) output_files: &'a Histogram,
    pub(super) output_size: &'a Sizes,
    pub(super) input_bytes: &'a Counter,
    pub(super) output_bytes: &'a Counter,
}

impl CompactionPlaces<'_> {
    pub(super) fn note(&self, compaction: &CompactionWork) {
        self.time.record(compaction.took);
        self.input_files.record(compaction.input_files);
        self.input_size.record(compaction.input_bytes);
        self.output_files.record(compaction.output_files);
        self.output_size.record(compaction.output_bytes);
        self.input_bytes.add(compaction.input_bytes);
        self.output_bytes.add(compaction.output_bytes);
    }
}
