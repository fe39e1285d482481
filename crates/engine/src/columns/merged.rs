//! Rows as a scan gives them: the way of all rows that are no stretch of one file.

use std::ops::Range;
use std::sync::Arc;

use cell::Cell;
use columnar::strings::Strings;
use columnar::{Batch, Column, Vector};

use crate::columns::rows::Rows;
use crate::columns::scan::{BatchSink, Taken};
use crate::columns::versions::Versions;
use crate::error::Error;
use crate::scanner::{Limits, ResultEnd, ResultSink};

/// Rows of a batch at most, and values; the last row of a scan's may go beyond, where it has several versions.
const BATCH_ROWS: usize = 4096;
const BATCH_VALUES: usize = 1 << 20;
/// Bytes of cells, wanted or not, that a batch is made of, and of values that are made of them.
const BATCH_BYTES: usize = 16 << 20;
/// A part of a batch that is not worth to be filled.
const BATCH_REST: usize = 8;
/// The least that a cell counts in a scan: its lengths, time and kind.
const CELL_BYTES_MIN: usize = 24;

/// Takes the results of a scan.
pub(super) struct Merged {
    rows: Rows,
    // Of all rows so far.
    keys: Strings,
    columns: usize,
    // Of cells, wanted or not.
    bytes: usize,
    // Where more than the newest version is wanted.
    versions: Option<Versions>,
    // The first value that could not be read: sinks cannot fail.
    failed: Option<Error>,
}

/// Rows that were merged.
pub(super) struct MergedRows {
    /// Their keys. Those of several versions of a row are the same.
    pub(super) keys: Strings,
    /// A vector of each column; none where there are none.
    pub(super) vectors: Vec<Arc<Vector>>,
}

impl MergedRows {
    /// Gives some of the rows to a sink, which there are vectors of.
    pub(super) fn give(&self, rows: Range<usize>, sink: &mut dyn BatchSink) -> Result<Taken, Error> {
        if rows == (0..self.keys.len()) {
            return sink.batch(&Batch { len: rows.len(), columns: &self.vectors, rows: None });
        }
        let slice: Vec<_> = self.vectors.iter().map(|vector| Arc::new(vector.slice(rows.clone()))).collect();
        sink.batch(&Batch { len: rows.len(), columns: &slice, rows: None })
    }
}

impl Merged {
    /// Takes rows of `columns`, with so many versions of each.
    pub(super) fn new(columns: &[Column], versions: u32) -> Merged {
        Merged {
            rows: Rows::new(columns),
            keys: Strings::default(),
            columns: columns.len(),
            bytes: 0,
            versions: (versions > 1).then(Versions::default),
            failed: None,
        }
    }

    /// What a scan may give until it is asked whether the batch [is full](Merged::is_full): as much as fits into the batch if of
    /// all that has copies there are all of them, and each cell of several versions has a time of its own. Mostly that is not so,
    /// and then there is room for more.
    pub(super) fn limits(&self) -> Limits {
        let (rows, bytes) = self.room();
        let bytes = bytes / self.rows.copies_max();
        let bytes = if self.versions.is_some() { bytes.min(rows * CELL_BYTES_MIN) } else { bytes };
        Limits { rows: rows.max(1) as u64, bytes: bytes.max(1) as u64, ..Limits::default() }
    }

    /// Rows and bytes until the batch is full.
    fn room(&self) -> (usize, usize) {
        let (rows, bytes) = self.versions.as_ref().map(Versions::gathered).unwrap_or_default();
        let rows = self.rows_max().saturating_sub(self.rows.len() + rows);
        (rows, BATCH_BYTES.saturating_sub(self.bytes.max(self.value_bytes() + bytes)))
    }

    fn rows_max(&self) -> usize {
        (BATCH_VALUES / self.columns.max(1)).clamp(1, BATCH_ROWS)
    }

    fn value_bytes(&self) -> usize {
        self.rows.bytes() + self.keys.bytes_len()
    }

    /// Whether a batch is to be made before more rows are read.
    pub(super) fn is_full(&self) -> bool {
        let (rows, bytes) = self.room();
        self.failed.is_some() || rows <= self.rows_max() / BATCH_REST || bytes <= BATCH_BYTES / BATCH_REST
    }

    /// Whether values take as much as those of a batch.
    pub(super) fn is_large(&self) -> bool {
        self.value_bytes() >= BATCH_BYTES
    }

    /// The vectors of all rows so far, and begins anew. Not while a row goes on.
    ///
    /// # Errors
    /// [`Error::BadRequest`] if a value was not as its column says.
    pub(super) fn take(&mut self) -> Result<MergedRows, Error> {
        self.unfold();
        self.bytes = 0;
        let (_, vectors) = self.rows.take();
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
        self.note(unfolded);
    }

    fn note(&mut self, taken: Result<(), Error>) {
        if let Err(error) = taken {
            self.failed.get_or_insert(error);
        }
    }
}

impl ResultSink for Merged {
    fn begin_result(&mut self, _goes_on: bool) {}

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
            return self.note(added);
        }
        if !self.rows.is_current(cell.row()) {
            self.keys.push(cell.row());
            let begun = self.rows.begin(cell.row());
            self.note(begun);
        }
        let taken = self.rows.cell(cell);
        self.note(taken);
    }

    fn end_result(&mut self, _end: ResultEnd) {}

    /// A row that did not fit into the limits comes again, whole. Of the newest version the values that are there are passed over
    /// then.
    fn rollback_row(&mut self) {
        if let Some(versions) = &mut self.versions {
            versions.forget();
        }
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use cell::{CellType, KeyValue};
    use columnar::{Encoding, Place};

    use super::*;

    /// Gives rows of one cell as a scan does, until the batch is full; how many.
    fn fill(merged: &mut Merged, row: impl Fn(usize) -> KeyValue) -> usize {
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
    fn a_batch_is_bounded_however_many_columns_have_the_same_bytes() {
        let raw = |place| Column { place, encoding: Encoding::Raw, scale: 0 };
        let of_cell = raw(Place::Cell { family: "f".into(), qualifier: "q".into() });
        let of_row = |at: usize| raw(Place::RowBytes { offset: at % 3, length: None });
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
                let mut merged = Merged::new(&columns, versions);
                // The last row may be beyond, which is as large as a batch here.
                assert!((1..3).contains(&fill(&mut merged, row)));
                let found = merged.take().unwrap();
                let bytes: usize = found.vectors.iter().map(|vector| vector.heap_len()).sum();
                assert!(bytes < 3 * BATCH_BYTES, "{bytes}");
            }
            // What is small is not cut smaller than it needs to be.
            let columns: Vec<Column> = (0..64).map(of_row).collect();
            let rows = fill(&mut Merged::new(&columns, versions), row(8, 80));
            assert!((BATCH_ROWS / 8 * 7..=BATCH_ROWS).contains(&rows), "{rows}");
        }
    }
}
