//! A filter and the row that it judges.
//!
//! Cells go to the sink as they pass, and are taken back if the filter drops the row in the end. Only where a filter edits
//! complete rows are they kept in a buffer first, and where families that the filter does not look at are read on demand:
//! when the others have passed.

use std::sync::Arc;

use base::env::Clock;
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
    // Whether there are families that are read on demand.
    joins: bool,
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

/// When a family of a row is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// With those that decide whether there is a row.
    First,
    /// When these have passed.
    OnDemand,
    /// Nothing of it can pass: of the filters that judge single cells only those look at some families alone that let
    /// cells of no other one pass (`ColumnValueFilter`).
    Never,
}

impl RowFilter {
    pub(crate) fn new(scan: &Scan, seed: u64) -> Result<RowFilter> {
        let filter = scan.selection.filter.as_ref().expect("called for scans with a filter");
        let filter = ScanFilter::new(filter, scan.reversed, seed)?;
        if scan.batch > 0 && filter.has_filter_row() {
            return Err(Error::Incompatible { what: BATCH_CUTS_JUDGED_ROWS });
        }
        Ok(RowFilter {
            scan: filter,
            buffer: RowBuffer::default(),
            skipping: false,
            row_bytes: 0,
            joins: false,
        })
    }

    /// Begins anew with another number for filters that choose at random.
    pub(crate) fn seed(&mut self, scan: &Scan, seed: u64) -> Result<()> {
        *self = RowFilter { joins: self.joins, ..RowFilter::new(scan, seed)? };
        Ok(())
    }

    /// Adds what it takes to the account of the call at work.
    pub(crate) fn sample(&mut self, clock: Arc<dyn Clock>) {
        self.scan.sample(clock);
    }

    /// When `family` is read. Families that the filter does not look at are read on demand; a scan wants it so by default.
    ///
    /// # Errors
    /// [`Error::BadRequest`] if the scan is reversed and there are such families, as in HBase.
    pub(crate) fn turn_of(&mut self, scan: &Scan, family: &[u8]) -> Result<Turn> {
        let on_demand = scan.selection.load_families_on_demand.unwrap_or(true);
        if !on_demand || self.scan.is_family_essential(family) {
            return Ok(Turn::First);
        }
        if scan.reversed {
            return Err(Error::bad_request("Reverse scan with loading CFs on demand is not supported"));
        }
        if !self.scan.has_filter_row() {
            return Ok(Turn::Never);
        }
        self.joins = true;
        Ok(Turn::OnDemand)
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
        } else if self.buffers() {
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
        if !self.skipping && !self.buffers() {
            take_off(bytes, &mut self.row_bytes, limits);
        }
    }

    fn buffers(&self) -> bool {
        self.joins || self.scan.edits_rows()
    }

    /// All of the row that the filter looks at was read. Whether the row passes, so that the rest of it is wanted.
    pub(crate) fn passes_so_far(&mut self) -> bool {
        if self.skipping || self.buffer.len() == 0 {
            self.buffer.clear();
            return false;
        }
        self.edit();
        // Where the filter left nothing it is not asked again: the rest of the row may still come.
        let passes = self.buffer.len() == 0 || !self.scan.filter_row();
        if !passes {
            self.buffer.clear();
        }
        passes
    }

    /// The row is complete; `begun` says whether the sink has cells of it. Whether a result is there to be ended.
    pub(crate) fn judge_row(&mut self, begun: bool, limits: &mut Limits, sink: &mut dyn ResultSink) -> bool {
        if self.skipping {
            return false;
        }
        if self.joins {
            self.buffer.sort_families();
            return self.write_buffer(limits, sink);
        }
        if self.scan.edits_rows() {
            self.edit();
            return self.buffer.len() > 0 && !self.scan.filter_row() && self.write_buffer(limits, sink);
        }
        if begun && self.scan.filter_row() {
            sink.rollback_row();
            limits.bytes = limits.bytes.saturating_add(self.row_bytes);
            return false;
        }
        begun
    }

    fn edit(&mut self) {
        let RowFilter { scan, buffer, .. } = self;
        if scan.edits_rows() {
            buffer.retain(|cell| scan.keeps(cell));
        }
    }

    fn write_buffer(&mut self, limits: &mut Limits, sink: &mut dyn ResultSink) -> bool {
        if self.buffer.len() == 0 {
            return false;
        }
        sink.begin_result(false);
        for cell in self.buffer.cells() {
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
