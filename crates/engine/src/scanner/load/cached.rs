//! What the cache holds: blocks, and vectors that were made of them.

use std::sync::Arc;

use base::spent::{self, Use};
use cache::{Class, Weighted};
use hfile::{Block, BlockKind};

use crate::columns::Kept;

/// What is in the cache.
#[derive(Clone)]
pub(super) enum Cached {
    Block {
        block: Arc<Block>,
        in_memory: bool,
    },
    /// Made of blocks, under a number that no file has.
    Vector(Arc<Kept>),
}

/// As what vectors are counted: no block is of this kind.
const VECTOR_KIND: usize = cache::KINDS - 1;

impl Cached {
    pub(super) fn block(self) -> Option<Arc<Block>> {
        match self {
            Cached::Block { block, .. } => Some(block),
            Cached::Vector(_) => None,
        }
    }

    /// The block, which a call asked for.
    #[inline]
    pub(super) fn found(self) -> Option<Arc<Block>> {
        self.block().map(found)
    }
}

/// A block that a call asked for and that was there.
#[inline]
pub(super) fn found(block: Arc<Block>) -> Arc<Block> {
    spent::used(Use::BlocksFound, 1);
    spent::used(Use::BlockBytes, block.payload_len() as u64);
    block
}

impl Weighted for Cached {
    fn weight(&self) -> usize {
        match self {
            Cached::Block { block, .. } => block.heap_len(),
            Cached::Vector(vector) => vector.heap_len(),
        }
    }

    fn class(&self) -> Class {
        match self {
            Cached::Block { block, in_memory } => match block.kind() {
                BlockKind::Data if *in_memory => Class::Favoured,
                BlockKind::Data | BlockKind::Meta => Class::Usual,
                _ => Class::Guide,
            },
            // Dear to make, and a fraction of what they are made of.
            Cached::Vector(_) => Class::Favoured,
        }
    }

    fn kind(&self) -> usize {
        match self {
            Cached::Block { block, .. } => block.kind() as usize,
            Cached::Vector(_) => VECTOR_KIND,
        }
    }
}
