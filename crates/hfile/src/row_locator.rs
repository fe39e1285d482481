//! Locates one row in a file without a cursor.
//!
//! Most rows begin and end within one cached block. A locator finds only such rows. For all other
//! rows the caller needs a [`Cursor`](crate::Cursor), which can move to the next block.
//!
//! A locator works in stages. Each stage prefetches the memory that the next stage reads. A caller
//! that reads many rows performs one stage for all rows, then the next stage for all rows. The CPU
//! cache misses of different rows then overlap.
//!
//! A search within a block begins at an *anchor*: one of the cells whose positions were listed when
//! the block was loaded.

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
    // Range of the block's anchors in which the row is searched.
    search_anchors: Range<usize>,
    // Index of the anchor at which the row most likely begins.
    likely_anchor: Option<usize>,
}

/// The last completed stage of a [`RowLocator`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    BlockLocated,
    BlockPrefetched,
    BlockTaken,
    SearchPrefetched,
    AnchorFound,
    CellPrefetched,
}

impl RowLocator {
    /// Number of stages after [`new`](Self::new). Each is one call of [`advance`](Self::advance).
    pub const STAGES: usize = 5;

    /// Finds the block in which `row` begins, if the file has the row.
    ///
    /// Returns `None` if a cursor is needed:
    /// * an index block on the path is not in `source`, or its first key was not checked yet (the
    ///   first cursor that reads the block checks it);
    /// * the cells of the file are encoded so that each depends on the previous one;
    /// * the file has an assigned sequence id.
    pub fn new(file: &Arc<Reader>, row: &[u8], source: &dyn BlockSource) -> Option<RowLocator> {
        let has_full_keys = matches!(file.info().encoding, BlockEncoding::None | BlockEncoding::RowIndexV1);
        if file.assigned_seq_id().is_some() || !has_full_keys {
            return None;
        }
        let (file_id, order) = (file.file_id(), file.order());
        let precedes_row = |entry: &[u8]| is_at_or_before_row_start(order, entry, row);
        let mut target = file.root().target(file.root().last_where_by_head(row, precedes_row)?);
        for _ in 1..file.trailer().data_index_levels {
            let block = source.block(file, target.offset).filter(|block| block.is_first_key_checked())?;
            let index = block.index()?;
            target = index.target(index.last_where_by_head(row, precedes_row)?);
        }
        Some(RowLocator {
            file_id,
            order,
            block_offset: target.offset,
            stage: Stage::BlockLocated,
            block: None,
            search_anchors: 0..0,
            likely_anchor: None,
        })
    }

    /// The file in which the row was located.
    pub fn file_id(&self) -> u64 {
        self.file_id
    }

    /// Does the next stage. The stages are: prefetch the block; take it from `source`; prefetch the
    /// memory that a search in the block reads; find the anchor at which the row most likely
    /// begins; prefetch the cell there.
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
                    self.search_anchors = block.prefetch_search(row);
                }
                Stage::SearchPrefetched
            }
            Stage::SearchPrefetched => {
                if let Some(block) = &self.block {
                    self.likely_anchor = block.likely_anchor(row, self.search_anchors.clone());
                }
                Stage::AnchorFound
            }
            Stage::AnchorFound | Stage::CellPrefetched => {
                if let (Some(block), Some(likely)) = (&self.block, self.likely_anchor) {
                    block.prefetch_cell(likely);
                }
                Stage::CellPrefetched
            }
        };
    }

    /// The cells of `row`. The stages need not be completed: they only save time.
    ///
    /// # Panics
    /// If `file` is not the file of [`new`](Self::new).
    pub fn row(mut self, row: &[u8], file: &Arc<Reader>, source: &dyn BlockSource) -> LocatedRow {
        if matches!(self.stage, Stage::BlockLocated | Stage::BlockPrefetched) {
            self.take_block(file, source);
        }
        let is_checked_data =
            |block: &Arc<Block>| block.kind() == BlockKind::Data && block.is_first_key_checked();
        let Some(block) = self.block.filter(is_checked_data) else { return LocatedRow::Unknown };
        // After an error, the caller reads the row by a cursor, which reports the error.
        RowSlice::of_row(block, self.likely_anchor, self.order, row).unwrap_or(LocatedRow::Unknown)
    }

    fn take_block(&mut self, file: &Arc<Reader>, source: &dyn BlockSource) {
        assert_eq!(file.file_id(), self.file_id, "the row was located in another file");
        self.block = source.block(file, self.block_offset);
        if let Some(block) = &self.block {
            block.prefetch();
        }
    }
}

/// Whether `key` is at most the smallest key that `row` can have.
#[inline]
fn is_at_or_before_row_start(order: CellOrder, key: &[u8], row: &[u8]) -> bool {
    match order.compare_rows(key::row(key), row) {
        Ordering::Less => true,
        Ordering::Equal => key::is_first_on_row(key),
        Ordering::Greater => false,
    }
}
