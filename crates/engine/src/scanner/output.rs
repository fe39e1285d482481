//! The destination of a row's cells: the sink, a buffer (if a filter edits complete rows, or
//! families are read on demand), or nowhere (if only the filter must see the row).

use cell::Cell;

use crate::scanner::sink::ResultSink;

/// Receives the cells that pass.
pub(crate) struct Output<'a> {
    pub(crate) sink: &'a mut dyn ResultSink,
    pub(crate) destination: Destination<'a>,
    // Whether the row gave a result before.
    pub(crate) continues_row: bool,
    // Whether the current result was begun.
    pub(crate) begun: &'a mut bool,
}

/// The destination of cells.
pub(crate) enum Destination<'a> {
    Sink,
    Buffer(&'a mut RowBuffer),
    Nowhere,
}

impl Destination<'_> {
    /// The same destination, reborrowed.
    pub(crate) fn reborrow(&mut self) -> Destination<'_> {
        match self {
            Destination::Sink => Destination::Sink,
            Destination::Buffer(buffer) => Destination::Buffer(buffer),
            Destination::Nowhere => Destination::Nowhere,
        }
    }
}

impl Output<'_> {
    /// Writes a cell. Begins the result if necessary.
    #[inline]
    pub(crate) fn write(&mut self, cell: &Cell<'_>) {
        match &mut self.destination {
            Destination::Sink => {
                if !*self.begun {
                    self.sink.begin_result(self.continues_row);
                    *self.begun = true;
                }
                self.sink.cell(cell);
            }
            Destination::Buffer(buffer) => buffer.push(cell),
            Destination::Nowhere => {}
        }
    }
}

/// The cells of one row, copied one after another.
#[derive(Default)]
pub(crate) struct RowBuffer {
    bytes: Vec<u8>,
    cells: Vec<CopiedCell>,
}

struct CopiedCell {
    start: usize,
    value_at: usize,
    tags_at: usize,
    end: usize,
    seq_id: u64,
}

impl RowBuffer {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.cells.clear();
    }

    fn push(&mut self, cell: &Cell<'_>) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(cell.key);
        let value_at = self.bytes.len();
        self.bytes.extend_from_slice(cell.value);
        let tags_at = self.bytes.len();
        self.bytes.extend_from_slice(cell.tags);
        self.cells.push(CopiedCell { start, value_at, tags_at, end: self.bytes.len(), seq_id: cell.seq_id });
    }

    /// Number of cells.
    pub(crate) fn len(&self) -> usize {
        self.cells.len()
    }

    /// Drops the cells that are not wanted.
    pub(crate) fn retain(&mut self, wanted: impl Fn(&Cell<'_>) -> bool) {
        let RowBuffer { bytes, cells } = self;
        cells.retain(|copied| wanted(&copied.cell(bytes)));
    }

    /// Sorts the cells by family. Cells of one family keep their order.
    pub(crate) fn sort_families(&mut self) {
        let RowBuffer { bytes, cells } = self;
        cells.sort_by(|left, right| left.cell(bytes).family().cmp(right.cell(bytes).family()));
    }

    /// The cells, in order.
    pub(crate) fn cells(&self) -> impl Iterator<Item = Cell<'_>> {
        self.cells.iter().map(|copied| copied.cell(&self.bytes))
    }
}

impl CopiedCell {
    fn cell<'a>(&self, bytes: &'a [u8]) -> Cell<'a> {
        Cell {
            key: &bytes[self.start..self.value_at],
            value: &bytes[self.value_at..self.tags_at],
            tags: &bytes[self.tags_at..self.end],
            seq_id: self.seq_id,
        }
    }
}
