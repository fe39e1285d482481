//! Rows that lie one behind the other in one block, walked through without a look at anything else.
//!
//! A cursor asks at each step whether the block is at its end, and its owner whether others come first. Within a run
//! neither can happen: it ends where the block's last row begins, or at the row that its maker names.

use std::sync::Arc;

use bytes::Bytes;
use cell::{Cell, CellOrder, KeyBuf, key};

use crate::block::plain::Span;
use crate::block::{Block, Body};
use crate::error::Parsed;

/// Whole rows of one block, from the current cell of a cursor on.
pub struct Run {
    block: Arc<Block>,
    // The current cell, or the one behind the run.
    span: Span,
    // Where the run ends: at the start of a cell.
    end: u32,
}

/// A place in a run to go back to.
#[derive(Clone, Copy)]
pub struct Place(Span);

/// What a block has of a row that was sought in it.
pub enum Row {
    /// It is here, whole, from its first cell on; other rows may follow.
    Run(Run),
    /// The file does not have it.
    Absent,
    /// It may go on behind the block, or begin there, or the block is not one of plain cells.
    Unknown,
}

impl Run {
    /// The cells of `row`, where no cell in front of `block` can be of it. `likely` is what [`Block::likely_cell`] gave for
    /// the row, if it was asked.
    pub(crate) fn of_row(
        block: Arc<Block>,
        likely: Option<usize>,
        order: CellOrder,
        row: &[u8],
    ) -> Parsed<Row> {
        let Body::Plain(cells) = block.body() else { return Ok(Row::Unknown) };
        let payload = block.payload();
        let place = match cells.row_between_marks(payload, likely, row)? {
            Some(place) => place,
            None => match cells.seek(payload, likely, order, &KeyBuf::first_on_row(row))? {
                None => return Ok(Row::Unknown),
                Some(span) if key::row(span.key(payload)) != row => return Ok(Row::Absent),
                Some(span) => (span, cells.last_row_start()),
            },
        };
        let (span, end) = place;
        Ok(if span.start() < end { Row::Run(Run { block, span, end }) } else { Row::Unknown })
    }

    /// The rows from the cell at `span` on, and before the row `stop` if that is not empty. `None` if there is not one.
    pub(crate) fn new(block: &Arc<Block>, span: Span, order: CellOrder, stop: &[u8]) -> Parsed<Option<Run>> {
        let Body::Plain(cells) = block.body() else { return Ok(None) };
        let payload = block.payload();
        let mut end = cells.last_row_start();
        if end <= span.start() {
            return Ok(None);
        }
        if !stop.is_empty()
            && order.compare_rows(key::row(cells.span(payload, end)?.key(payload)), stop).is_gt()
        {
            end = cells.seek_start(payload, order, &KeyBuf::first_on_row(stop))?;
        }
        Ok((span.start() < end).then(|| Run { block: block.clone(), span, end }))
    }

    /// The current cell; `None` at the end.
    #[inline]
    pub fn cell(&self) -> Option<Cell<'_>> {
        self.cell_at(self.place())
    }

    /// The value of the current cell with the memory of its block, if it is [large](crate::LARGE_VALUE_LEN) and half at least of
    /// that.
    pub fn large_value(&self) -> Option<Bytes> {
        self.cell().and_then(|_| self.block.large_value(self.span.value_range()))
    }

    /// Goes to the next cell.
    #[inline]
    pub fn next(&mut self) {
        // A run ends at a cell, so that there is always one to stand on.
        if let Body::Plain(cells) = self.block.body()
            && let Ok(span) = cells.span(self.block.payload(), self.span.end)
        {
            self.span = span;
        }
    }

    /// Goes to the first cell at or behind `target`, a key of a row of the run; stays where it is not before it.
    pub fn seek_forward(&mut self, order: CellOrder, target: &[u8]) {
        let (Body::Plain(cells), payload) = (self.block.body(), self.block.payload()) else { return };
        if order.compare_keys(self.span.key(payload), target).is_lt()
            && let Ok(span) = cells.seek_forward(payload, order, target, self.span)
        {
            // There is one: at the latest the row that the run ends at.
            self.span = span;
        }
    }

    /// Where the run is.
    #[inline]
    pub fn place(&self) -> Place {
        Place(self.span)
    }

    /// The cell at a place that [`place`](Self::place) gave.
    #[inline]
    pub fn cell_at(&self, place: Place) -> Option<Cell<'_>> {
        (place.0.start() < self.end).then(|| place.0.cell(self.block.payload()))
    }

    /// Bytes walked through since `place`.
    #[inline]
    pub fn bytes_since(&self, place: Place) -> usize {
        (self.span.start() - place.0.start()) as usize
    }

    /// The cell that the run stands on, or ended at.
    pub(crate) fn span(&self) -> Span {
        self.span
    }

    /// Goes back to a place that [`place`](Self::place) gave.
    pub fn go_back(&mut self, place: Place) {
        self.span = place.0;
    }
}
