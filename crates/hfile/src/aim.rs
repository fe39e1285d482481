//! A seek in two halves: first the way through the index to a block, then the search in it.
//!
//! Who seeks many keys makes the first halves of all before the second ones, and in between asks the processor for what
//! they will look at: it then waits for memory once, not once for each.

use std::sync::Arc;

use crate::block::Block;
use crate::cursor::Cursor;
use crate::reader::Reader;
use crate::source::{BlockSource, Stop};

/// A cursor that is about to seek a key, and the block where it looks first.
pub struct Aim {
    cursor: Cursor,
    block: Arc<Block>,
    // Among the places where a search in the block may begin, the one where it does, most likely.
    likely: Option<usize>,
}

impl Aim {
    /// A seek to `key`, if the block and the way to it are in `source`. The processor is asked for the block itself.
    pub fn at(file: &Arc<Reader>, key: &[u8], source: &dyn BlockSource) -> Option<Aim> {
        let mut cursor = file.cursor();
        let block = cursor.aim(key, source).ok().flatten()?;
        block.prefetch();
        Some(Aim { cursor, block, likely: None })
    }

    /// The file that is sought in.
    pub fn file(&self) -> &Arc<Reader> {
        self.cursor.file()
    }

    /// Asks the processor for what a seek to `row` looks at first. Quick once the block itself has come.
    pub fn prefetch_search(&self, row: &[u8]) {
        self.block.prefetch_search(row);
    }

    /// Asks the processor for the cell that a seek to `row` finds, most likely. Quick once what
    /// [`prefetch_search`](Self::prefetch_search) asked for has come.
    pub fn prefetch_cell(&mut self, row: &[u8]) {
        self.likely = self.block.prefetch_cell(row);
    }

    /// The cursor, where [`Cursor::seek`] to `key`, the key that was aimed at, would have brought it.
    ///
    /// # Errors
    /// [`Stop`].
    pub fn seek(self, key: &[u8], source: &dyn BlockSource) -> Result<Cursor, Stop> {
        let Aim { mut cursor, block, likely } = self;
        cursor.seek_from_aim(block, likely, key, source)?;
        Ok(cursor)
    }
}
