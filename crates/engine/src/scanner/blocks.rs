//! The blocks that a scanner's cursors can use: supplied blocks first, then the cache.
//!
//! A supplied block stays here until a cursor has taken it and the step that needed it has
//! succeeded. From then on the cursor holds it. So blocks that were read ahead wait here, not in
//! the cache, and a step that needs several blocks finds them all, however small the cache is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use hfile::{Block, BlockSource, Reader};

use crate::scanner::load::BlockLoader;

/// The block source of a scanner's cursors.
pub(crate) struct ScannerBlocks {
    cache: Arc<BlockLoader>,
    // Searched linearly, because they are few.
    supplied: Vec<SuppliedBlock>,
}

pub(crate) struct SuppliedBlock {
    block: Arc<Block>,
    // Atomic, because cursors only have a shared reference.
    taken: AtomicBool,
}

impl ScannerBlocks {
    pub(crate) fn new(cache: Arc<BlockLoader>) -> ScannerBlocks {
        ScannerBlocks { cache, supplied: Vec::new() }
    }

    pub(crate) fn loader(&self) -> &Arc<BlockLoader> {
        &self.cache
    }

    /// Adds a block that a cursor will request.
    pub(crate) fn supply(&mut self, block: Arc<Block>) {
        self.supplied.push(SuppliedBlock { block, taken: AtomicBool::new(false) });
    }

    /// Drops blocks of a file before `offset` that were read ahead in vain, because its cursor is
    /// past them.
    pub(crate) fn drop_before(&mut self, file_id: u64, offset: u64) {
        self.supplied.retain(|held| {
            held.taken.load(Relaxed) || held.block.file_id() != file_id || held.block.offset() >= offset
        });
    }

    /// Removes all blocks that were read ahead. A block that is needed later is missed again.
    pub(crate) fn take_supplied(&mut self) -> Vec<SuppliedBlock> {
        std::mem::take(&mut self.supplied)
    }

    /// The block, if it was supplied. Marks it as taken.
    pub(crate) fn supplied(&self, file_id: u64, offset: u64) -> Option<Arc<Block>> {
        let mut supplied = self.supplied.iter();
        let held = supplied.find(|held| held.block.offset() == offset && held.block.file_id() == file_id)?;
        held.taken.store(true, Relaxed);
        Some(held.block.clone())
    }

    /// Drops the blocks that cursors took. To be called after a successful step.
    #[inline]
    pub(crate) fn release_taken(&mut self) {
        if !self.supplied.is_empty() {
            self.supplied.retain(|held| !held.taken.load(Relaxed));
        }
    }
}

impl BlockSource for ScannerBlocks {
    fn block(&self, file: &Arc<Reader>, offset: u64) -> Option<Arc<Block>> {
        let file_id = file.file_id();
        self.supplied(file_id, offset).or_else(|| self.cache.cached(file_id, offset))
    }
}
