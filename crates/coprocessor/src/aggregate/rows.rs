//! Rows of a scanner, folded. What a filter takes back is as if it had not been there.

use cell::Cell;
use engine::scanner::{RegionScanner, ResultEnd, ResultSink, Room};
use wire::exception::{Answer, JavaException};

use super::fold::Fold;

/// Folds the results that a scanner writes.
pub(super) struct Rows<F> {
    fold: F,
    // Results so far.
    pieces: u64,
    // Both before the current row.
    row_start: (F, u64),
    // Of the last result. It may not be: what was written of it was taken back.
    row: Vec<u8>,
    is_row_whole: bool,
    // A value that ends the call was met; it counts when its result ends.
    failed: Option<JavaException>,
    is_over: bool,
}

impl<F: Fold> Rows<F> {
    pub(super) fn new(fold: F) -> Rows<F> {
        Rows {
            row_start: (fold.clone(), 0),
            fold,
            pieces: 0,
            row: Vec::new(),
            is_row_whole: false,
            failed: None,
            is_over: false,
        }
    }

    /// The answer to what `scanner` has given to its end.
    ///
    /// # Errors
    /// Of a value that ended the call; where HBase fails to make an answer.
    pub(super) fn answer(self, scanner: &RegionScanner) -> Answer<proto::AggregateResponse> {
        match self.failed {
            Some(failed) => Err(failed),
            None => {
                let pieces = self.pieces + u64::from(!self.ends_with(scanner.last_row()));
                self.fold.answer(pieces)
            }
        }
    }

    /// The exception of a value that ended the call.
    pub(super) fn failed(self) -> Option<JavaException> {
        self.failed
    }

    /// Whether the last result was known to be the last one. HBase's averages count calls of its scanner, which says of each
    /// result whether there may be more: if so, one more call finds out that there are none.
    fn ends_with(&self, last_row: &[u8]) -> bool {
        self.is_row_whole && self.row == last_row
    }
}

impl<F: Fold> ResultSink for Rows<F> {
    fn begin_result(&mut self, goes_on: bool) {
        if !goes_on {
            self.row_start = (self.fold.clone(), self.pieces);
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
        self.fold.end_piece();
        self.pieces += 1;
        self.is_row_whole = !end.partial;
        self.is_over = self.failed.is_some();
    }

    fn rollback_row(&mut self) {
        (self.fold, self.pieces) = self.row_start.clone();
        self.row.clear();
        self.is_row_whole = false;
        if !self.is_over {
            self.failed = None;
        }
    }

    /// Nothing that would be sent.
    fn bytes(&self) -> usize {
        0
    }

    fn room(&mut self) -> Room {
        if self.is_over { Room::Over } else { Room::Enough }
    }
}
