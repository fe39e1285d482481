//! Where the cells of a row go while it is read: to the sink, to a buffer if a filter edits complete rows or families are
//! read behind their turn, or nowhere if the row is looked at for the filter's sake only.

use cell::Cell;

use crate::scanner::sink::ResultSink;

/// Takes the cells that pass.
pub(crate) struct Output<'a> {
    pub(crate) sink: &'a mut dyn ResultSink,
    pub(crate) way: Way<'a>,
    // Whether the row gave a result before.
    pub(crate) goes_on: bool,
    // Whether a result was begun.
    pub(crate) begun: &'a mut bool,
}

/// Where cells go.
pub(crate) enum Way<'a> {
    Sink,
    Buffer(&'a mut RowBuffer),
    Nowhere,
}

impl Way<'_> {
    /// The same way, for a while.
    pub(crate) fn again(&mut self) -> Way<'_> {
        match self {
            Way::Sink => Way::Sink,
            Way::Buffer(buffer) => Way::Buffer(buffer),
            Way::Nowhere => Way::Nowhere,
        }
    }
}

impl Output<'_> {
    /// Takes a cell; the result is begun first, if it was not.
    #[inline]
    pub(crate) fn write(&mut self, cell: &Cell<'_>) {
        match &mut self.way {
            Way::Sink => {
                if !*self.begun {
                    self.sink.begin_result(self.goes_on);
                    *self.begun = true;
                }
                self.sink.cell(cell);
            }
            Way::Buffer(buffer) => buffer.push(cell),
            Way::Nowhere => {}
        }
    }
}

/// The cells of one row, copied one behind the other.
#[derive(Default)]
pub(crate) struct RowBuffer {
    bytes: Vec<u8>,
    cells: Vec<Copied>,
}

struct Copied {
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
        self.cells.push(Copied { start, value_at, tags_at, end: self.bytes.len(), seq_id: cell.seq_id });
    }

    /// How many cells there are.
    pub(crate) fn len(&self) -> usize {
        self.cells.len()
    }

    /// Leaves out the cells that are not wanted.
    pub(crate) fn retain(&mut self, wanted: impl Fn(&Cell<'_>) -> bool) {
        let RowBuffer { bytes, cells } = self;
        cells.retain(|copied| wanted(&copied.cell(bytes)));
    }

    /// Brings families into the order of their names; the cells of each stay in theirs.
    pub(crate) fn sort_families(&mut self) {
        let RowBuffer { bytes, cells } = self;
        cells.sort_by(|left, right| left.cell(bytes).family().cmp(right.cell(bytes).family()));
    }

    /// The cells, in order.
    pub(crate) fn cells(&self) -> impl Iterator<Item = Cell<'_>> {
        self.cells.iter().map(|copied| copied.cell(&self.bytes))
    }
}

impl Copied {
    fn cell<'a>(&self, bytes: &'a [u8]) -> Cell<'a> {
        Cell {
            key: &bytes[self.start..self.value_at],
            value: &bytes[self.value_at..self.tags_at],
            tags: &bytes[self.tags_at..self.end],
            seq_id: self.seq_id,
        }
    }
}
