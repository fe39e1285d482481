//! Rows that lie one behind the other in one block, walked through without a look at anything else.
//!
//! A cursor asks at each step whether the block is at its end, and its owner whether others come first. Within a run
//! neither can happen: it ends where the block's last row begins, or at the row that its maker names.

use std::sync::Arc;

use cell::{Cell, CellOrder, key};

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

impl Run {
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
            end = cells.seek_start(payload, order, &cell::KeyBuf::first_on_row(stop))?;
        }
        Ok((span.start() < end).then(|| Run { block: block.clone(), span, end }))
    }

    /// The current cell; `None` at the end.
    #[inline]
    pub fn cell(&self) -> Option<Cell<'_>> {
        self.cell_at(self.place())
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
