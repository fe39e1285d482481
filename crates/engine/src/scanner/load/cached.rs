//! The values in the cache: blocks, and values that other crates derived from them.

use std::sync::Arc;

use base::spent::{self, Use};
use cache::{Class, Weighted};
use hfile::{Block, BlockKind};

use super::derived::CachedValue;

/// A value in the cache.
#[derive(Clone)]
pub(super) enum CacheValue {
    Block {
        block: Arc<Block>,
        in_memory: bool,
    },
    /// Derived from blocks. Its number belongs to no file. The outer `Arc` is one word, so that
    /// entries of blocks stay small.
    Derived(Arc<Arc<dyn CachedValue>>),
}
const _: () = assert!(size_of::<CacheValue>() == 2 * size_of::<usize>());

/// The kind of derived values in the statistics of the cache. No block has this kind.
const DERIVED_KIND: usize = cache::KINDS - 1;
const _: () = assert!((BlockKind::DeleteFamilyBloomMeta as usize) < DERIVED_KIND);

impl CacheValue {
    pub(super) fn block(self) -> Option<Arc<Block>> {
        match self {
            CacheValue::Block { block, .. } => Some(block),
            CacheValue::Derived(_) => None,
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
            CacheValue::Derived(value) => value.heap_len(),
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
            CacheValue::Derived(_) => Class::Favoured,
        }
    }

    fn kind(&self) -> usize {
        match self {
            CacheValue::Block { block, .. } => block.kind() as usize,
            CacheValue::Derived(_) => DERIVED_KIND,
        }
    }
}
