//! Where cursors get their blocks, and what they say when one is not there.
//!
//! Reading is split in two: cursors are plain code over memory and never wait; the driver, which may wait, loads what
//! they miss and hands it over. A step that misses has changed nothing and is simply made again.

use std::sync::Arc;

use crate::block::Block;
use crate::block::kind::BlockKind;
use crate::error::Error;
use crate::reader::Reader;

/// Why a step was not made.
#[derive(Debug)]
pub enum Stop {
    /// Blocks are missing: load them and make the step again.
    Miss(Miss),
    /// The file cannot be read.
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Failed(error)
    }
}

/// All blocks that a step needs and did not find, as far as it could know.
#[derive(Debug, Default)]
pub struct Miss {
    /// The blocks.
    pub blocks: Vec<BlockRef>,
}

impl Miss {
    /// Joins what two cursors miss.
    pub fn merge(&mut self, other: Miss) {
        for block in other.blocks {
            if !self.blocks.iter().any(|known| known.is(&block)) {
                self.blocks.push(block);
            }
        }
    }
}

/// A block of a file, by its place.
#[derive(Clone)]
pub struct BlockRef {
    /// The file.
    pub file: Arc<Reader>,
    /// Where in the file it starts.
    pub offset: u64,
    /// Bytes on disk, header and checksums included; 0 if that is not known.
    pub len: u32,
    /// What it must be.
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

/// What is in memory now. Asking does no input or output.
pub trait BlockSource: Send + Sync {
    /// The block of `file` at `offset`, if it is there.
    fn block(&self, file: &Arc<Reader>, offset: u64) -> Option<Arc<Block>>;

    /// Asks the processor for what [`block`](Self::block) will look at, and for the block. A hint: where it would take as long,
    /// nothing is done.
    fn prefetch(&self, _file_id: u64, _offset: u64) {}
}

/// Blocks that a driver has handed over, before what another source (the cache) has.
///
/// A missed block goes to its cursor this way, so that a cache that is small or busy cannot lose it in between.
#[derive(Default)]
pub struct Pinned {
    /// Few at a time: those of one miss, or of one read ahead.
    blocks: Vec<Arc<Block>>,
    behind: Option<Arc<dyn BlockSource>>,
}

impl Pinned {
    /// Nothing pinned yet; blocks not pinned are asked of `behind`.
    pub fn new(behind: Option<Arc<dyn BlockSource>>) -> Pinned {
        Pinned { blocks: Vec::new(), behind }
    }

    /// Keeps a block at hand.
    pub fn supply(&mut self, block: Arc<Block>) {
        self.blocks.push(block);
    }

    /// Lets all pinned blocks go. Cursors hold the blocks that they are in themselves.
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
            .or_else(|| self.behind.as_ref().and_then(|behind| behind.block(file, offset)))
    }
}
