//! Locates one row in a file without a cursor.
//!
//! Most rows begin and end within one cached block. Such a row needs neither the index path nor the
//! neighbor blocks that a [`Cursor`](crate::Cursor) tracks. Rows that do need them are left to a
//! cursor.
//!
//! A locator works in stages. A caller that reads many rows advances all of its locators by one
//! stage before the next, and each stage prefetches what the following stage reads. Cache misses of
//! different rows then overlap.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use cell::schema::BlockEncoding;
use cell::{CellOrder, key};

use crate::block::Block;
use crate::block::kind::BlockKind;
use crate::reader::Reader;
use crate::row_slice::{LocatedRow, RowSlice};
use crate::source::BlockSource;

/// Where a row begins in a file, if the file has the row.
pub struct RowLocator {
    file_id: u64,
    order: CellOrder,
    block_offset: u64,
    stage: Stage,
    block: Option<Arc<Block>>,
    // Search marks of the block between which the row's first cell lies.
    search_marks: Range<usize>,
    // The search mark at which the row most likely begins.
    likely_mark: Option<usize>,
}

/// The last completed stage of a [`RowLocator`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    BlockLocated,
    BlockPrefetched,
    BlockTaken,
    SearchPrefetched,
    CellFound,
    CellPrefetched,
}

impl RowLocator {
    /// Stages after [`new`](Self::new), each of which one call of [`advance`](Self::advance) does.
    pub const STAGES: usize = 5;

    /// Finds the block in which `row` begins, if the file has it.
    ///
    /// Returns `None` if an index block on the path is not in `source` or was not yet checked by a
    /// cursor, or if the file's cells cannot be entered in the middle of a block.
    pub fn new(file: &Arc<Reader>, row: &[u8], source: &dyn BlockSource) -> Option<RowLocator> {
        let is_plain = matches!(file.info().encoding, BlockEncoding::None | BlockEncoding::RowIndexV1);
        if file.assigned_seq_id().is_some() || !is_plain {
            return None;
        }
        let (file_id, order) = (file.file_id(), file.order());
        let precedes_row = |entry: &[u8]| is_at_or_before_row_start(order, entry, row);
        let mut target = file.root().target(file.root().last_where_of(row, precedes_row)?);
        for _ in 1..file.trailer().data_index_levels {
            let block = source.block(file, target.offset).filter(|block| block.is_start_checked())?;
            let index = block.index()?;
            target = index.target(index.last_where_of(row, precedes_row)?);
        }
        Some(RowLocator {
            file_id,
            order,
            block_offset: target.offset,
            stage: Stage::BlockLocated,
            block: None,
            search_marks: 0..0,
            likely_mark: None,
        })
    }

    /// The file in which the row was located.
    pub fn file_id(&self) -> u64 {
        self.file_id
    }

    /// Does the next stage: prefetches the block, takes it, prefetches the memory that a search for
    /// the row reads, finds the row's first cell, and prefetches that cell.
    ///
    /// # Panics
    /// If `file` is not the file of [`new`](Self::new).
    #[inline]
    pub fn advance(&mut self, row: &[u8], file: &Arc<Reader>, source: &dyn BlockSource) {
        self.stage = match self.stage {
            Stage::BlockLocated => {
                source.prefetch(self.file_id, self.block_offset);
                Stage::BlockPrefetched
            }
            Stage::BlockPrefetched => {
                self.take_block(file, source);
                Stage::BlockTaken
            }
            Stage::BlockTaken => {
                if let Some(block) = &self.block {
                    self.search_marks = block.prefetch_search(row);
                }
                Stage::SearchPrefetched
            }
            Stage::SearchPrefetched => {
                if let Some(block) = &self.block {
                    self.likely_mark = block.likely_cell(row, self.search_marks.clone());
                }
                Stage::CellFound
            }
            Stage::CellFound | Stage::CellPrefetched => {
                if let (Some(block), Some(likely)) = (&self.block, self.likely_mark) {
                    block.prefetch_cell(likely);
                }
                Stage::CellPrefetched
            }
        };
    }

    /// The cells of `row`. Stages that were not done are skipped: they only save time.
    ///
    /// # Panics
    /// If `file` is not the file of [`new`](Self::new).
    pub fn row(mut self, row: &[u8], file: &Arc<Reader>, source: &dyn BlockSource) -> LocatedRow {
        if matches!(self.stage, Stage::BlockLocated | Stage::BlockPrefetched) {
            self.take_block(file, source);
        }
        let is_checked_data =
            |block: &Arc<Block>| block.kind() == BlockKind::Data && block.is_start_checked();
        let Some(block) = self.block.filter(is_checked_data) else { return LocatedRow::Unknown };
        // A cursor reports damage of the block, with its position.
        RowSlice::of_row(block, self.likely_mark, self.order, row).unwrap_or(LocatedRow::Unknown)
    }

    fn take_block(&mut self, file: &Arc<Reader>, source: &dyn BlockSource) {
        assert_eq!(file.file_id(), self.file_id, "the row was located in another file");
        self.block = source.block(file, self.block_offset);
        if let Some(block) = &self.block {
            block.prefetch();
        }
    }
}

/// Whether `key` is at or before the position that precedes all cells of `row`.
#[inline]
fn is_at_or_before_row_start(order: CellOrder, key: &[u8], row: &[u8]) -> bool {
    match order.compare_rows(key::row(key), row) {
        Ordering::Less => true,
        Ordering::Equal => key::is_first_on_row(key),
        Ordering::Greater => false,
    }
}
