//! Folds the rows of a scanner. Rows that a filter rolls back are not counted.

use cell::Cell;
use engine::scanner::{RegionScanner, ResultEnd, ResultSink, SinkMemory};
use proto::exception::{Answer, JavaException};

use super::fold::Fold;

/// Result sink that folds the cells.
pub(super) struct Rows<F> {
    fold: F,
    // Number of results so far.
    parts: u64,
    // Both values before the current row.
    row_start: (F, u64),
    // Row of the last result; empty if that was rolled back.
    row: Vec<u8>,
    is_row_whole: bool,
    // Error of an invalid value. It takes effect when the result ends.
    failed: Option<JavaException>,
    has_ended: bool,
}

impl<F: Fold> Rows<F> {
    pub(super) fn new(fold: F) -> Rows<F> {
        Rows {
            row_start: (fold.clone(), 0),
            fold,
            parts: 0,
            row: Vec::new(),
            is_row_whole: false,
            failed: None,
            has_ended: false,
        }
    }

    /// The response after `scanner` has reached its end.
    ///
    /// # Errors
    /// If an invalid value ended the call, or if HBase fails to build a response.
    pub(super) fn finish(self, scanner: &RegionScanner) -> Answer<proto::AggregateResponse> {
        match self.failed {
            Some(failed) => Err(failed),
            None => {
                let parts = self.parts + u64::from(!self.ends_with(scanner.last_row()));
                self.fold.finish(parts)
            }
        }
    }

    /// The exception for an invalid value that ended the call.
    pub(super) fn failed(self) -> Option<JavaException> {
        self.failed
    }

    /// Whether the scanner knew that the last result was the last one. HBase's averages count
    /// scanner calls. If a result may be followed by another, one more call is needed to find the
    /// end.
    fn ends_with(&self, last_row: &[u8]) -> bool {
        self.is_row_whole && self.row == last_row
    }
}

impl<F: Fold> ResultSink for Rows<F> {
    fn begin_result(&mut self, continues_row: bool) {
        if !continues_row {
            self.row_start = (self.fold.clone(), self.parts);
        }
        self.row.clear();
    }

    fn cell(&mut self, cell: &Cell<'_>) {
        if self.row.is_empty() {
            self.row.extend_from_slice(cell.row());
        }
        if self.failed.is_none() {
            self.failed = self.fold.cell(cell.value).err();
        }
    }

    fn end_result(&mut self, end: ResultEnd) {
        self.fold.end_part();
        self.parts += 1;
        self.is_row_whole = !end.partial;
        self.has_ended = self.failed.is_some();
    }

    fn rollback_row(&mut self) {
        (self.fold, self.parts) = self.row_start.clone();
        self.row.clear();
        self.is_row_whole = false;
        if !self.has_ended {
            self.failed = None;
        }
    }

    /// Nothing is sent to the client.
    fn bytes(&self) -> usize {
        0
    }

    fn memory(&mut self) -> SinkMemory {
        if self.has_ended { SinkMemory::Exceeded } else { SinkMemory::Enough }
    }
}
