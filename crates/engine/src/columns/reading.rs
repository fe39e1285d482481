//! Reads files with separate cursors, without a scanner.

use std::sync::Arc;

use hfile::{BlockSource, Miss};

use crate::error::Result;
use crate::scanner::{BlockLoader, CachePolicy, ReadAhead, ScannerBlocks};

/// The blocks of one reader of files.
pub(super) struct Reading {
    blocks: ScannerBlocks,
    read_ahead: ReadAhead,
}

impl Reading {
    pub(super) fn new(loader: &Arc<BlockLoader>) -> Reading {
        Reading { blocks: ScannerBlocks::new(loader.clone()), read_ahead: ReadAhead::default() }
    }

    pub(super) fn blocks(&self) -> &dyn BlockSource {
        &self.blocks
    }

    /// Call after a successful step: the cursor now holds the blocks that it needed.
    #[inline]
    pub(super) fn step_succeeded(&mut self) {
        self.blocks.release_taken();
    }

    /// Loads the blocks of a miss, and reads ahead. The blocks evict nothing from the cache: the
    /// values built from them are cached instead. Blocks of a table that is larger than the cache
    /// would be evicted before their next use anyway.
    pub(super) async fn load(&mut self, miss: &Miss) -> Result<()> {
        for missed in &miss.blocks {
            self.blocks.drop_before(missed.file.file_id(), missed.offset);
        }
        let loader = self.blocks.loader().clone();
        for block in loader.load_missed(miss, Some(&mut self.read_ahead), CachePolicy::IfRoom).await? {
            BlockLoader::count_read(&block);
            self.blocks.supply(block);
        }
        Ok(())
    }
}
