//! The row that a Get asks for, sought without a cursor.
//!
//! Most rows begin and end within one block that is in memory. Such a row needs no way through the index to be remembered,
//! and nothing that leads on to other blocks. Whoever finds it otherwise asks a [`Cursor`](crate::Cursor).
//!
//! Who seeks many rows takes the first step for all before the second one, and in between asks the processor for what it will
//! look at: it then waits for memory once, not once for each.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use cell::schema::BlockEncoding;
use cell::{CellOrder, key};

use crate::block::Block;
use crate::block::kind::BlockKind;
use crate::reader::Reader;
use crate::run::{Row, Run};
use crate::source::BlockSource;

/// Where a row begins in a file, if the file has it.
pub struct Aim {
    file_id: u64,
    order: CellOrder,
    // The block, and where it is in the file.
    offset: u64,
    block: Option<Arc<Block>>,
    // Among the places where a search in the block may begin, those between which it does, and the one where it does, most likely.
    among: Range<usize>,
    likely: Option<usize>,
}

impl Aim {
    /// Finds which block `row` is in, if the file has it. Only where the way to the block is in `source` and was checked by a
    /// cursor, and cells can be entered in the middle.
    pub fn at(file: &Arc<Reader>, row: &[u8], source: &dyn BlockSource) -> Option<Aim> {
        let is_plain = matches!(file.info().encoding, BlockEncoding::None | BlockEncoding::RowIndexV1);
        if file.assigned_seq_id().is_some() || !is_plain {
            return None;
        }
        let (file_id, order) = (file.file_id(), file.order());
        let is_before = |entry: &[u8]| is_not_behind_start(order, entry, row);
        let mut target = file.root().target(file.root().last_where_of(row, is_before)?);
        for _ in 1..file.trailer().data_index_levels {
            let block = source.block(file, target.offset).filter(|block| block.is_start_checked())?;
            let index = block.index()?;
            target = index.target(index.last_where_of(row, is_before)?);
        }
        Some(Aim { file_id, order, offset: target.offset, block: None, among: 0..0, likely: None })
    }

    /// Asks the processor for what [`take_block`](Self::take_block) looks at, and for the block.
    pub fn prefetch_block(&self, source: &dyn BlockSource) {
        source.prefetch(self.file_id, self.offset);
    }

    /// Takes the block from `source`, if it is there, and asks the processor for it.
    ///
    /// # Panics
    /// If `file` is another one than was aimed at.
    pub fn take_block(&mut self, file: &Arc<Reader>, source: &dyn BlockSource) {
        assert_eq!(file.file_id(), self.file_id, "the file that was aimed at");
        self.block = source.block(file, self.offset);
        if let Some(block) = &self.block {
            block.prefetch();
        }
    }

    /// The file that was aimed at.
    pub fn file_id(&self) -> u64 {
        self.file_id
    }

    /// Asks the processor for what a search for `row` looks at first. Quick once the block itself has come.
    pub fn prefetch_search(&mut self, row: &[u8]) {
        if let Some(block) = &self.block {
            self.among = block.prefetch_search(row);
        }
    }

    /// Finds the first cell of `row`, most likely. Quick once what [`prefetch_search`](Self::prefetch_search) asked for has come.
    pub fn find_cell(&mut self, row: &[u8]) {
        if let Some(block) = &self.block {
            self.likely = block.likely_cell(row, self.among.clone());
        }
    }

    /// Asks the processor for the cell that was [found](Self::find_cell).
    pub fn prefetch_cell(&self) {
        if let (Some(block), Some(likely)) = (&self.block, self.likely) {
            block.prefetch_cell(likely);
        }
    }

    /// The row that was aimed at.
    pub fn row(self, row: &[u8]) -> Row {
        let is_usual = |block: &Arc<Block>| block.kind() == BlockKind::Data && block.is_start_checked();
        let Some(block) = self.block.filter(is_usual) else { return Row::Unknown };
        // Of a fault a cursor tells.
        Run::of_row(block, self.likely, self.order, row).unwrap_or(Row::Unknown)
    }
}

/// Whether a key is not behind the one in front of all cells of `row`.
#[inline]
fn is_not_behind_start(order: CellOrder, key: &[u8], row: &[u8]) -> bool {
    match order.compare_rows(key::row(key), row) {
        Ordering::Less => true,
        Ordering::Equal => key::is_first_on_row(key),
        Ordering::Greater => false,
    }
}
