//! The limits of a call, the receiver of its results, and its outcome.

use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use base::env::Clock;
use bytes::Bytes;
use cell::{Cell, KeyValue};

/// Receives the results of a scan, cell by cell.
///
/// The order of calls is `begin_result`, one or more `cell`, `end_result`, and so on. An error may
/// occur between any two of them. The cells since the last `begin_result` are then not a result.
pub trait ResultSink: Send {
    /// Begins a result: a row or a part of one. `continues_row`: it may continue the row of the
    /// previous result.
    fn begin_result(&mut self, continues_row: bool);
    /// The next cell of the result. Its bytes are valid only during the call.
    fn cell(&mut self, cell: &Cell<'_>);
    /// Like [`cell`](ResultSink::cell), for a cell with a large value. The sink can keep `value`
    /// instead of copying it. `value` keeps the memory of its block alive, of which it is at least
    /// half.
    fn large_cell(&mut self, cell: &Cell<'_>, _value: Bytes) {
        self.cell(cell);
    }
    /// Ends the result.
    fn end_result(&mut self, end: ResultEnd);
    /// Drops all results of the current row: a filter of complete rows rejected it, or it is read
    /// again from its start.
    fn rollback_row(&mut self);
    /// Bytes written so far.
    fn bytes(&self) -> usize;
    /// Whether there is memory for more. Called regularly.
    fn memory(&mut self) -> SinkMemory {
        SinkMemory::Enough
    }
}

/// Whether a sink has memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SinkMemory {
    /// Enough: the scan may continue.
    Enough,
    /// Enough for the results so far, but not for more: the scan ends here if it can, or fails.
    Full,
    /// Not enough for the results so far: the scan fails.
    Exceeded,
}

/// How a result ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResultEnd {
    /// More cells of this row may follow in the next result (`mayHaveMoreCellsInRow`).
    pub partial: bool,
}

/// Limits of one call; the first one that is reached ends it. The call subtracts what it returned.
#[derive(Clone)]
pub struct Limits {
    /// Results, partial ones included.
    pub results: u64,
    /// Rows. A row counts when its last cell was returned.
    pub rows: u64,
    /// Bytes of cells, in the size that clients receive. The cell that crosses the limit is
    /// returned.
    pub bytes: u64,
    /// Whether the limits of bytes and time may cut a row. If not, the row is completed.
    pub partials: bool,
    /// When to stop, whatever was found.
    pub deadline: Option<Deadline>,
}

/// A time on the monotonic clock.
#[derive(Clone)]
pub struct Deadline {
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The time on that clock.
    pub at: Duration,
}

impl Deadline {
    /// Whether it has passed.
    pub fn has_passed(&self) -> bool {
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
    /// There is no more: the last row or the stop row has been passed.
    Exhausted,
    /// [`Limits::results`] is used up.
    Results,
    /// [`Limits::rows`] is used up. Whether more rows exist is not known.
    Rows,
    /// [`Limits::bytes`] is used up.
    Bytes,
    /// The deadline has passed. This is a heartbeat, with or without results.
    Time,
    /// It ran long enough without a pause. Let other calls run, then call again, as
    /// [`drive`](super::drive) does.
    Slice,
}

/// The outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Why it returned.
    pub stopped: Stopped,
    /// The row of the last result may continue in the next call.
    pub mid_row: bool,
}

/// Forwards to another sink, and offers it the value of the next cell to keep.
pub(crate) struct LargeValueSink<'a> {
    sink: &'a mut dyn ResultSink,
    value: Option<Bytes>,
}

impl<'a> LargeValueSink<'a> {
    /// Offers `value` to `sink`, if it is the value of the next cell.
    pub(crate) fn new(sink: &'a mut dyn ResultSink, value: Bytes) -> LargeValueSink<'a> {
        LargeValueSink { sink, value: Some(value) }
    }
}

impl ResultSink for LargeValueSink<'_> {
    fn begin_result(&mut self, continues_row: bool) {
        self.sink.begin_result(continues_row);
    }

    fn cell(&mut self, cell: &Cell<'_>) {
        match self.value.take() {
            // A filter may have replaced the value of the cell.
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

    fn memory(&mut self) -> SinkMemory {
        self.sink.memory()
    }
}

/// A sink that collects all cells.
#[derive(Default)]
pub struct CellList {
    /// The cells with their sequence ids, in order.
    pub cells: Vec<(KeyValue, u64)>,
    /// For each result, the number of its cells and whether it is partial.
    pub results: Vec<(usize, bool)>,
    // Numbers of cells and results before the current row.
    row_start: (usize, usize),
    open: usize,
    bytes: usize,
}

impl ResultSink for CellList {
    fn begin_result(&mut self, continues_row: bool) {
        self.open = self.cells.len();
        if !continues_row {
            self.row_start = (self.cells.len(), self.results.len());
        }
    }

    fn cell(&mut self, cell: &Cell<'_>) {
        self.bytes += cell.serialized_len();
        self.cells.push((cell.to_key_value(), cell.seq_id));
    }

    fn end_result(&mut self, end: ResultEnd) {
        debug_assert!(self.cells.len() > self.open, "a result has cells");
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
