//! Blocks from files, through the cache, for scanners that miss them.

mod cached;
mod damaged;
mod drive;
mod file_ids;
mod near;
mod runs;

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use base::spent::{self, Use};
use cache::{BlockCache, BlockKey, KindStats, Stats};
use cell::query::CellSelection;
use fs::FilePath;
use hfile::{Block, BlockKind, BlockRef, BlockSource, Miss, Reader};

use crate::caching::Caching;
use crate::columns::{Kept, VectorNumbers};
use crate::error::{Error, Result};

use cached::Cached;
pub use damaged::DamagedFile;
use damaged::DamagedFiles;
pub use drive::drive;
use file_ids::FileIds;
pub(crate) use file_ids::next_file_id;
pub(crate) use runs::Runs;

/// Reads blocks of files, one load for all that wait for a block, and keeps them in the cache.
pub struct BlockLoader {
    cache: BlockCache<Cached>,
    file_ids: FileIds,
    vector_numbers: VectorNumbers,
    damaged: DamagedFiles,
}

/// What a load leaves in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    /// All blocks.
    All,
    /// Blocks with cells only where nothing else has to go for them; all others.
    Room,
    /// Blocks of indexes and filters only, as HBase does for scans that ask not to cache.
    Indexes,
}

impl Keep {
    /// What those who read cells leave.
    pub(crate) fn of_reads(selection: &CellSelection) -> Keep {
        if selection.cache_blocks { Keep::All } else { Keep::Indexes }
    }
}

/// Whether a block has cells, once or once more; all others lead to such.
fn has_cells(kind: BlockKind) -> bool {
    matches!(kind, BlockKind::Data | BlockKind::Meta)
}

impl BlockLoader {
    /// A loader with a cache of at most `cache_bytes`.
    pub fn new(cache_bytes: u64) -> BlockLoader {
        BlockLoader {
            cache: BlockCache::new(cache_bytes),
            file_ids: FileIds::default(),
            vector_numbers: VectorNumbers::default(),
            damaged: DamagedFiles::default(),
        }
    }

    /// The block, if it is in the cache.
    pub fn cached(&self, file_id: u64, offset: u64) -> Option<Arc<Block>> {
        self.cache.get(&BlockKey { file_id, offset }).and_then(Cached::found)
    }

    /// The same for those whose asking does not mean that it is wanted.
    pub(crate) fn peek(&self, file_id: u64, offset: u64) -> Option<Arc<Block>> {
        self.cache.peek(&BlockKey { file_id, offset }).and_then(Cached::block)
    }

    /// Bytes that the cache holds.
    pub fn cached_bytes(&self) -> u64 {
        self.cache.stats().weight_bytes
    }

    /// How often a block was damaged, when it was read and when it was read again: its checksum differs, or what it says is not so.
    pub fn damaged(&self) -> u64 {
        self.damaged.failures()
    }

    /// The files in which reads met damage, for as long as they are read.
    pub fn damaged_files(&self) -> Vec<DamagedFile> {
        self.damaged.list()
    }

    /// Whether reads met damage in the file.
    pub(crate) fn is_damaged(&self, file: &Reader) -> bool {
        self.damaged.contains(file.path())
    }

    /// Notes why a read failed, if a file is damaged.
    pub(crate) fn note_damage(&self, error: &hfile::Error) {
        self.damaged.note(error);
    }

    /// Figures of the cache.
    pub fn stats(&self) -> Stats {
        self.cache.stats()
    }

    /// Figures of the cached blocks of a kind.
    pub fn kind_stats(&self, kind: BlockKind) -> KindStats {
        self.cache.kind_stats(kind as usize)
    }

    /// The most that the cache may hold from now on.
    pub fn set_cache_bytes(&self, bytes: u64) {
        self.cache.set_capacity(bytes);
    }

    /// The number under which the blocks of the file at `path` are cached, as `caching` says from now on.
    pub(crate) fn file_id(&self, path: &FilePath, caching: Caching) -> u64 {
        self.file_ids.of(path, caching)
    }

    /// Puts a block into the cache that nobody asked for, if there is room; whether there is.
    pub(crate) fn keep(&self, block: &Arc<Block>) -> bool {
        let has_room = self.has_room(block.heap_len());
        if has_room {
            self.put(block.clone(), self.file_ids.caching(block.file_id()));
        }
        has_room
    }

    fn has_room(&self, bytes: usize) -> bool {
        let stats = self.cache.stats();
        // A little is left, lest one shard of the cache be full before the others.
        stats.weight_bytes + bytes as u64 <= stats.capacity_bytes / 16 * 15
    }

    fn keeps(&self, kind: BlockKind, bytes: usize, keep: Keep, caching: Caching) -> bool {
        let has_place = match keep {
            Keep::All => true,
            Keep::Room => self.has_room(bytes),
            Keep::Indexes => false,
        };
        !has_cells(kind) || (caching.data && has_place)
    }

    fn put(&self, block: Arc<Block>, caching: Caching) {
        let key = BlockKey { file_id: block.file_id(), offset: block.offset() };
        if !self.cache.contains(&key) {
            self.cache.insert(key, Cached::Block { block, in_memory: caching.in_memory });
        }
    }

    /// The vector that was kept under a number and a place, if it still is.
    pub(crate) fn vector(&self, number: u64, place: u64) -> Option<Arc<Kept>> {
        match self.cache.find(&BlockKey { file_id: number, offset: place })? {
            Cached::Vector(vector) => Some(vector),
            Cached::Block { .. } => None,
        }
    }

    /// Keeps a vector under a number that [`next_file_id`] gave, for as long as its memory is not wanted.
    pub(crate) fn keep_vector(&self, number: u64, place: u64, vector: Arc<Kept>) {
        self.cache.insert(BlockKey { file_id: number, offset: place }, Cached::Vector(vector));
    }

    /// The numbers under which vectors are kept.
    pub(crate) fn vector_numbers(&self) -> &VectorNumbers {
        &self.vector_numbers
    }

    /// Lets go of all blocks of a file that is not read any more.
    pub fn evict(&self, file: &Reader) {
        self.evict_file(file.path(), file.file_id());
    }

    /// The same for a file that was not opened yet.
    pub(crate) fn evict_file(&self, path: &FilePath, file_id: u64) {
        self.file_ids.forget(path, file_id);
        self.damaged.forget(path);
        self.cache.evict_file(file_id);
        // Its vectors go as all that nobody asks for: their numbers are not used again.
        self.vector_numbers.forget(file_id);
    }

    /// Blocks were missed by one who asked without being counted ([`BlockSource`]), and loads them.
    pub(crate) fn note_missed(&self, miss: &Miss) {
        self.cache.note_misses(miss.blocks.len() as u64);
    }

    /// A block was read for the call at work.
    pub(crate) fn note_read(block: &Block) {
        spent::used(Use::BlocksRead, 1);
        spent::used(Use::BlockBytes, block.payload_len() as u64);
    }

    /// Loads a block.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Fs`], [`Error::Unsupported`].
    pub async fn load(&self, block: &BlockRef) -> Result<Arc<Block>> {
        self.load_keeping(block, Keep::All).await
    }

    async fn load_keeping(&self, block: &BlockRef, keep: Keep) -> Result<Arc<Block>> {
        let caching = self.file_ids.caching(block.file.file_id());
        if !self.keeps(block.kind, block.len as usize, keep, caching) {
            return Ok(self.read(block).await?);
        }
        let key = BlockKey { file_id: block.file.file_id(), offset: block.offset };
        let load = async {
            let block = self.read(block).await?;
            Ok::<_, hfile::Error>(Cached::Block { block, in_memory: caching.in_memory })
        };
        let loaded = self.cache.load_with(key, load).await?;
        Ok(loaded.block().expect("vectors have numbers of their own"))
    }

    async fn read(&self, block: &BlockRef) -> std::result::Result<Arc<Block>, hfile::Error> {
        block.file.load(block).await.inspect_err(|error| self.note_damage(error))
    }

    /// Loads a run of data blocks that begins with `first`.
    async fn load_run(&self, first: &BlockRef, bytes: usize, keep: Keep) -> Result<Vec<Arc<Block>>> {
        let blocks = first.file.load_run(first, bytes).await;
        let blocks = blocks.inspect_err(|error| self.note_damage(error))?;
        let caching = self.file_ids.caching(first.file.file_id());
        for block in &blocks {
            if self.keeps(block.kind(), block.heap_len(), keep, caching) {
                self.put(block.clone(), caching);
            }
        }
        Ok(blocks)
    }

    /// Loads all blocks of a miss at the same time; `runs` tells of those that are worth reading ahead.
    ///
    /// A damaged block of a Bloom filter is left out: its file has switched the filter off, and is read without it.
    pub(crate) async fn load_missed(
        &self,
        miss: &Miss,
        runs: Option<&mut Runs>,
        keep: Keep,
    ) -> Result<Vec<Arc<Block>>> {
        let mut runs = runs;
        let wanted: Vec<(&BlockRef, Option<usize>)> = miss
            .blocks
            .iter()
            .map(|block| (block, runs.as_mut().and_then(|runs| runs.bytes_for(block))))
            .collect();
        let loads = wanted.iter().map(|(block, run_bytes)| {
            let load = async move {
                let loaded = match run_bytes {
                    Some(bytes) => self.load_run(block, *bytes, keep).await,
                    None => self.load_keeping(block, keep).await.map(|block| vec![block]),
                };
                match loaded {
                    Err(Error::Corrupt { .. }) if block.kind == BlockKind::BloomChunk => Ok(Vec::new()),
                    loaded => loaded,
                }
            };
            Box::pin(load) as Pin<Box<dyn Future<Output = Result<Vec<Arc<Block>>>> + Send + '_>>
        });
        let mut blocks = Vec::new();
        for loaded in all(loads.collect()).await {
            let loaded = loaded?;
            if let (Some(runs), Some(last)) = (&mut runs, loaded.last()) {
                runs.loaded(last);
            }
            blocks.extend(loaded);
        }
        Ok(blocks)
    }
}

/// What is in the cache. A miss does not count: whoever reads from here leaves it to a scanner, which asks again, or says so
/// ([`BlockLoader::note_missed`]).
impl BlockSource for BlockLoader {
    fn block(&self, file: &Arc<Reader>, offset: u64) -> Option<Arc<Block>> {
        let (key, turn) = (BlockKey { file_id: file.file_id(), offset }, self.cache.turn());
        if let Some(block) = near::find(key, turn) {
            self.cache.note_hit(block.kind() as usize);
            return Some(cached::found(block));
        }
        let block = self.cache.find(&key).and_then(Cached::found)?;
        near::note(key, turn, &block);
        Some(block)
    }

    fn prefetch(&self, file_id: u64, offset: u64) {
        near::prefetch(BlockKey { file_id, offset });
    }
}

/// Completes when all of `futures` have, with their outputs in the same order.
async fn all<T>(futures: Vec<Pin<Box<dyn Future<Output = T> + Send + '_>>>) -> Vec<T> {
    let mut pending: Vec<_> = futures.into_iter().map(|future| (future, None)).collect();
    poll_fn(|context| {
        let mut ready = true;
        for (future, output) in &mut pending {
            if output.is_none() {
                match future.as_mut().poll(context) {
                    Poll::Ready(done) => *output = Some(done),
                    Poll::Pending => ready = false,
                }
            }
        }
        if ready { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    pending.into_iter().map(|(_, output)| output.expect("polled until all were ready")).collect()
}
