//! Blocks that are retained while a file is written, for the block cache. A block that was just
//! built, or that replaces a cached one, is likely to be read soon.

use bytes::Bytes;

use crate::index::Target;

/// The kinds of blocks that are always retained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetainKinds {
    /// Retain data blocks.
    pub data: bool,
    /// Retain index blocks.
    pub index: bool,
    /// Retain Bloom filter chunks.
    pub bloom: bool,
}

/// The retained blocks of a file.
#[derive(Default)]
pub(crate) struct RetainedBlocks {
    always: RetainKinds,
    /// Whether to retain the data block under construction.
    current_block: bool,
    /// Whether the next index leaf covers a retained data block.
    next_leaf: bool,
    /// Whether the next Bloom chunk covers a retained data block.
    next_chunk: bool,
    blocks: Vec<(u64, Bytes)>,
}

impl RetainedBlocks {
    pub(crate) fn new(always: RetainKinds) -> RetainedBlocks {
        RetainedBlocks { always, ..RetainedBlocks::default() }
    }

    /// Retains the data block under construction, and the index and Bloom blocks that cover it.
    pub(crate) fn retain_current(&mut self) {
        (self.current_block, self.next_leaf, self.next_chunk) = (true, true, true);
    }

    /// Whether to retain the data block that was just completed.
    pub(crate) fn retains_data(&mut self) -> bool {
        std::mem::take(&mut self.current_block) || self.always.data
    }

    /// Whether to retain the index leaf that was just completed.
    pub(crate) fn retains_leaf(&mut self) -> bool {
        std::mem::take(&mut self.next_leaf) || self.always.index
    }

    /// Whether to retain the Bloom chunk that was just completed.
    pub(crate) fn retains_chunk(&mut self) -> bool {
        std::mem::take(&mut self.next_chunk) || self.always.bloom
    }

    /// Retains a block in its on-disk form.
    pub(crate) fn add(&mut self, target: Target, on_disk: &[u8]) {
        self.blocks.push((target.offset, Bytes::copy_from_slice(on_disk)));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    pub(crate) fn take(&mut self) -> Vec<(u64, Bytes)> {
        std::mem::take(&mut self.blocks)
    }
}
