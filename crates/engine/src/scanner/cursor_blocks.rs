//! The blocks of file cursors that run without a scanner.

use std::sync::Arc;

use base::env::Clock;
use base::spent::{self, Phase};
use hfile::{BlockSource, Miss, Stop};

use crate::error::Result;
use crate::scanner::{BlockLoader, CachePolicy, ReadAhead, ScannerBlocks};

/// Loads and holds the blocks of cursors that run without a scanner, for one task.
///
/// The task passes [`source`](CursorBlocks::source) to a step of a cursor. If the step stops, the
/// task [handles](CursorBlocks::handle) that and repeats the step. After each successful step it
/// calls [`step_succeeded`](CursorBlocks::step_succeeded).
pub struct CursorBlocks {
    blocks: ScannerBlocks,
    read_ahead: ReadAhead,
    clock: Arc<dyn Clock>,
}

impl CursorBlocks {
    /// Blocks that come from the cache of `loader`, or that it loads. The clock times the loads.
    pub(crate) fn new(loader: Arc<BlockLoader>, clock: Arc<dyn Clock>) -> CursorBlocks {
        CursorBlocks { blocks: ScannerBlocks::new(loader), read_ahead: ReadAhead::default(), clock }
    }

    /// The blocks that a step can use.
    pub fn source(&self) -> &dyn BlockSource {
        &self.blocks
    }

    /// Call after a successful step: the cursor now holds the blocks that it needed.
    #[inline]
    pub fn step_succeeded(&mut self) {
        self.blocks.release_taken();
    }

    /// Loads the blocks that a step missed. Records damage that a step found.
    ///
    /// # Errors
    /// That of the step, or of reading the files.
    pub async fn handle(&mut self, stop: Stop) -> Result<()> {
        match stop {
            Stop::Miss(miss) => self.load(&miss).await,
            Stop::Failed(error) => {
                self.blocks.loader().record_damage(&error);
                Err(error.into())
            }
        }
    }

    /// Loads the blocks of a miss, and reads ahead. The blocks evict nothing from the cache: the
    /// values that callers build from them are cached instead. Blocks of a table that is larger
    /// than the cache would be evicted before their next use anyway.
    async fn load(&mut self, miss: &Miss) -> Result<()> {
        for missed in &miss.blocks {
            self.blocks.drop_before(missed.file.file_id(), missed.offset);
        }
        let loader = self.blocks.loader().clone();
        let load = loader.load_missed(miss, Some(&mut self.read_ahead), CachePolicy::IfRoom);
        for block in spent::timed_wait(Phase::Disk, &*self.clock, load).await? {
            BlockLoader::count_read(&block);
            self.blocks.supply(block);
        }
        Ok(())
    }
}
