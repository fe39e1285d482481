//! Half files: store files of which a store has only the rows on one side of a split row.
//!
//! The file is whole, and so are its index, its Bloom filters, and its metadata. Only the positions
//! of a cursor are limited. A cursor never shows a cell outside its half: one that would move to
//! such a cell is at no cell.
//!
//! Source: HBase `HalfStoreFileReader`.

use std::cmp::Ordering;
use std::sync::Arc;

use bytes::Bytes;
use cell::{Cell, CellOrder, KeyBuf};
use hfile::{BlockSource, Reader, Stop};
use layout::Reference;
use layout::reference::Range;

/// Which part of a file a store has.
#[derive(Debug)]
pub struct Half {
    split_row: Bytes,
    // Sorts before all cells of the split row.
    split_key: KeyBuf,
    range: Range,
}

impl Half {
    /// The part that `reference` names.
    pub fn of(reference: &Reference) -> Half {
        Half {
            split_row: reference.split_row.clone(),
            split_key: reference.split_key(),
            range: reference.range,
        }
    }

    /// Whether the part begins at the split row; otherwise it ends before it.
    pub fn is_top(&self) -> bool {
        self.range == Range::Top
    }

    /// The row that divides the file.
    pub fn split_row(&self) -> &[u8] {
        &self.split_row
    }

    /// Whether it may contain rows from `first` to `last`.
    pub(crate) fn may_have_rows(&self, order: CellOrder, first: &[u8], last: &[u8]) -> bool {
        match self.range {
            Range::Top => order.compare_rows(last, &self.split_row).is_ge(),
            Range::Bottom => order.compare_rows(first, &self.split_row).is_lt(),
        }
    }

    fn contains(&self, order: CellOrder, key: &[u8]) -> bool {
        let is_after = order.compare_keys(key, &self.split_key) != Ordering::Less;
        is_after == self.is_top()
    }
}

/// A cursor over the cells of a half. Its methods work like those of [`hfile::Cursor`].
pub(crate) struct HalfCursor {
    cursor: hfile::Cursor,
    half: Arc<Half>,
    // The file's cursor is at a cell outside the half, or a seek had no target in the half.
    is_outside: bool,
}

impl HalfCursor {
    pub(crate) fn new(reader: &Arc<Reader>, half: Arc<Half>) -> HalfCursor {
        HalfCursor { cursor: reader.cursor(), half, is_outside: false }
    }

    pub(crate) fn file(&self) -> &Arc<Reader> {
        self.cursor.file()
    }

    pub(crate) fn cell(&self) -> Option<Cell<'_>> {
        if self.is_outside { None } else { self.cursor.cell() }
    }

    /// Like the method of the [cursor](hfile::Cursor::large_value) of the whole file.
    pub(crate) fn large_value(&self) -> Option<Bytes> {
        if self.is_outside { None } else { self.cursor.large_value() }
    }

    /// Moves to the first cell that is not before `key`.
    pub(crate) fn seek(&mut self, key: &[u8], blocks: &dyn BlockSource) -> Result<(), Stop> {
        let is_before_split = self.order().compare_keys(key, &self.half.split_key) == Ordering::Less;
        match (self.half.range, is_before_split) {
            (Range::Bottom, false) => {
                self.is_outside = true;
                return Ok(());
            }
            (Range::Top, true) => self.cursor.seek(&self.half.split_key, blocks)?,
            _ => self.cursor.seek(key, blocks)?,
        }
        self.update_is_outside();
        Ok(())
    }

    /// Moves to the last cell before `key`.
    pub(crate) fn seek_before(&mut self, key: &[u8], blocks: &dyn BlockSource) -> Result<(), Stop> {
        let is_before_split = self.order().compare_keys(key, &self.half.split_key) == Ordering::Less;
        match (self.half.range, is_before_split) {
            (Range::Top, true) => {
                self.is_outside = true;
                return Ok(());
            }
            (Range::Bottom, false) => self.cursor.seek_before(&self.half.split_key, blocks)?,
            _ => self.cursor.seek_before(key, blocks)?,
        }
        self.update_is_outside();
        Ok(())
    }

    /// Moves to the next cell. The cursor must be at a cell.
    pub(crate) fn next(&mut self, blocks: &dyn BlockSource) -> Result<(), Stop> {
        if self.is_outside {
            return Ok(());
        }
        self.cursor.next(blocks)?;
        if !self.half.is_top() {
            self.update_is_outside();
        }
        debug_assert!(
            self.cell().is_none_or(|cell| self.half.contains(self.order(), cell.key)),
            "a cursor shows no cell outside its half"
        );
        Ok(())
    }

    /// Checks whether the current cell of the file's cursor is in the half.
    fn update_is_outside(&mut self) {
        let order = self.order();
        self.is_outside = self.cursor.cell().is_some_and(|cell| !self.half.contains(order, cell.key));
    }

    fn order(&self) -> CellOrder {
        self.cursor.file().order()
    }
}
