//! Where cursors get their blocks, and how they report missing ones.
//!
//! Reading has two parts. Cursors are synchronous code over memory and never wait. The driver may
//! wait: it loads the blocks that a step misses and supplies them. A step that misses changes
//! nothing and is simply repeated.

use std::sync::Arc;

use crate::block::Block;
use crate::block::kind::BlockKind;
use crate::error::Error;
use crate::reader::Reader;

/// The reason why a step was not done.
#[derive(Debug)]
pub enum Stop {
    /// Blocks are missing: load them and repeat the step.
    Miss(Miss),
    /// The file cannot be read.
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Failed(error)
    }
}

/// Blocks that a step needs and did not find. The repeated step may miss more.
#[derive(Debug, Default)]
pub struct Miss {
    /// The missing blocks.
    pub blocks: Vec<BlockRef>,
}

impl Miss {
    /// Adds the blocks that another cursor misses, without duplicates.
    pub fn merge(&mut self, other: Miss) {
        for block in other.blocks {
            if !self.blocks.iter().any(|known| known.is(&block)) {
                self.blocks.push(block);
            }
        }
    }
}

/// The location of a block.
#[derive(Clone)]
pub struct BlockRef {
    /// The file that contains the block.
    pub file: Arc<Reader>,
    /// Offset of the block in the file.
    pub offset: u64,
    /// Bytes on disk, including header and checksums; 0 if unknown.
    pub len: u32,
    /// The kind that the block must have.
    pub kind: BlockKind,
}

impl BlockRef {
    fn is(&self, other: &BlockRef) -> bool {
        self.file.file_id() == other.file.file_id() && self.offset == other.offset
    }
}

impl std::fmt::Debug for BlockRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}@{}+{} {:?}", self.file.path(), self.offset, self.len, self.kind)
    }
}

/// The blocks that are in memory. Lookups do no I/O.
pub trait BlockSource: Send + Sync {
    /// The block of `file` at `offset`, if it is in memory.
    fn block(&self, file: &Arc<Reader>, offset: u64) -> Option<Arc<Block>>;

    /// Prefetches the memory that [`block`](Self::block) reads, and the block. This is a hint: a
    /// source for which it would cost as much as the lookup does nothing.
    fn prefetch(&self, _file_id: u64, _offset: u64) {}
}

/// The blocks that a driver has supplied, backed by another source (the cache).
///
/// The driver passes missed blocks to their cursor this way, so that a small or busy cache cannot
/// evict them first.
#[derive(Default)]
pub struct Pinned {
    /// Only a few: the blocks of one miss or of one read-ahead.
    blocks: Vec<Arc<Block>>,
    fallback: Option<Arc<dyn BlockSource>>,
}

impl Pinned {
    /// An empty set. Lookups of other blocks go to `fallback`.
    pub fn new(fallback: Option<Arc<dyn BlockSource>>) -> Pinned {
        Pinned { blocks: Vec::new(), fallback }
    }

    /// Pins a block.
    pub fn supply(&mut self, block: Arc<Block>) {
        self.blocks.push(block);
    }

    /// Releases all pinned blocks. Cursors hold their current blocks themselves.
    pub fn clear(&mut self) {
        self.blocks.clear();
    }

    /// Number of pinned blocks.
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Whether no block is pinned.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }
}

impl BlockSource for Pinned {
    fn block(&self, file: &Arc<Reader>, offset: u64) -> Option<Arc<Block>> {
        let is_it = |block: &&Arc<Block>| block.offset() == offset && block.file_id() == file.file_id();
        self.blocks
            .iter()
            .rev()
            .find(is_it)
            .cloned()
            .or_else(|| self.fallback.as_ref().and_then(|fallback| fallback.block(file, offset)))
    }
}
