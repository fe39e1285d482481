//! Rows as a scan gives them: the way of all rows that are no stretch of one file.

use std::sync::Arc;

use cell::Cell;
use columnar::{Column, Vector};

use crate::columns::kept::Facts;
use crate::columns::rows::Rows;
use crate::error::Error;
use crate::scanner::{ResultEnd, ResultSink};

/// Rows of a batch at most.
pub(super) const BATCH_ROWS: u64 = 4096;
/// Bytes of cells, wanted or not, that a batch is made of.
pub(super) const BATCH_BYTES: u64 = 16 << 20;

/// Takes the results of a scan.
pub(super) struct Merged {
    rows: Rows,
    bytes: usize,
    // The first value that could not be read: sinks cannot fail.
    failed: Option<Error>,
}

impl Merged {
    pub(super) fn new(columns: &[Column]) -> Merged {
        Merged { rows: Rows::new(columns), bytes: 0, failed: None }
    }

    /// Rows that wait to be taken.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
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
