//! A filter and the row that it judges.
//!
//! Cells go to the sink as they pass, and are rolled back if the filter rejects the row at its end.
//! They are buffered first in two cases: if a filter edits complete rows, or if families that the
//! filter does not need are read on demand, after the other families have passed.

use std::sync::Arc;

use base::env::Clock;
use cell::query::Scan;

use crate::error::{Error, Result};
use crate::filter::{FilterResult, ScanFilter};
use crate::scanner::output::{Destination, RowBuffer};
use crate::scanner::sink::{Limits, ResultSink};

/// HBase's message: a filter that judges complete rows cannot be combined with batches. The Java
/// client rejects such scans itself; asynchbase always sets a batch.
const BATCH_WITH_ROW_FILTER: &str =
    "Cannot set batch on a scan using a filter that returns true for filter.hasFilterRow";

/// The filter of a region scan.
pub(crate) struct RowFilter {
    pub(crate) scan: ScanFilter,
    // The cells of the row, if the filter edits rows or families are read on demand.
    buffer: RowBuffer,
    // The row was rejected by its key. The filter still sees its cells, but they are not written.
    skipping: bool,
    // Bytes of the row that were subtracted from the limit of bytes.
    row_bytes: u64,
    // Whether some families are read on demand.
    has_on_demand_families: bool,
}

/// A filter's verdict on the key of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowKeyVerdict {
    /// The row is read.
    Passes,
    /// The row is skipped.
    Filtered,
    /// The row is skipped, but the filter must see its cells.
    FilteredButEvaluated,
    /// The row is skipped, and so are all later rows.
    EndsScan,
}

/// When a family of a row is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadOrder {
    /// First: the family is one of those that decide whether the row exists.
    First,
    /// After these families have passed.
    OnDemand,
    /// Never, because none of its cells can pass. The only filter of single cells that does not
    /// need all families is `ColumnValueFilter`, and it rejects all cells of other families.
    Never,
}

impl RowFilter {
    /// The filter of `scan`, which must have one. Filters that select at random use `seed`; `clock`
    /// measures the filter's share of a call.
    pub(crate) fn new(scan: &Scan, seed: u64, clock: Arc<dyn Clock>) -> Result<RowFilter> {
        let filter = scan.selection.filter.as_ref().expect("called for scans with a filter");
        let mut filter = ScanFilter::new(filter, scan.reversed, seed)?;
        filter.sample(clock);
        if scan.batch > 0 && filter.has_filter_row() {
            return Err(Error::Incompatible { what: BATCH_WITH_ROW_FILTER });
        }
        Ok(RowFilter {
            scan: filter,
            buffer: RowBuffer::default(),
            skipping: false,
            row_bytes: 0,
            has_on_demand_families: false,
        })
    }

    /// When `family` is read. Unless the scan disables it, families that the filter does not need
    /// are read on demand.
    ///
    /// # Errors
    /// [`Error::BadRequest`] if the scan is reversed and there are such families, as in HBase.
    pub(crate) fn read_order_of(&mut self, scan: &Scan, family: &[u8]) -> Result<ReadOrder> {
        let on_demand = scan.selection.load_families_on_demand.unwrap_or(true);
        if !on_demand || self.scan.is_family_essential(family) {
            return Ok(ReadOrder::First);
        }
        if scan.reversed {
            return Err(Error::bad_request("Reverse scan with loading CFs on demand is not supported"));
        }
        if !self.scan.has_filter_row() {
            return Ok(ReadOrder::Never);
        }
        self.has_on_demand_families = true;
        Ok(ReadOrder::OnDemand)
    }

    /// Begins a row, and judges its key.
    pub(crate) fn begin_row(&mut self, row: &[u8]) -> FilterResult<RowKeyVerdict> {
        debug_assert!(self.buffer.len() == 0, "a row begins with an empty buffer");
        self.skipping = false;
        self.row_bytes = 0;
        if !self.scan.filter_row_key(row)? {
            return Ok(RowKeyVerdict::Passes);
        }
        if self.scan.is_done() {
            return Ok(RowKeyVerdict::EndsScan);
        }
        self.skipping = self.scan.sees_skipped_rows();
        Ok(if self.skipping { RowKeyVerdict::FilteredButEvaluated } else { RowKeyVerdict::Filtered })
    }

    /// The filter, and the destination of the cells that pass it.
    pub(crate) fn parts(&mut self) -> (Option<&mut ScanFilter>, Destination<'_>) {
        let destination = if self.skipping {
            Destination::Nowhere
        } else if self.is_buffered() {
            Destination::Buffer(&mut self.buffer)
        } else {
            Destination::Sink
        };
        (Some(&mut self.scan), destination)
    }

    /// Whether the row may be cut into several results.
    pub(crate) fn may_split_row(&self) -> bool {
        !self.skipping && !self.scan.has_filter_row()
    }

    /// Whether cells that pass are part of a result.
    pub(crate) fn writes_cells(&self) -> bool {
        !self.skipping
    }

    /// Subtracts a cell from the limit of bytes, if the cell goes to the sink.
    pub(crate) fn subtract_cell(&mut self, bytes: u64, limits: &mut Limits) {
        if !self.skipping && !self.is_buffered() {
            subtract_bytes(bytes, &mut self.row_bytes, limits);
        }
    }

    fn is_buffered(&self) -> bool {
        self.has_on_demand_families || self.scan.edits_rows()
    }

    /// Called after all families that the filter needs were read. Returns whether the row passes so
    /// far, so that its other families are wanted.
    pub(crate) fn passes_so_far(&mut self) -> bool {
        if self.skipping || self.buffer.len() == 0 {
            self.buffer.clear();
            return false;
        }
        self.edit();
        // If the edit left no cell, the filter does not judge the row here: other families may
        // still have cells.
        let passes = self.buffer.len() == 0 || !self.scan.filter_row();
        if !passes {
            self.buffer.clear();
        }
        passes
    }

    /// Judges the complete row. `begun` is whether the sink has cells of it. Returns whether the
    /// sink has a result to end.
    pub(crate) fn judge_row(&mut self, begun: bool, limits: &mut Limits, sink: &mut dyn ResultSink) -> bool {
        if self.skipping {
            return false;
        }
        if self.has_on_demand_families {
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
            subtract_bytes(cell.len_without_tags() as u64 + 4, &mut self.row_bytes, limits);
        }
        true
    }

    /// Ends the row.
    pub(crate) fn end_row(&mut self) {
        self.scan.reset();
        self.buffer.clear();
    }
}

fn subtract_bytes(bytes: u64, taken: &mut u64, limits: &mut Limits) {
    let left = limits.bytes.saturating_sub(bytes);
    *taken += limits.bytes - left;
    limits.bytes = left;
}
