//! Halves: a store file of which a store has the rows on one side of a split row only.
//!
//! The file is whole, and so are its index, its Bloom filters and what it says of itself; only where a cursor may stand is
//! bounded. Nothing of a half is outside it: a cursor that would come to stand there stands on nothing.
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
    // Before all cells of the split row.
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

    /// Whether it has the rows from the split row on.
    pub fn is_top(&self) -> bool {
        self.range == Range::Top
    }

    /// The row that divides the file.
    pub fn split_row(&self) -> &[u8] {
        &self.split_row
    }

    /// Whether rows from `first` to `last` may be in it.
    pub(crate) fn may_have_rows(&self, order: CellOrder, first: &[u8], last: &[u8]) -> bool {
        match self.range {
            Range::Top => order.compare_rows(last, &self.split_row).is_ge(),
            Range::Bottom => order.compare_rows(first, &self.split_row).is_lt(),
        }
    }

    fn has(&self, order: CellOrder, key: &[u8]) -> bool {
        let is_behind = order.compare_keys(key, &self.split_key) != Ordering::Less;
        is_behind == self.is_top()
    }
}

/// Walks through the cells of a half. Its steps are those of [`hfile::Cursor`].
pub(crate) struct HalfCursor {
    cursor: hfile::Cursor,
    half: Arc<Half>,
    // The cursor stands on a cell that is not in the half, or was sent to none.
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

    /// As of the [cursor](hfile::Cursor::large_value) of the whole file.
    pub(crate) fn large_value(&self) -> Option<Bytes> {
        if self.is_outside { None } else { self.cursor.large_value() }
    }

    /// To the first cell that is not before `key`.
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
        self.look();
        Ok(())
    }

    /// To the last cell before `key`.
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
        self.look();
        Ok(())
    }

    /// To the next cell. Only for a cursor that stands on one.
    pub(crate) fn next(&mut self, blocks: &dyn BlockSource) -> Result<(), Stop> {
        if self.is_outside {
            return Ok(());
        }
        self.cursor.next(blocks)?;
        if !self.half.is_top() {
            self.look();
        }
        Ok(())
    }

    /// Sees whether the cell that the cursor stands on is in the half.
    fn look(&mut self) {
        let order = self.order();
        self.is_outside = self.cursor.cell().is_some_and(|cell| !self.half.has(order, cell.key));
    }

    fn order(&self) -> CellOrder {
        self.cursor.file().order()
    }
}
