//! A filter and the row that it judges.
//!
//! Cells go to the sink as they pass, and are taken back if the filter drops the row in the end. Only where a filter edits
//! complete rows are they kept in a buffer first.

use cell::Cell;
use cell::query::Scan;

use crate::error::{Error, Result};
use crate::filter::{Judged, ScanFilter};
use crate::scanner::output::{RowBuffer, Way};
use crate::scanner::sink::{Limits, ResultSink};

/// HBase's words: rows that are judged when they are complete must not be cut into batches. Java's client refuses them
/// itself; asynchbase always sends a batch.
const BATCH_CUTS_JUDGED_ROWS: &str =
    "Cannot set batch on a scan using a filter that returns true for filter.hasFilterRow";

/// The filter of a region scan.
pub(crate) struct RowFilter {
    pub(crate) scan: ScanFilter,
    // The row's cells, if the filter edits rows.
    buffer: RowBuffer,
    // The row was left out by its key; its cells are shown to the filter and go nowhere.
    skipping: bool,
    // Bytes that the row took off the limits.
    row_bytes: u64,
}

/// What a filter says of a row's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowKey {
    /// The row is read.
    Passes,
    /// It is left out.
    Filtered,
    /// It is left out, but the filter looks at its cells.
    FilteredButLookedAt,
    /// It is left out, and so are all that follow.
    Last,
}

impl RowFilter {
    pub(crate) fn new(scan: &Scan, seed: u64) -> Result<RowFilter> {
        let filter = scan.selection.filter.as_ref().expect("called for scans with a filter");
        let filter = ScanFilter::new(filter, scan.reversed, seed)?;
        if scan.batch > 0 && filter.has_filter_row() {
            return Err(Error::Incompatible { what: BATCH_CUTS_JUDGED_ROWS });
        }
        Ok(RowFilter { scan: filter, buffer: RowBuffer::default(), skipping: false, row_bytes: 0 })
    }

    /// Refuses what HBase refuses: a reversed scan that reads families which the filter does not look at on demand. By
    /// default it does.
    pub(crate) fn check_family(&self, scan: &Scan, family: &[u8]) -> Result<()> {
        let on_demand = scan.selection.load_families_on_demand.unwrap_or(true);
        if scan.reversed && on_demand && !self.scan.is_family_essential(family) {
            return Err(Error::bad_request("Reverse scan with loading CFs on demand is not supported"));
        }
        Ok(())
    }

    /// A row is found.
    pub(crate) fn begin_row(&mut self, row: &[u8]) -> Judged<RowKey> {
        self.skipping = false;
        self.row_bytes = 0;
        if !self.scan.filter_row_key(row)? {
            return Ok(RowKey::Passes);
        }
        if self.scan.is_done() {
            return Ok(RowKey::Last);
        }
        self.skipping = self.scan.sees_skipped_rows();
        Ok(if self.skipping { RowKey::FilteredButLookedAt } else { RowKey::Filtered })
    }

    /// The filter, and where cells go that pass it.
    pub(crate) fn parts(&mut self) -> (Option<&mut ScanFilter>, Way<'_>) {
        let way = if self.skipping {
            Way::Nowhere
        } else if self.scan.edits_rows() {
            Way::Buffer(&mut self.buffer)
        } else {
            Way::Sink
        };
        (Some(&mut self.scan), way)
    }

    /// Whether the row may be cut into several results.
    pub(crate) fn lets_cut(&self) -> bool {
        !self.skipping && !self.scan.has_filter_row()
    }

    /// Whether cells that pass belong to a result.
    pub(crate) fn writes(&self) -> bool {
        !self.skipping
    }

    /// Takes a cell off the limits, if it goes to the sink.
    pub(crate) fn account(&mut self, bytes: u64, limits: &mut Limits) {
        if !self.skipping && !self.scan.edits_rows() {
            take_off(bytes, &mut self.row_bytes, limits);
        }
    }

    /// The row is complete; `begun` says whether the sink has cells of it. Whether a result is there to be ended.
    pub(crate) fn judge_row(&mut self, begun: bool, limits: &mut Limits, sink: &mut dyn ResultSink) -> bool {
        if self.skipping {
            return false;
        }
        if self.scan.edits_rows() {
            return self.write_edited(limits, sink);
        }
        if begun && self.scan.filter_row() {
            sink.rollback_row();
            limits.bytes = limits.bytes.saturating_add(self.row_bytes);
            return false;
        }
        begun
    }

    fn write_edited(&mut self, limits: &mut Limits, sink: &mut dyn ResultSink) -> bool {
        let keeps_any = self.buffer.cells().any(|cell| self.scan.keeps(&cell));
        if !keeps_any || self.scan.filter_row() {
            return false;
        }
        sink.begin_result();
        let kept = |cell: &Cell<'_>| self.scan.keeps(cell);
        for cell in self.buffer.cells().filter(kept) {
            sink.cell(&cell);
            take_off(cell.len_without_tags() as u64 + 4, &mut self.row_bytes, limits);
        }
        true
    }

    /// The row is behind.
    pub(crate) fn end_row(&mut self) {
        self.scan.reset();
        self.buffer.clear();
    }
}

fn take_off(bytes: u64, taken: &mut u64, limits: &mut Limits) {
    let left = limits.bytes.saturating_sub(bytes);
    *taken += limits.bytes - left;
    limits.bytes = left;
}
