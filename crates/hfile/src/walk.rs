//! The cells of one file in order, for tools and checks that read whole files.

use std::sync::Arc;

use cell::Cell;
use fs::IoClass;

use crate::{Cursor, Miss, Pinned, Reader, Result, Stop};

/// Memory of read blocks from which those that were passed are released.
const HELD_BYTES_MAX: usize = 4 << 20;

/// A position among the cells of a file, before the first one at the beginning. It loads the blocks
/// that it reaches, and no cache has them afterwards.
pub struct Walk {
    cursor: Cursor,
    blocks: Pinned,
    held_bytes: usize,
    class: IoClass,
    read_bytes: usize,
}

impl Walk {
    /// A walk through `file`. Each read has this class, and about `read_bytes` bytes, but at least
    /// one block.
    pub fn new(file: &Arc<Reader>, class: IoClass, read_bytes: usize) -> Walk {
        Walk { cursor: file.cursor(), blocks: Pinned::new(None), held_bytes: 0, class, read_bytes }
    }

    /// The cell; `None` before the first and after the last one.
    pub fn cell(&self) -> Option<Cell<'_>> {
        self.cursor.cell()
    }

    /// Moves to the next cell, or after the last one.
    ///
    /// # Errors
    /// Errors of reading, and damage.
    pub async fn next(&mut self) -> Result<()> {
        loop {
            let stop = self.cursor.next(&self.blocks);
            if self.proceed(stop).await? {
                return Ok(());
            }
        }
    }

    /// Moves to the first cell whose key is `key` or greater.
    ///
    /// # Errors
    /// As [`next`](Walk::next).
    pub async fn seek(&mut self, key: &[u8]) -> Result<()> {
        loop {
            let stop = self.cursor.seek(key, &self.blocks);
            if self.proceed(stop).await? {
                return Ok(());
            }
        }
    }

    /// Whether a step is done. Otherwise the blocks that it missed are loaded.
    async fn proceed(&mut self, step: std::result::Result<(), Stop>) -> Result<bool> {
        match step {
            Ok(()) => {
                // The cursor holds its current blocks.
                if self.held_bytes > HELD_BYTES_MAX {
                    self.blocks.clear();
                    self.held_bytes = 0;
                }
                Ok(true)
            }
            Err(Stop::Failed(error)) => Err(error),
            Err(Stop::Miss(miss)) => self.load(miss).await.map(|()| false),
        }
    }

    async fn load(&mut self, miss: Miss) -> Result<()> {
        for block in &miss.blocks {
            for loaded in block.file.load_range(self.class, block, self.read_bytes).await? {
                self.held_bytes += loaded.block.heap_len();
                self.blocks.supply(loaded.block);
            }
        }
        Ok(())
    }
}
