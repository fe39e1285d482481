//! The blocks that a compaction reads. It asks for each once, which says nothing of how much it is wanted; but whether a
//! block is in the cache tells how much its cells are.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use hfile::{Block, BlockKind, BlockSource, Reader};

use crate::scanner::blocks::Blocks;
use crate::scanner::load::BlockLoader;
use crate::store::StoreFile;

/// What the cursors of a compaction read from: blocks supplied to it, then the cache, which takes no note of it.
pub(crate) struct WatchedBlocks {
    blocks: Blocks,
    /// Of each file, whether the data block that its cursor took last was in the cache.
    files: Vec<(u64, AtomicBool)>,
}

impl WatchedBlocks {
    pub(crate) fn new(cache: Arc<BlockLoader>, files: &[Arc<StoreFile>]) -> WatchedBlocks {
        let cold = |file: &Arc<StoreFile>| (file.reader().file_id(), AtomicBool::new(false));
        WatchedBlocks { blocks: Blocks::new(cache), files: files.iter().map(cold).collect() }
    }

    /// Whether one of the blocks under the cursors was in the cache.
    #[inline]
    pub(crate) fn is_warm(&self) -> bool {
        self.files.iter().any(|(_, is_warm)| is_warm.load(Relaxed))
    }

    pub(crate) fn loader(&self) -> &Arc<BlockLoader> {
        self.blocks.loader()
    }

    pub(crate) fn supply(&mut self, block: Arc<Block>) {
        self.blocks.supply(block);
    }

    pub(crate) fn drop_before(&mut self, file_id: u64, offset: u64) {
        self.blocks.drop_before(file_id, offset);
    }

    #[inline]
    pub(crate) fn release_taken(&mut self) {
        self.blocks.release_taken();
    }
}

impl BlockSource for WatchedBlocks {
    fn block(&self, file: &Arc<Reader>, offset: u64) -> Option<Arc<Block>> {
        let cached = self.loader().peek(file.file_id(), offset);
        let is_cached = cached.is_some();
        let block = self.blocks.supplied(file.file_id(), offset).or(cached)?;
        if block.kind() == BlockKind::Data
            && let Some((_, is_warm)) = self.files.iter().find(|(file_id, _)| *file_id == file.file_id())
        {
            is_warm.store(is_cached, Relaxed);
        }
        Some(block)
    }
}
