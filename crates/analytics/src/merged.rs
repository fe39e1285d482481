//! Collects the rows of a scan into vectors. Used for all rows that are not read from a stretch.

use std::ops::Range;
use std::sync::Arc;

use cell::Cell;
use columnar::strings::Strings;
use columnar::{Batch, Column, Vector};
use engine::error::Error;
use engine::scanner::{Limits, ResultEnd, ResultSink};

use crate::rows::RowsBuilder;
use crate::scan::{BatchSink, TakenRows};
use crate::versions::Versions;

/// Maximum numbers of rows and values in a batch. The last row may exceed them if it has several
/// versions.
const BATCH_ROWS: usize = 4096;
const BATCH_VALUES: usize = 1 << 20;
/// Maximum bytes of the cells, wanted or not, from which a batch is built, and of the values built
/// from them.
const BATCH_BYTES: usize = 16 << 20;
/// A batch counts as full when at most 1/N of it is free.
const BATCH_REST: usize = 8;
/// Minimum bytes of a cell in a scan: its lengths, timestamp and type.
const CELL_BYTES_MIN: usize = 24;

/// Receives the results of a scan.
pub(crate) struct RowCollector {
    rows: RowsBuilder,
    // Keys of all rows so far.
    keys: Strings,
    columns: usize,
    // Bytes of cells, wanted or not.
    bytes: usize,
    // Set if more than the newest version is wanted.
    versions: Option<Versions>,
    // The first value that could not be read. Stored, because methods of a sink return no error.
    failed: Option<Error>,
}

/// Rows that were merged.
pub(crate) struct MergedRows {
    /// The row keys. Several versions of a row have the same key.
    pub(crate) keys: Strings,
    /// One vector per column.
    pub(crate) vectors: Vec<Arc<Vector>>,
}

impl MergedRows {
    /// Passes some of the rows to a sink. There must be vectors.
    pub(crate) fn pass_to(&self, rows: Range<usize>, sink: &mut dyn BatchSink) -> Result<TakenRows, Error> {
        if rows == (0..self.keys.len()) {
            return sink.batch(&Batch { len: rows.len(), columns: &self.vectors, rows: None });
        }
        let slice: Vec<_> = self.vectors.iter().map(|vector| Arc::new(vector.slice(rows.clone()))).collect();
        sink.batch(&Batch { len: rows.len(), columns: &slice, rows: None })
    }
}

impl RowCollector {
    /// Collects `columns`, with this many versions of each.
    pub(crate) fn new(columns: &[Column], versions: u32) -> RowCollector {
        RowCollector {
            rows: RowsBuilder::new(columns),
            keys: Strings::default(),
            columns: columns.len(),
            bytes: 0,
            versions: (versions > 1).then(Versions::default),
            failed: None,
        }
    }

    /// Limits of a scan until the next check whether the batch [is full](RowCollector::is_full).
    /// They assume the worst case: that all bytes have the maximum number of copies, and that each
    /// cell of several versions has its own timestamp. Usually this is not so, and then the batch
    /// has room for more.
    pub(crate) fn limits(&self) -> Limits {
        let (rows, bytes) = self.remaining();
        let bytes = bytes / self.rows.copies_max();
        let bytes = if self.versions.is_some() { bytes.min(rows * CELL_BYTES_MIN) } else { bytes };
        Limits { rows: rows.max(1) as u64, bytes: bytes.max(1) as u64, ..Limits::default() }
    }

    /// Rows and bytes until the batch is full.
    fn remaining(&self) -> (usize, usize) {
        let (rows, bytes) = self.versions.as_ref().map(Versions::collected).unwrap_or_default();
        let rows = self.rows_max().saturating_sub(self.rows.len() + rows);
        (rows, BATCH_BYTES.saturating_sub(self.bytes.max(self.value_bytes() + bytes)))
    }

    fn rows_max(&self) -> usize {
        (BATCH_VALUES / self.columns.max(1)).clamp(1, BATCH_ROWS)
    }

    fn value_bytes(&self) -> usize {
        self.rows.bytes() + self.keys.bytes_len()
    }

    /// Whether to build a batch before reading more rows.
    pub(crate) fn is_full(&self) -> bool {
        let (rows, bytes) = self.remaining();
        self.failed.is_some() || rows <= self.rows_max() / BATCH_REST || bytes <= BATCH_BYTES / BATCH_REST
    }

    /// Whether the values are as large as a batch.
    pub(crate) fn is_large(&self) -> bool {
        self.value_bytes() >= BATCH_BYTES
    }

    /// Takes the vectors of all rows so far. Must not be called within a row.
    ///
    /// # Errors
    /// [`Error::BadRequest`] if a value does not fit the type of its column.
    pub(crate) fn take(&mut self) -> Result<MergedRows, Error> {
        self.unfold();
        self.bytes = 0;
        let (facts, vectors) = self.rows.take();
        debug_assert!(self.failed.is_some() || self.keys.len() == facts.rows, "each row has a key");
        match self.failed.take() {
            Some(error) => Err(error),
            None => Ok(MergedRows {
                keys: std::mem::take(&mut self.keys),
                vectors: vectors.into_iter().map(Arc::new).collect(),
            }),
        }
    }

    fn unfold(&mut self) {
        let Some(versions) = &mut self.versions else { return };
        let before = self.rows.len();
        let unfolded = versions.unfold(&mut self.rows);
        for _ in before..self.rows.len() {
            self.keys.push(versions.row());
        }
        self.record_failure(unfolded);
    }

    fn record_failure(&mut self, taken: Result<(), Error>) {
        if let Err(error) = taken {
            self.failed.get_or_insert(error);
        }
    }
}

impl ResultSink for RowCollector {
    fn begin_result(&mut self, _continues_row: bool) {}

    fn cell(&mut self, cell: &Cell<'_>) {
        if self.failed.is_some() {
            return;
        }
        // As scans count them.
        self.bytes += cell.len_without_tags() + 4;
        if self.versions.as_ref().is_some_and(|versions| !versions.is_current(cell.row())) {
            self.unfold();
        }
        if let Some(versions) = &mut self.versions {
            let added = versions.add(cell, &self.rows);
            return self.record_failure(added);
        }
        if !self.rows.is_current(cell.row()) {
            self.keys.push(cell.row());
            let begun = self.rows.begin(cell.row());
            self.record_failure(begun);
        }
        let taken = self.rows.cell(cell);
        self.record_failure(taken);
    }

    fn end_result(&mut self, _end: ResultEnd) {}

    /// A row that exceeded the limits comes again from its start. If only the newest version is
    /// wanted, values that were already taken are skipped then.
    fn rollback_row(&mut self) {
        if let Some(versions) = &mut self.versions {
            versions.discard();
        }
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use cell::{CellType, KeyValue};
    use columnar::{ColumnLocation, Encoding};

    use super::*;

    /// Passes rows of one cell as a scan does, until the batch is full. Returns how many.
    fn fill(merged: &mut RowCollector, row: impl Fn(usize) -> KeyValue) -> usize {
        let mut rows = 0;
        while !merged.is_full() {
            let mut limits = merged.limits();
            while limits.rows > 0 && limits.bytes > 0 {
                let cell = row(rows);
                merged.cell(&cell.view(0));
                rows += 1;
                limits.rows -= 1;
                limits.bytes = limits.bytes.saturating_sub(cell.view(0).len_without_tags() as u64 + 4);
            }
        }
        rows
    }

    #[test]
    fn a_batch_is_bounded_if_many_columns_share_bytes() {
        let raw = |location| Column { location, encoding: Encoding::Raw, scale: 0 };
        let of_cell = raw(ColumnLocation::Cell { family: "f".into(), qualifier: "q".into() });
        let of_row = |at: usize| raw(ColumnLocation::RowBytes { offset: at % 3, length: None });
        let row = |key_len: usize, value_len: usize| {
            move |at: usize| {
                let key = format!("{at:0key_len$}");
                KeyValue::new(
                    key.as_bytes(),
                    b"f",
                    b"q",
                    5,
                    CellType::Put,
                    key.repeat(value_len / key_len).as_bytes(),
                )
            }
        };
        for versions in [1, 2] {
            for (columns, row) in [
                (vec![of_cell.clone(); 1024], row(8, 16 << 10)),
                ((0..1024).map(of_row).collect(), row(16 << 10, 16 << 10)),
            ] {
                let mut merged = RowCollector::new(&columns, versions);
                // The last row, which is as large as a batch here, may exceed the limit.
                assert!((1..3).contains(&fill(&mut merged, row)));
                let found = merged.take().unwrap();
                let bytes: usize = found.vectors.iter().map(|vector| vector.heap_len()).sum();
                assert!(bytes < 3 * BATCH_BYTES, "{bytes}");
            }
            // Batches of small rows are not smaller than necessary.
            let columns: Vec<Column> = (0..64).map(of_row).collect();
            let rows = fill(&mut RowCollector::new(&columns, versions), row(8, 80));
            assert!((BATCH_ROWS / 8 * 7..=BATCH_ROWS).contains(&rows), "{rows}");
        }
    }
}
