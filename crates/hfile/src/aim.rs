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

/// The block of a file where a row begins, if the file has it.
pub struct Aim {
    block: Arc<Block>,
    order: CellOrder,
    // Among the places where a search in the block may begin, those between which it does, and the one where it does, most likely.
    among: Range<usize>,
    likely: Option<usize>,
}

impl Aim {
    /// Seeks the block for `key`, which is in front of all cells of its row, and asks the processor for it. Only where it
    /// and the way to it are in `source`, the way was checked by a cursor, and cells can be entered in the middle.
    pub fn at(file: &Arc<Reader>, key: &[u8], source: &dyn BlockSource) -> Option<Aim> {
        debug_assert!(key::is_first_on_row(key));
        let is_plain = matches!(file.info().encoding, BlockEncoding::None | BlockEncoding::RowIndexV1);
        if file.assigned_seq_id().is_some() || !is_plain {
            return None;
        }
        let (order, row) = (file.order(), key::row(key));
        let is_before = |entry: &[u8]| order.compare_keys(entry, key) != Ordering::Greater;
        let mut target = file.root().target(file.root().last_where_of(row, is_before)?);
        for _ in 1..file.trailer().data_index_levels {
            let block = source.block(file, target.offset).filter(|block| block.is_start_checked())?;
            let index = block.index()?;
            target = index.target(index.last_where_of(row, is_before)?);
        }
        let block = source.block(file, target.offset)?;
        block.prefetch();
        Some(Aim { block, order, among: 0..0, likely: None })
    }

    /// The file whose block it is.
    pub fn file_id(&self) -> u64 {
        self.block.file_id()
    }

    /// Asks the processor for what a search for `row` looks at first. Quick once the block itself has come.
    pub fn prefetch_search(&mut self, row: &[u8]) {
        self.among = self.block.prefetch_search(row);
    }

    /// Asks the processor for the first cell of `row`, most likely. Quick once what
    /// [`prefetch_search`](Self::prefetch_search) asked for has come.
    pub fn prefetch_cell(&mut self, row: &[u8]) {
        self.likely = self.block.prefetch_cell(row, self.among.clone());
    }

    /// The row of `key`, the key that was aimed at.
    pub fn row(self, key: &[u8]) -> Row {
        if self.block.kind() != BlockKind::Data || !self.block.is_start_checked() {
            return Row::Unknown;
        }
        // Of a fault a cursor tells.
        Run::of_row(self.block, self.likely, self.order, key).unwrap_or(Row::Unknown)
    }
}
