//! A position at a cell of a data block in any encoding.

use std::sync::Arc;

use bytes::Bytes;
use cell::{Cell, CellOrder};

use crate::block::packed::Assembled;
use crate::block::plain::CellSpan;
use crate::block::{Block, Body};
use crate::error::{Fault, Parsed};
use crate::row_slice::RowSlice;

/// A cell and its block, which the position keeps in memory. The buffer of an assembled key is
/// reused for the next block.
#[derive(Clone, Debug, Default)]
pub(crate) struct BlockPosition {
    block: Option<Arc<Block>>,
    span: CellSpan,
    assembled: Assembled,
}

const NOT_DATA: Fault = Fault::Damaged("index points at a block without cells");

impl BlockPosition {
    /// The block.
    #[inline]
    pub(crate) fn block(&self) -> Option<&Arc<Block>> {
        self.block.as_ref()
    }

    /// Releases the block.
    pub(crate) fn clear(&mut self) {
        self.block = None;
    }

    /// The key of the cell.
    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        match self.block.as_deref() {
            Some(block) => match block.body() {
                Body::Plain(_) => self.span.key(block.payload()),
                _ => &self.assembled.key,
            },
            None => &[],
        }
    }

    /// The cell.
    #[inline]
    pub(crate) fn cell(&self) -> Option<Cell<'_>> {
        let block = self.block.as_deref()?;
        let payload = block.payload();
        Some(match block.body() {
            Body::Plain(_) => self.span.cell(payload),
            _ => Cell {
                key: &self.assembled.key,
                value: &payload[self.assembled.span.value_range()],
                tags: self.assembled.span.tags(payload),
                seq_id: self.assembled.span.seq_id,
            },
        })
    }

    /// The value, sharing the memory of the block if that is worthwhile: see
    /// [`Block::large_value`].
    pub(crate) fn large_value(&self) -> Option<Bytes> {
        let block = self.block.as_deref()?;
        let range = match block.body() {
            Body::Plain(_) => self.span.value_range(),
            _ => self.assembled.span.value_range(),
        };
        block.large_value(range)
    }

    /// The whole rows from the current cell up to `stop` (exclusive) that lie in the block. `None`
    /// if there is none, or if the encoding is not plain.
    pub(crate) fn row_slice(&self, order: CellOrder, stop: &[u8]) -> Parsed<Option<RowSlice>> {
        self.block.as_ref().map_or(Ok(None), |block| RowSlice::new(block, self.span, order, stop))
    }

    /// Moves to the position of `slice`, which began here.
    pub(crate) fn resume(&mut self, slice: &RowSlice) {
        self.span = slice.span();
    }

    /// Moves to the first cell of `block`.
    pub(crate) fn first(&mut self, block: Arc<Block>) -> Parsed<()> {
        match block.body() {
            Body::Plain(cells) => self.span = cells.first(block.payload())?,
            Body::Packed(cells) => cells.first(&mut self.assembled),
            _ => return Err(NOT_DATA),
        }
        self.block = Some(block);
        Ok(())
    }

    /// Moves to the last cell of `block`.
    pub(crate) fn last(&mut self, block: Arc<Block>) -> Parsed<()> {
        match block.body() {
            Body::Plain(cells) => self.span = cells.last(block.payload())?,
            Body::Packed(cells) => cells.last(block.payload(), &mut self.assembled)?,
            _ => return Err(NOT_DATA),
        }
        self.block = Some(block);
        Ok(())
    }

    /// Moves to the next cell of the block. Returns false and does not move at the last cell.
    #[inline]
    pub(crate) fn advance(&mut self) -> Parsed<bool> {
        let Some(block) = self.block.as_deref() else { return Ok(false) };
        match block.body() {
            Body::Plain(cells) => match cells.after(block.payload(), &self.span)? {
                Some(span) => {
                    self.span = span;
                    Ok(true)
                }
                None => Ok(false),
            },
            Body::Packed(cells) => cells.advance(block.payload(), &mut self.assembled),
            _ => Err(NOT_DATA),
        }
    }

    /// Moves to the first cell of `block` at or after `target`. If there is none, returns the block
    /// and does not move.
    #[inline]
    pub(crate) fn seek(
        &mut self,
        block: Arc<Block>,
        order: CellOrder,
        target: &[u8],
    ) -> Parsed<Option<Arc<Block>>> {
        match block.body() {
            Body::Plain(cells) => match cells.seek(block.payload(), None, order, target)? {
                Some(span) => self.span = span,
                None => return Ok(Some(block)),
            },
            Body::Packed(cells) => {
                if order.compare_keys(target, cells.last_key()).is_gt() {
                    return Ok(Some(block));
                }
                cells.seek(block.payload(), order, target, &mut self.assembled, false)?;
            }
            _ => return Err(NOT_DATA),
        }
        self.block = Some(block);
        Ok(None)
    }

    /// Moves forward within the block to the first cell at or after `target`. The current cell must
    /// be before `target`, the last cell of the block must not.
    pub(crate) fn seek_forward(&mut self, order: CellOrder, target: &[u8]) -> Parsed<()> {
        let Some(block) = self.block.as_deref() else { return Err(NOT_DATA) };
        let payload = block.payload();
        match block.body() {
            Body::Plain(cells) => self.span = cells.seek_forward(payload, order, target, self.span)?,
            Body::Packed(cells) => cells.seek(payload, order, target, &mut self.assembled, true)?,
            _ => return Err(NOT_DATA),
        }
        Ok(())
    }

    /// Moves to the last cell of `block` before `target`. The first cell must be before it.
    pub(crate) fn seek_before(&mut self, block: Arc<Block>, order: CellOrder, target: &[u8]) -> Parsed<()> {
        match block.body() {
            Body::Plain(cells) => self.span = cells.seek_before(block.payload(), order, target)?,
            Body::Packed(cells) => {
                cells.seek_before(block.payload(), order, target, &mut self.assembled)?;
            }
            _ => return Err(NOT_DATA),
        }
        self.block = Some(block);
        Ok(())
    }
}
