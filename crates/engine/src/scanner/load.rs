//! Loads blocks from files, through the cache, for scanners that miss them.

mod cached;
mod damaged;
mod derived;
mod drive;
mod file_ids;
mod read_ahead;
mod recent_blocks;
mod second_level;

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use base::spent::{self, Use};
use cache::{BlockCache, BlockKey, KindStats, Stats};
use cell::query::CellSelection;
use fs::{FilePath, IoClass};
use hfile::{Block, BlockKind, BlockRef, BlockSource, LoadedBlock, Miss, Reader};
use ssdcache::SecondLevel;

use crate::caching::Caching;
use crate::error::{Error, Result};

use cached::CacheValue;
pub use damaged::DamagedFile;
use damaged::DamagedFiles;
use derived::DerivedNumbers;
pub use derived::{CachedValue, DerivedKey};
pub use drive::drive;
use file_ids::FileIds;
pub(crate) use file_ids::next_file_id;
pub(crate) use read_ahead::ReadAhead;
use second_level::BlocksOnSsd;

/// Reads blocks of files and caches them. Concurrent requests for a block share one load.
pub struct BlockLoader {
    cache: BlockCache<CacheValue>,
    file_ids: FileIds,
    derived_numbers: DerivedNumbers,
    damaged: DamagedFiles,
    second_level: Option<BlocksOnSsd>,
}

/// Which blocks of a load enter the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CachePolicy {
    /// All blocks.
    All,
    /// All blocks, but blocks with cells only if they evict nothing.
    IfRoom,
    /// Only blocks without cells (indexes and filters), as HBase does for scans that disable block
    /// caching.
    IndexesOnly,
    /// The same for compactions, which read whole files: the store files only, not the second level
    /// of the cache.
    Compaction,
}

impl CachePolicy {
    /// The policy for reads of cells.
    pub(crate) fn of_reads(selection: &CellSelection) -> CachePolicy {
        if selection.cache_blocks { CachePolicy::All } else { CachePolicy::IndexesOnly }
    }

    /// The purpose of the reads, by which a disk orders its requests.
    fn io_class(self) -> IoClass {
        match self {
            CachePolicy::All | CachePolicy::IfRoom | CachePolicy::IndexesOnly => IoClass::Read,
            CachePolicy::Compaction => IoClass::Compaction,
        }
    }
}

/// Whether a block holds cells, or copies of their values (sidecars). All other blocks only help to
/// find cells.
fn has_cells(kind: BlockKind) -> bool {
    matches!(kind, BlockKind::Data | BlockKind::Meta)
}

impl BlockLoader {
    /// A loader with a cache of at most `cache_bytes`.
    pub fn new(cache_bytes: u64) -> BlockLoader {
        BlockLoader {
            cache: BlockCache::new(cache_bytes),
            file_ids: FileIds::default(),
            derived_numbers: DerivedNumbers::default(),
            damaged: DamagedFiles::default(),
            second_level: None,
        }
    }

    /// The loader with a second level of the cache: blocks with cells that are not in memory are
    /// looked up there before they are read from their file.
    #[must_use]
    pub fn with_second_level(self, second_level: Arc<dyn SecondLevel>) -> BlockLoader {
        BlockLoader { second_level: Some(BlocksOnSsd::new(second_level)), ..self }
    }

    /// The block, if cached. Counts as a hit or a miss.
    pub fn cached(&self, file_id: u64, offset: u64) -> Option<Arc<Block>> {
        self.cache.get(&BlockKey { file_id, offset }).and_then(CacheValue::hit)
    }

    /// The block, if cached. Does not count, for callers whose look-ups do not show that the block
    /// is popular.
    pub(crate) fn peek(&self, file_id: u64, offset: u64) -> Option<Arc<Block>> {
        self.cache.peek(&BlockKey { file_id, offset }).and_then(CacheValue::block)
    }

    /// Bytes in the cache.
    pub fn cached_bytes(&self) -> u64 {
        self.cache.stats().weight_bytes
    }

    /// Number of reads that found a damaged block, repeated reads of one block included. Damage is
    /// a wrong checksum or invalid contents.
    pub fn damaged_reads(&self) -> u64 {
        self.damaged.failures()
    }

    /// The files in which reads found damage, until they are no longer in use.
    pub fn damaged_files(&self) -> Vec<DamagedFile> {
        self.damaged.list()
    }

    /// Whether reads found damage in the file.
    pub(crate) fn is_damaged(&self, file: &Reader) -> bool {
        self.damaged.contains(file.path())
    }

    /// Records a failed read, if a file is damaged.
    pub(crate) fn record_damage(&self, error: &hfile::Error) {
        self.damaged.record(error);
    }

    /// Statistics of the cache.
    pub fn stats(&self) -> Stats {
        self.cache.stats()
    }

    /// Statistics of the cached blocks of a kind.
    pub fn kind_stats(&self, kind: BlockKind) -> KindStats {
        self.cache.kind_stats(kind as usize)
    }

    /// Changes the capacity of the cache.
    pub fn set_cache_bytes(&self, bytes: u64) {
        self.cache.set_capacity(bytes);
    }

    /// The number under which the blocks of the file at `path` are cached. From now on they are
    /// cached according to `caching`.
    pub(crate) fn file_id(&self, path: &FilePath, caching: Caching) -> u64 {
        self.file_ids.of(path, caching)
    }

    /// Caches a block that no caller requested, if there is room. Returns whether there was.
    pub(crate) fn cache_if_room(&self, block: &Arc<Block>) -> bool {
        let has_room = self.has_room(block.heap_len());
        if has_room {
            self.insert(block.clone(), self.file_ids.caching(block.file_id()));
        }
        has_room
    }

    fn has_room(&self, bytes: usize) -> bool {
        let stats = self.cache.stats();
        // A margin, because some shards of the cache fill up before others.
        stats.weight_bytes + bytes as u64 <= stats.capacity_bytes / 16 * 15
    }

    fn should_cache(&self, kind: BlockKind, bytes: usize, policy: CachePolicy, caching: Caching) -> bool {
        let has_room = match policy {
            CachePolicy::All => true,
            CachePolicy::IfRoom => self.has_room(bytes),
            CachePolicy::IndexesOnly | CachePolicy::Compaction => false,
        };
        !has_cells(kind) || (caching.data && has_room)
    }

    fn insert(&self, block: Arc<Block>, caching: Caching) {
        let key = BlockKey { file_id: block.file_id(), offset: block.offset() };
        if !self.cache.contains(&key) {
            self.cache.insert(key, CacheValue::Block { block, in_memory: caching.in_memory });
        }
    }

    /// The value that another crate derived from blocks and cached under `key`, if it is still
    /// cached.
    pub fn derived_value(&self, key: &DerivedKey<'_>) -> Option<Arc<dyn CachedValue>> {
        let number = self.derived_numbers.get(key.file_id, key.name)?;
        match self.cache.get_counting_hits(&BlockKey { file_id: number, offset: key.offset })? {
            CacheValue::Derived(value) => Some(Arc::clone(&value)),
            CacheValue::Block { .. } => None,
        }
    }

    /// Caches a value that another crate derived from blocks. It shares the memory of the cache
    /// with blocks, but is protected from eviction like blocks of `IN_MEMORY` families.
    pub fn cache_derived_value(&self, key: &DerivedKey<'_>, value: Arc<dyn CachedValue>) {
        let number = self.derived_numbers.get_or_assign(key.file_id, key.name);
        let key = BlockKey { file_id: number, offset: key.offset };
        self.cache.insert(key, CacheValue::Derived(Arc::new(value)));
    }

    /// Evicts all blocks of a file that is no longer read.
    pub fn evict(&self, file: &Reader) {
        self.evict_file(file.path(), file.file_id());
    }

    /// Evicts all blocks of a file that is not open.
    pub(crate) fn evict_file(&self, path: &FilePath, file_id: u64) {
        self.file_ids.forget(path, file_id);
        self.damaged.forget(path);
        self.cache.evict_file(file_id);
        // Its derived values are evicted like other unused values: their numbers are never used
        // again.
        self.derived_numbers.forget(file_id);
    }

    /// Counts a block that was read from disk for the current call.
    pub(crate) fn count_read(block: &Block) {
        spent::used(Use::BlocksRead, 1);
        spent::used(Use::BlockBytes, block.payload_len() as u64);
    }

    /// Loads a block.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Fs`], [`Error::Unsupported`].
    pub async fn load(&self, block: &BlockRef) -> Result<Arc<Block>> {
        self.load_with_policy(block, CachePolicy::All).await
    }

    async fn load_with_policy(&self, block: &BlockRef, policy: CachePolicy) -> Result<Arc<Block>> {
        let caching = self.file_ids.caching(block.file.file_id());
        if !self.should_cache(block.kind, block.len as usize, policy, caching) {
            return Ok(self.read(block, policy, caching).await?);
        }
        let key = BlockKey { file_id: block.file.file_id(), offset: block.offset };
        let load = async {
            let block = self.read(block, policy, caching).await?;
            Ok::<_, hfile::Error>(CacheValue::Block { block, in_memory: caching.in_memory })
        };
        let loaded = self.cache.load_with(key, load).await?;
        Ok(loaded.block().expect("no derived value has the number of a file"))
    }

    /// Reads a block from the second level of the cache, or else from its file.
    async fn read(
        &self,
        block: &BlockRef,
        policy: CachePolicy,
        caching: Caching,
    ) -> std::result::Result<Arc<Block>, hfile::Error> {
        let read = match self.second_level_of(block.kind, policy, caching) {
            Some(second_level) => second_level.load(block, policy).await,
            None => block.file.load_for(policy.io_class(), block).await.map(|loaded| loaded.block),
        };
        read.inspect_err(|error| self.record_damage(error))
    }

    /// The second level of the cache, if reads of such blocks use it.
    fn second_level_of(
        &self,
        kind: BlockKind,
        policy: CachePolicy,
        caching: Caching,
    ) -> Option<&BlocksOnSsd> {
        let may_use = has_cells(kind) && caching.data && policy != CachePolicy::Compaction;
        self.second_level.as_ref().filter(|_| may_use)
    }

    /// Loads a run of consecutive data blocks that begins with `first`.
    async fn load_run(&self, first: &BlockRef, bytes: usize, policy: CachePolicy) -> Result<Vec<Arc<Block>>> {
        let caching = self.file_ids.caching(first.file.file_id());
        let blocks = match self.second_level_of(first.kind, policy, caching) {
            Some(second_level) => second_level.load_run(first, bytes, policy).await,
            None => blocks_of(first.file.load_range(policy.io_class(), first, bytes).await),
        };
        let blocks = blocks.inspect_err(|error| self.record_damage(error))?;
        for block in &blocks {
            if self.should_cache(block.kind(), block.heap_len(), policy, caching) {
                self.insert(block.clone(), caching);
            }
        }
        Ok(blocks)
    }

    /// Caches a block that its file's family wants to be cached before it is read: in the second
    /// level, if there is one, and in memory, if there is room. Returns whether the caches have
    /// room for more.
    pub(crate) async fn cache_prefetched(&self, file: &Reader, loaded: &LoadedBlock) -> bool {
        let caching = self.file_ids.caching(loaded.block.file_id());
        let in_memory = self.cache_if_room(&loaded.block);
        match self.second_level_of(loaded.block.kind(), CachePolicy::All, caching) {
            Some(second_level) => second_level.prefetched(file, loaded).await || in_memory,
            // Blocks without cells are read again when they are needed.
            None => in_memory || self.second_level.is_some() && !has_cells(loaded.block.kind()),
        }
    }

    /// Loads all blocks of a miss concurrently. `read_ahead` selects the blocks at which reading
    /// ahead pays.
    ///
    /// A damaged block of a Bloom filter is skipped: the reader has disabled the filter, and the
    /// file is read without it.
    pub(crate) async fn load_missed(
        &self,
        miss: &Miss,
        read_ahead: Option<&mut ReadAhead>,
        policy: CachePolicy,
    ) -> Result<Vec<Arc<Block>>> {
        debug_assert!(!miss.blocks.is_empty(), "a miss names blocks, so that the repeated step advances");
        let mut read_ahead = read_ahead;
        let wanted: Vec<(&BlockRef, Option<usize>)> = miss
            .blocks
            .iter()
            .map(|block| (block, read_ahead.as_mut().and_then(|read_ahead| read_ahead.bytes_for(block))))
            .collect();
        let loads = wanted.iter().map(|(block, run_bytes)| {
            let load = async move {
                let loaded = match run_bytes {
                    Some(bytes) => self.load_run(block, *bytes, policy).await,
                    None => self.load_with_policy(block, policy).await.map(|block| vec![block]),
                };
                match loaded {
                    Err(Error::Corrupt { .. }) if block.kind == BlockKind::BloomChunk => Ok(Vec::new()),
                    loaded => loaded,
                }
            };
            Box::pin(load) as Pin<Box<dyn Future<Output = Result<Vec<Arc<Block>>>> + Send + '_>>
        });
        let mut blocks = Vec::new();
        for loaded in join_all(loads.collect()).await {
            let loaded = loaded?;
            if let (Some(read_ahead), Some(last)) = (&mut read_ahead, loaded.last()) {
                read_ahead.record_loaded(last);
            }
            blocks.extend(loaded);
        }
        Ok(blocks)
    }
}

/// Blocks in the cache. A miss is not counted here: the caller leaves the read to a scanner, which
/// requests the block again and counts the miss.
impl BlockSource for BlockLoader {
    fn block(&self, file: &Arc<Reader>, offset: u64) -> Option<Arc<Block>> {
        let (key, epoch) = (BlockKey { file_id: file.file_id(), offset }, self.cache.epoch());
        if let Some(block) = recent_blocks::get(key, epoch) {
            self.cache.count_hit(block.kind() as usize);
            return Some(cached::count_hit(block));
        }
        let block = self.cache.get_counting_hits(&key).and_then(CacheValue::hit)?;
        recent_blocks::record(key, epoch, &block);
        Some(block)
    }

    fn prefetch(&self, file_id: u64, offset: u64) {
        recent_blocks::prefetch(BlockKey { file_id, offset });
    }
}

/// The blocks without their bytes.
fn blocks_of<E>(loaded: std::result::Result<Vec<LoadedBlock>, E>) -> std::result::Result<Vec<Arc<Block>>, E> {
    loaded.map(|blocks| blocks.into_iter().map(|loaded| loaded.block).collect())
}

/// Completes when all of `futures` have completed. The outputs are in the order of the futures.
async fn join_all<T>(futures: Vec<Pin<Box<dyn Future<Output = T> + Send + '_>>>) -> Vec<T> {
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
