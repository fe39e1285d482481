//! Reading of files by cursors of their own, beside scanners.

use std::sync::Arc;

use hfile::{BlockSource, Miss};

use crate::error::Result;
use crate::scanner::{BlockLoader, Blocks, Keep, Runs};

/// What one reader of files has at hand.
pub(super) struct Reading {
    blocks: Blocks,
    runs: Runs,
}

impl Reading {
    pub(super) fn new(loader: &Arc<BlockLoader>) -> Reading {
        Reading { blocks: Blocks::new(loader.clone()), runs: Runs::default() }
    }

    pub(super) fn blocks(&self) -> &dyn BlockSource {
        &self.blocks
    }

    /// A step was made: blocks that it needed are held by who made it.
    #[inline]
    pub(super) fn step_succeeded(&mut self) {
        self.blocks.release_taken();
    }

    /// Loads what a step missed, and what is read next. Blocks do not drive others out of the cache: what is made of them is kept,
    /// and of a table that is larger than the cache they would be gone before they are asked for again.
    pub(super) async fn load(&mut self, miss: &Miss) -> Result<()> {
        for missed in &miss.blocks {
            self.blocks.drop_before(missed.file.file_id(), missed.offset);
        }
        let loader = self.blocks.loader().clone();
        for block in loader.load_missed(miss, Some(&mut self.runs), Keep::Room).await? {
            BlockLoader::note_read(&block);
            self.blocks.supply(block);
        }
        Ok(())
    }
}
