//! Blocks set aside while a file is written, for a cache: what was just made, or takes the place of what was cached, is
//! likely to be asked for.

use bytes::Bytes;

use crate::index::Target;

/// Which blocks are set aside whatever they hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeepWritten {
    /// Data blocks.
    pub data: bool,
    /// Blocks of the index.
    pub index: bool,
    /// Chunks of Bloom filters.
    pub bloom: bool,
}

/// The blocks of a file that are set aside.
#[derive(Default)]
pub(crate) struct Kept {
    always: KeepWritten,
    /// Whether the data block under construction is.
    block: bool,
    /// Whether a data block was that the next leaf of the index, and the next chunk of a filter, lead to.
    leaf: bool,
    chunk: bool,
    blocks: Vec<(u64, Bytes)>,
}

impl Kept {
    pub(crate) fn new(always: KeepWritten) -> Kept {
        Kept { always, ..Kept::default() }
    }

    /// The data block under construction will be set aside, and what leads to it.
    pub(crate) fn want(&mut self) {
        (self.block, self.leaf, self.chunk) = (true, true, true);
    }

    /// Whether the data block that was completed is wanted.
    pub(crate) fn wants_data(&mut self) -> bool {
        std::mem::take(&mut self.block) || self.always.data
    }

    /// Whether the leaf that was completed is wanted.
    pub(crate) fn wants_leaf(&mut self) -> bool {
        std::mem::take(&mut self.leaf) || self.always.index
    }

    /// Whether the chunk that was completed is wanted.
    pub(crate) fn wants_chunk(&mut self) -> bool {
        std::mem::take(&mut self.chunk) || self.always.bloom
    }

    /// Sets a block aside, as it is on disk.
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
