//! Rows as a scan gives them: the way of all rows that are no stretch of one file.

use std::sync::Arc;

use cell::Cell;
use columnar::{Column, Vector};

use crate::columns::kept::Facts;
use crate::columns::rows::Rows;
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
    columns: usize,
    bytes: usize,
    // The first value that could not be read: sinks cannot fail.
    failed: Option<Error>,
}

impl Merged {
    pub(super) fn new(columns: &[Column]) -> Merged {
        Merged { rows: Rows::new(columns), columns: columns.len(), bytes: 0, failed: None }
    }

    /// Rows that wait to be taken.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
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
    pub(super) fn take(&mut self) -> Result<(Facts, Vec<Arc<Vector>>), Error> {
        self.bytes = 0;
        let (facts, vectors) = self.rows.take();
        match self.failed.take() {
            Some(error) => Err(error),
            None => Ok((facts, vectors.into_iter().map(Arc::new).collect())),
        }
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
        if !self.rows.is_current(cell.row()) {
            let begun = self.rows.begin(cell.row());
            self.note(begun);
        }
        self.bytes += cell.value.len();
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
