//! Keeps the cache warm where files come and go: what is written is cached if its family says so, or if it takes the place
//! of what was cached; files are read ahead if their family says so.

use std::ops::ControlFlow;
use std::sync::Arc;

use base::env::TaskClass;
use hfile::{Block, BlockKind, BlockRef, Writer};
use tracing::debug;

use crate::caching::Caching;
use crate::region::Region;
use crate::scanner::BlockLoader;
use crate::store::StoreFile;

/// Bytes that are read ahead at a time.
const STRETCH_BYTES: usize = 1 << 20;

/// A block that should be in the cache and found no room there: what it takes the place of is still in.
pub(super) struct LeftOut {
    offset: u64,
    len: u32,
    kind: BlockKind,
}

impl LeftOut {
    fn of(block: &Block) -> LeftOut {
        LeftOut { offset: block.offset(), len: block.on_disk_len(), kind: block.kind() }
    }
}

/// Puts the blocks that a writer has set aside into the cache; those for which there is no room go to `left_out`.
pub(super) fn keep_written(
    loader: &BlockLoader,
    writer: &mut Writer,
    file_id: u64,
    left_out: &mut Vec<LeftOut>,
) {
    if writer.has_kept() {
        let kept = writer.take_kept(file_id);
        left_out.extend(kept.iter().filter(|block| !loader.keep(block)).map(|block| LeftOut::of(block)));
    }
}

impl Region {
    /// What of a family is cached.
    pub(super) fn caching(&self, at: usize) -> Caching {
        Caching::of(&self.families[at], &self.services.options.caching)
    }

    /// Loads, beside all else, what the files' family wants to be read ahead, or else what found no room when the files
    /// were written.
    pub(super) fn warm_up(&self, at: usize, files: Vec<(Arc<StoreFile>, Vec<LeftOut>)>) {
        let prefetches = self.caching(at).prefetch;
        let files: Vec<_> =
            files.into_iter().filter(|(_, left_out)| prefetches || !left_out.is_empty()).collect();
        if files.is_empty() {
            return;
        }
        let loader = self.services.loader.clone();
        self.services.env.spawn(TaskClass::Background, async move {
            for (file, left_out) in files {
                let filled = match prefetches {
                    true => prefetch(&loader, &file).await,
                    false => load_left_out(&loader, &file, &left_out).await,
                };
                if filled.is_break() {
                    debug!(file = %file.path(), "the cache has no more room to read ahead");
                    break;
                }
            }
        });
    }

    /// Lets go of the blocks of the region's files, where their family wants that when it is closed.
    pub(super) fn evict_at_close(&self) {
        let view = self.view.load();
        for (at, store) in view.stores.iter().enumerate().filter(|(at, _)| self.caching(*at).evict_on_close) {
            debug!(region = %self.name, family = at, files = store.files.len(), "evicted");
            store.files.iter().for_each(|file| self.services.loader.evict(file.reader()));
        }
    }
}

/// Loads all blocks of a file from front to back, as long as there is room. What cannot be read is left to who asks for it.
async fn prefetch(loader: &BlockLoader, file: &StoreFile) -> ControlFlow<()> {
    let mut offset = 0;
    while let Ok(blocks) = file.reader().load_from(offset, STRETCH_BYTES).await
        && let Some(last) = blocks.last()
    {
        offset = last.offset() + u64::from(last.on_disk_len());
        if !blocks.iter().all(|block| loader.keep(block)) {
            return ControlFlow::Break(());
        }
        tokio::task::yield_now().await;
    }
    ControlFlow::Continue(())
}

async fn load_left_out(loader: &BlockLoader, file: &StoreFile, left_out: &[LeftOut]) -> ControlFlow<()> {
    for LeftOut { offset, len, kind } in left_out {
        let block = BlockRef { file: file.reader().clone(), offset: *offset, len: *len, kind: *kind };
        let Ok(block) = file.reader().load(&block).await else { break };
        if !loader.keep(&block) {
            return ControlFlow::Break(());
        }
        tokio::task::yield_now().await;
    }
    ControlFlow::Continue(())
}
