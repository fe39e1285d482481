//! Consecutive whole rows of one block, read without any check beyond the block.
//!
//! At each step a cursor checks for the end of its block, and its owner checks whether another
//! source comes first. Neither can happen within a slice: it ends where the last row of the block
//! begins, or at the row that its creator names.

use std::sync::Arc;

use bytes::Bytes;
use cell::{Cell, CellOrder, KeyBuf, key};

use crate::block::plain::CellSpan;
use crate::block::{Block, Body};
use crate::error::Parsed;

/// Whole rows of one block, from the current cell of a cursor on.
pub struct RowSlice {
    block: Arc<Block>,
    // The current cell, or the first one after the slice.
    span: CellSpan,
    // Offset in the block at which the slice ends; a cell begins there.
    end: u32,
}

/// A position in a slice, to return to.
#[derive(Clone, Copy)]
pub struct SlicePosition(CellSpan);

/// The part of a row that a block holds.
pub enum LocatedRow {
    /// The whole row, from its first cell on. Other rows may follow.
    Slice(RowSlice),
    /// The file does not have the row.
    Absent,
    /// The row may continue or begin after the block, or the cells of the block are not plain.
    Unknown,
}

impl RowSlice {
    /// The cells of `row`. No cell before `block` may be of this row. `likely` is the result of
    /// [`Block::likely_anchor`] for the row, if that was called.
    pub(crate) fn of_row(
        block: Arc<Block>,
        likely: Option<usize>,
        order: CellOrder,
        row: &[u8],
    ) -> Parsed<LocatedRow> {
        let Body::Plain(cells) = block.body() else { return Ok(LocatedRow::Unknown) };
        let payload = block.payload();
        let slice = match cells.row_between_anchors(payload, likely, row)? {
            Some(slice) => slice,
            None => match cells.seek(payload, likely, order, &KeyBuf::first_on_row(row))? {
                None => return Ok(LocatedRow::Unknown),
                Some(span) if key::row(span.key(payload)) != row => return Ok(LocatedRow::Absent),
                Some(span) => (span, cells.last_row_start()),
            },
        };
        let (span, end) = slice;
        Ok(if span.start() < end {
            LocatedRow::Slice(RowSlice { block, span, end })
        } else {
            LocatedRow::Unknown
        })
    }

    /// The rows from the cell at `span` on, up to the row `stop` (exclusive) unless that is empty.
    /// `None` if the block has no such whole row.
    pub(crate) fn new(
        block: &Arc<Block>,
        span: CellSpan,
        order: CellOrder,
        stop: &[u8],
    ) -> Parsed<Option<RowSlice>> {
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
        Ok((span.start() < end).then(|| RowSlice { block: block.clone(), span, end }))
    }

    /// The current cell; `None` at the end.
    #[inline]
    pub fn cell(&self) -> Option<Cell<'_>> {
        self.cell_at(self.position())
    }

    /// The value of the current cell, sharing the memory of its block. Only for a
    /// [large](crate::LARGE_VALUE_LEN) value that fills at least half of the block.
    pub fn large_value(&self) -> Option<Bytes> {
        self.cell().and_then(|_| self.block.large_value(self.span.value_range()))
    }

    /// Moves to the next cell.
    #[inline]
    pub fn next(&mut self) {
        // The slice ends at the start of a cell, so there is always a next one.
        if let Body::Plain(cells) = self.block.body()
            && let Ok(span) = cells.span(self.block.payload(), self.span.end)
        {
            self.span = span;
        }
    }

    /// Moves to the first cell at or after `target`, a key of a row of the slice. Never moves back.
    pub fn seek_forward(&mut self, order: CellOrder, target: &[u8]) {
        let (Body::Plain(cells), payload) = (self.block.body(), self.block.payload()) else { return };
        if order.compare_keys(self.span.key(payload), target).is_lt()
            && let Ok(span) = cells.seek_forward(payload, order, target, self.span)
        {
            // There always is one, at the latest the row at which the slice ends.
            self.span = span;
        }
    }

    /// The current position.
    #[inline]
    pub fn position(&self) -> SlicePosition {
        SlicePosition(self.span)
    }

    /// The cell at an earlier [`position`](Self::position).
    #[inline]
    pub fn cell_at(&self, position: SlicePosition) -> Option<Cell<'_>> {
        (position.0.start() < self.end).then(|| position.0.cell(self.block.payload()))
    }

    /// Bytes between `position` and the current cell.
    #[inline]
    pub fn bytes_since(&self, position: SlicePosition) -> usize {
        (self.span.start() - position.0.start()) as usize
    }

    /// The current cell, or the one at which the slice ended.
    pub(crate) fn span(&self) -> CellSpan {
        self.span
    }

    /// Returns to an earlier [`position`](Self::position).
    pub fn return_to(&mut self, position: SlicePosition) {
        debug_assert!(position.0.start() <= self.span.start(), "a slice only returns to where it was");
        self.span = position.0;
    }
}
