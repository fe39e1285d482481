//! The blocks that a scanner's cursors find in memory: those supplied to it first, then the cache.
//!
//! A supplied block stays until a cursor took it and the step that needed it has succeeded; from then on the cursor
//! itself holds it. So what was read ahead waits here, by no way of the cache, and a step that needs several blocks
//! finds them all, however small the cache is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use hfile::{Block, BlockSource, Reader};

use crate::scanner::load::BlockLoader;

/// What a scanner's cursors read from.
pub(crate) struct Blocks {
    cache: Arc<BlockLoader>,
    // Few, so they are searched one by one.
    supplied: Vec<Supplied>,
}

pub(crate) struct Supplied {
    block: Arc<Block>,
    // Set through a shared reference: cursors ask for blocks, they do not take them.
    taken: AtomicBool,
}

impl Blocks {
    pub(crate) fn new(cache: Arc<BlockLoader>) -> Blocks {
        Blocks { cache, supplied: Vec::new() }
    }

    pub(crate) fn loader(&self) -> &Arc<BlockLoader> {
        &self.cache
    }

    /// Takes a block that a cursor will ask for.
    pub(crate) fn supply(&mut self, block: Arc<Block>) {
        self.supplied.push(Supplied { block, taken: AtomicBool::new(false) });
    }

    /// Lets go of blocks of a file that lie before `offset` and were read ahead in vain: its cursor is past them.
    pub(crate) fn drop_before(&mut self, file_id: u64, offset: u64) {
        self.supplied.retain(|held| {
            held.taken.load(Relaxed) || held.block.file_id() != file_id || held.block.offset() >= offset
        });
    }

    /// Gives away all that was read ahead; what is needed after all is missed again.
    pub(crate) fn take_supplied(&mut self) -> Vec<Supplied> {
        std::mem::take(&mut self.supplied)
    }

    /// The block, if it was supplied.
    pub(crate) fn supplied(&self, file_id: u64, offset: u64) -> Option<Arc<Block>> {
        let mut supplied = self.supplied.iter();
        let held = supplied.find(|held| held.block.offset() == offset && held.block.file_id() == file_id)?;
        held.taken.store(true, Relaxed);
        Some(held.block.clone())
    }

    /// A step has succeeded: lets go of what cursors took.
    #[inline]
    pub(crate) fn release_taken(&mut self) {
        if !self.supplied.is_empty() {
            self.supplied.retain(|held| !held.taken.load(Relaxed));
        }
    }
}

impl BlockSource for Blocks {
    fn block(&self, file: &Arc<Reader>, offset: u64) -> Option<Arc<Block>> {
        let file_id = file.file_id();
        self.supplied(file_id, offset).or_else(|| self.cache.cached(file_id, offset))
    }
}
