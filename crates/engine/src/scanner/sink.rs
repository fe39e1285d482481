//! What a scan may return in one call, where its results go, and how far it came.

use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use base::env::Clock;
use bytes::Bytes;
use cell::{Cell, KeyValue};

/// Takes the results of a scan, cell by cell, as they are found.
///
/// The order of calls is `begin_result`, one or more `cell`, `end_result`, and again. An error may come between any two
/// of them; what was written since the last `begin_result` is then no result.
pub trait ResultSink: Send {
    /// A result begins: a row, or a part of one. It may go on with the row of the result before it.
    fn begin_result(&mut self, goes_on: bool);
    /// The next cell of the result. Its bytes are valid during the call only.
    fn cell(&mut self, cell: &Cell<'_>);
    /// The same, of a cell with a large value, which may be kept in place of being copied: with `value` lives what it is part
    /// of, half of which it is at least.
    fn large_cell(&mut self, cell: &Cell<'_>, _value: Bytes) {
        self.cell(cell);
    }
    /// The result is complete.
    fn end_result(&mut self, end: ResultEnd);
    /// Takes back all results of the current row (a filter of whole rows dropped it).
    fn rollback_row(&mut self);
    /// Bytes written so far.
    fn bytes(&self) -> usize;
    /// Whether there is memory for more; asked now and then.
    fn room(&mut self) -> Room {
        Room::Enough
    }
}

/// Whether a sink has memory for what it is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// The scan may go on.
    Enough,
    /// For what it was given, and no more: the scan ends here if it can, or fails.
    Full,
    /// Not even for what it was given: the scan fails.
    Over,
}

/// How a result ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResultEnd {
    /// More cells of this row may come in the next result (`mayHaveMoreCellsInRow`).
    pub partial: bool,
}

/// What one call may return; whatever is reached first ends it. What was returned is taken off.
#[derive(Clone)]
pub struct Limits {
    /// Results, partial ones too.
    pub results: u64,
    /// Rows, each counted when its last cell was returned.
    pub rows: u64,
    /// Bytes of cells as ordinary clients get them; the cell that crosses it is returned.
    pub bytes: u64,
    /// Whether a row may be cut where bytes or time end; else it is finished.
    pub partials: bool,
    /// When to stop, whatever was found.
    pub deadline: Option<Deadline>,
}

/// A time on the monotonic clock.
#[derive(Clone)]
pub struct Deadline {
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The time by it.
    pub at: Duration,
}

impl Deadline {
    /// Whether the time is over.
    pub fn is_over(&self) -> bool {
        self.clock.monotonic() >= self.at
    }
}

impl Default for Limits {
    /// No limits.
    fn default() -> Limits {
        Limits { results: u64::MAX, rows: u64::MAX, bytes: u64::MAX, partials: false, deadline: None }
    }
}

/// Why a call returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// There is nothing more: the last row, or the stop row, is behind.
    Exhausted,
    /// [`Limits::results`] is used up.
    Results,
    /// [`Limits::rows`] is used up. Whether there are more rows was not looked at.
    Rows,
    /// [`Limits::bytes`] is used up.
    Bytes,
    /// The deadline is over: a heartbeat, with or without results.
    Time,
    /// It ran long enough without a break; call again after letting others run. [`drive`](super::drive) does.
    Slice,
}

/// How far a call came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Why it returned.
    pub stopped: Stopped,
    /// The row of the last result may go on in the next call.
    pub mid_row: bool,
}

/// A sink behind which another one is offered the value of the next cell to keep.
pub(crate) struct Keeping<'a> {
    sink: &'a mut dyn ResultSink,
    value: Option<Bytes>,
}

impl<'a> Keeping<'a> {
    /// Offers `value` to `sink`, if the next cell has it.
    pub(crate) fn new(sink: &'a mut dyn ResultSink, value: Bytes) -> Keeping<'a> {
        Keeping { sink, value: Some(value) }
    }
}

impl ResultSink for Keeping<'_> {
    fn begin_result(&mut self, goes_on: bool) {
        self.sink.begin_result(goes_on);
    }

    fn cell(&mut self, cell: &Cell<'_>) {
        match self.value.take() {
            // A filter may have put another value into the cell's place.
            Some(value) if ptr::eq(&*value, cell.value) => self.sink.large_cell(cell, value),
            _ => self.sink.cell(cell),
        }
    }

    fn end_result(&mut self, end: ResultEnd) {
        self.sink.end_result(end);
    }

    fn rollback_row(&mut self) {
        self.sink.rollback_row();
    }

    fn bytes(&self) -> usize {
        self.sink.bytes()
    }

    fn room(&mut self) -> Room {
        self.sink.room()
    }
}

/// A sink that keeps the cells, for callers that want them all at once.
#[derive(Default)]
pub struct CellList {
    /// Cells with their sequence ids, in order.
    pub cells: Vec<(KeyValue, u64)>,
    /// Per result: how many cells it has, and whether it is partial.
    pub results: Vec<(usize, bool)>,
    // Cells and results before the current row.
    row_start: (usize, usize),
    open: usize,
    bytes: usize,
}

impl ResultSink for CellList {
    fn begin_result(&mut self, goes_on: bool) {
        self.open = self.cells.len();
        if !goes_on {
            self.row_start = (self.cells.len(), self.results.len());
        }
    }

    fn cell(&mut self, cell: &Cell<'_>) {
        self.bytes += cell.serialized_len();
        self.cells.push((cell.to_key_value(), cell.seq_id));
    }

    fn end_result(&mut self, end: ResultEnd) {
        self.results.push((self.cells.len() - self.open, end.partial));
    }

    fn rollback_row(&mut self) {
        self.cells.truncate(self.row_start.0);
        self.results.truncate(self.row_start.1);
        self.bytes = self.cells.iter().map(|(cell, _)| cell.bytes().len()).sum();
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}
