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

/// Rows of a batch at most, and values.
const BATCH_ROWS: usize = 4096;
const BATCH_VALUES: usize = 1 << 20;
/// Bytes of cells, wanted or not, that a batch is made of.
const BATCH_BYTES: u64 = 16 << 20;

/// Takes the results of a scan.
pub(super) struct Merged {
    rows: Rows,
    // Of all rows so far.
    keys: Strings,
    columns: usize,
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

    /// What a scan may give until the next batch is made.
    pub(super) fn limits(&self) -> Limits {
        let rows = (BATCH_VALUES / self.columns.max(1)).clamp(1, BATCH_ROWS) as u64;
        Limits { rows, bytes: BATCH_BYTES, ..Limits::default() }
    }

    /// Whether a batch is to be made before more rows are read.
    pub(super) fn is_large(&self) -> bool {
        self.bytes as u64 >= BATCH_BYTES
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
        self.bytes += cell.value.len();
        if self.versions.as_ref().is_some_and(|versions| !versions.is_current(cell.row())) {
            self.unfold();
        }
        if let Some(versions) = &mut self.versions {
            versions.add(cell, &self.rows);
            return;
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

    /// Only filters take rows back, and there is none.
    fn rollback_row(&mut self) {}

    fn bytes(&self) -> usize {
        self.bytes
    }
}
