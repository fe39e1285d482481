//! Keeps the cache warm when files are created and replaced. Written blocks are cached if their
//! family requires it or if they replace cached blocks. Files are prefetched if their family
//! requires it.

use std::ops::ControlFlow;
use std::sync::Arc;

use base::env::TaskClass;
use fs::IoClass;
use hfile::{Block, BlockKind, BlockRef, Writer};
use tracing::debug;

use crate::caching::Caching;
use crate::region::Region;
use crate::scanner::BlockLoader;
use crate::store::StoreFile;

/// Bytes prefetched per read.
const READ_BYTES: usize = 1 << 20;
/// The class of the reads. No call waits for them, so they yield to others as compactions do.
const READ_CLASS: IoClass = IoClass::Compaction;

/// A block that belongs in the cache but found no space, because the blocks it replaces are still
/// cached.
pub(super) struct UncachedBlock {
    offset: u64,
    len: u32,
    kind: BlockKind,
}

impl UncachedBlock {
    fn of(block: &Block) -> UncachedBlock {
        UncachedBlock { offset: block.offset(), len: block.on_disk_len(), kind: block.kind() }
    }
}

/// Puts the blocks that a writer retained into the cache. Blocks for which the cache has no space
/// are added to `uncached`.
pub(super) fn cache_written(
    loader: &BlockLoader,
    writer: &mut Writer,
    file_id: u64,
    uncached: &mut Vec<UncachedBlock>,
) {
    if writer.has_retained() {
        let kept = writer.take_retained(file_id);
        uncached.extend(
            kept.iter().filter(|block| !loader.cache_if_room(block)).map(|block| UncachedBlock::of(block)),
        );
    }
}

impl Region {
    /// Which blocks of a family are cached.
    pub(super) fn caching(&self, at: usize) -> Caching {
        Caching::of(&self.families[at], &self.services.options.caching)
    }

    /// Loads blocks of new files in the background: all blocks if the family requires prefetching,
    /// otherwise the blocks for which the cache had no space when the files were written.
    pub(super) fn warm_cache(&self, at: usize, files: Vec<(Arc<StoreFile>, Vec<UncachedBlock>)>) {
        let prefetches = self.caching(at).prefetch;
        let files: Vec<_> =
            files.into_iter().filter(|(_, uncached)| prefetches || !uncached.is_empty()).collect();
        if files.is_empty() {
            return;
        }
        let loader = self.services.loader.clone();
        self.services.env.spawn(TaskClass::Background, async move {
            for (file, uncached) in files {
                let filled = match prefetches {
                    true => prefetch(&loader, &file).await,
                    false => load_uncached(&loader, &file, &uncached).await,
                };
                if filled.is_break() {
                    debug!(file = %file.path(), "prefetch stopped: the cache is full");
                    break;
                }
            }
        });
    }

    /// Evicts the blocks of the region's files, if their family requires it at close.
    pub(super) fn evict_at_close(&self) {
        let view = self.view.load();
        for (at, store) in view.stores.iter().enumerate().filter(|(at, _)| self.caching(*at).evict_on_close) {
            debug!(region = %self.name, family = at, files = store.files.len(), "evicted");
            store.files.iter().for_each(|file| self.services.loader.evict(file.reader()));
        }
    }
}

/// Loads all blocks of a file in order, while the cache, or its second level, has space. Stops at a
/// block that cannot be read; a later read reports the error.
async fn prefetch(loader: &BlockLoader, file: &StoreFile) -> ControlFlow<()> {
    let mut offset = 0;
    while let Ok(blocks) = file.reader().load_from(READ_CLASS, offset, READ_BYTES).await
        && let Some(last) = blocks.last()
    {
        offset = last.block.offset() + u64::from(last.block.on_disk_len());
        for loaded in &blocks {
            if !loader.cache_prefetched(file.reader(), loaded).await {
                return ControlFlow::Break(());
            }
        }
        tokio::task::yield_now().await;
    }
    ControlFlow::Continue(())
}

async fn load_uncached(
    loader: &BlockLoader,
    file: &StoreFile,
    uncached: &[UncachedBlock],
) -> ControlFlow<()> {
    for UncachedBlock { offset, len, kind } in uncached {
        let block = BlockRef { file: file.reader().clone(), offset: *offset, len: *len, kind: *kind };
        let Ok(loaded) = file.reader().load_for(READ_CLASS, &block).await else { break };
        if !loader.cache_prefetched(file.reader(), &loaded).await {
            return ControlFlow::Break(());
        }
        tokio::task::yield_now().await;
    }
    ControlFlow::Continue(())
}
