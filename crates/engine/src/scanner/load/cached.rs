//! The values in the cache: blocks, and column vectors that were built from them.

use std::sync::Arc;

use base::spent::{self, Use};
use cache::{Class, Weighted};
use hfile::{Block, BlockKind};

use crate::columns::CachedEntry;

/// A value in the cache.
#[derive(Clone)]
pub(super) enum CacheValue {
    Block {
        block: Arc<Block>,
        in_memory: bool,
    },
    /// Built from blocks. Its number belongs to no file.
    Vector(Arc<CachedEntry>),
}

/// The kind of vectors in the statistics of the cache. No block has this kind.
const VECTOR_KIND: usize = cache::KINDS - 1;
const _: () = assert!((BlockKind::DeleteFamilyBloomMeta as usize) < VECTOR_KIND);

impl CacheValue {
    pub(super) fn block(self) -> Option<Arc<Block>> {
        match self {
            CacheValue::Block { block, .. } => Some(block),
            CacheValue::Vector(_) => None,
        }
    }

    /// The block, counted as a cache hit of the current call.
    #[inline]
    pub(super) fn hit(self) -> Option<Arc<Block>> {
        self.block().map(count_hit)
    }
}

/// Counts a cache hit of the current call.
#[inline]
pub(super) fn count_hit(block: Arc<Block>) -> Arc<Block> {
    spent::used(Use::BlockHits, 1);
    spent::used(Use::BlockBytes, block.payload_len() as u64);
    block
}

impl Weighted for CacheValue {
    fn weight(&self) -> usize {
        match self {
            CacheValue::Block { block, .. } => block.heap_len(),
            CacheValue::Vector(vector) => vector.heap_len(),
        }
    }

    fn class(&self) -> Class {
        match self {
            CacheValue::Block { block, in_memory } => match block.kind() {
                BlockKind::Data if *in_memory => Class::Favoured,
                BlockKind::Data | BlockKind::Meta => Class::Normal,
                _ => Class::Index,
            },
            // Expensive to build, and much smaller than their blocks.
            CacheValue::Vector(_) => Class::Favoured,
        }
    }

    fn kind(&self) -> usize {
        match self {
            CacheValue::Block { block, .. } => block.kind() as usize,
            CacheValue::Vector(_) => VECTOR_KIND,
        }
    }
}
