//! The second level of the block cache: which blocks are read from it, and offered to it.
//!
//! Only blocks with cells are; all others stay in memory. A block is stored as it is in its file,
//! so it is checked and decompressed like one that was read from there. It is offered when it is
//! read from its file, not when it is evicted from memory: only then its bytes are in memory, and a
//! block that is never evicted causes no write.

use std::sync::Arc;

use hfile::{Block, BlockRef, Error, LoadedBlock, Reader};
use ssdcache::{BlockId, SecondLevel};

use super::{CachePolicy, blocks_of};

type Result<T> = std::result::Result<T, Error>;

/// Blocks in the second level of the cache.
pub(super) struct BlocksOnSsd {
    cache: Arc<dyn SecondLevel>,
}

impl BlocksOnSsd {
    pub(super) fn new(cache: Arc<dyn SecondLevel>) -> BlocksOnSsd {
        BlocksOnSsd { cache }
    }

    /// Loads a block from the cache, or else from its file.
    pub(super) async fn load(&self, block: &BlockRef, policy: CachePolicy) -> Result<Arc<Block>> {
        if let Some(cached) = self.get(block).await {
            return Ok(cached);
        }
        let loaded = block.file.load_for(policy.io_class(), block).await?;
        if policy != CachePolicy::IndexesOnly {
            self.cache.offer(id_of(&block.file, block.offset), &loaded.on_disk);
        }
        Ok(loaded.block)
    }

    /// Loads consecutive blocks, about `bytes` bytes and at least `first`: those from the cache up
    /// to the first that is missing there, or if `first` is missing, all from the file.
    pub(super) async fn load_run(
        &self,
        first: &BlockRef,
        bytes: usize,
        policy: CachePolicy,
    ) -> Result<Vec<Arc<Block>>> {
        let cached = self.get_run(first, bytes).await;
        if !cached.is_empty() {
            return Ok(cached);
        }
        let loaded = first.file.load_range(policy.io_class(), first, bytes).await;
        if policy != CachePolicy::IndexesOnly {
            for loaded in loaded.iter().flatten().filter(|loaded| loaded.block.kind() == first.kind) {
                self.cache.offer(id_of(&first.file, loaded.block.offset()), &loaded.on_disk);
            }
        }
        blocks_of(loaded)
    }

    /// Caches a block that is expected to be read. Returns `false` if there is no room.
    pub(super) async fn prefetched(&self, file: &Reader, loaded: &LoadedBlock) -> bool {
        self.cache.prefetched(id_of(file, loaded.block.offset()), &loaded.on_disk).await
    }

    async fn get_run(&self, first: &BlockRef, bytes: usize) -> Vec<Arc<Block>> {
        let mut blocks = Vec::new();
        let (mut next, mut loaded_bytes) = (first.clone(), 0);
        while let Some(block) = self.get(&next).await {
            loaded_bytes += block.on_disk_len() as usize;
            next = BlockRef { offset: next.offset + u64::from(block.on_disk_len()), len: 0, ..next };
            blocks.push(block);
            if loaded_bytes >= bytes || !self.cache.contains(id_of(&next.file, next.offset)) {
                break;
            }
        }
        blocks
    }

    async fn get(&self, block: &BlockRef) -> Option<Arc<Block>> {
        let id = id_of(&block.file, block.offset);
        let found = self.cache.get(id).await?;
        let decoded = block.file.decode(block, found.bytes, found.unused_bytes);
        if decoded.is_none() {
            self.cache.reject(id);
        }
        decoded
    }
}

fn id_of(file: &Reader, offset: u64) -> BlockId {
    BlockId { file: file.identity(), offset }
}
