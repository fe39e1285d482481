//! The blocks that a compaction reads. Each block is read once, which does not show that it is
//! popular, so the look-ups do not affect the cache. But a block that is already cached shows that
//! its cells are read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use hfile::{Block, BlockKind, BlockSource, Reader};

use crate::scanner::blocks::ScannerBlocks;
use crate::scanner::load::BlockLoader;
use crate::store::StoreFile;

/// The block source of a compaction's cursors: supplied blocks, then the cache, which does not
/// count these look-ups.
pub(crate) struct CompactionBlocks {
    blocks: ScannerBlocks,
    /// For each file, whether the data block that its cursor read last was cached.
    files: Vec<(u64, AtomicBool)>,
}

impl CompactionBlocks {
    pub(crate) fn new(cache: Arc<BlockLoader>, files: &[Arc<StoreFile>]) -> CompactionBlocks {
        let cold = |file: &Arc<StoreFile>| (file.reader().file_id(), AtomicBool::new(false));
        CompactionBlocks { blocks: ScannerBlocks::new(cache), files: files.iter().map(cold).collect() }
    }

    /// Whether one of the cursors' current blocks was cached.
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

impl BlockSource for CompactionBlocks {
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
