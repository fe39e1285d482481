//! Blocks from files, through the cache, for scanners that miss them.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use base::spent::{self, Use};
use cache::{BlockCache, BlockKey, Class, KindStats, Stats, Weighted};
use fs::FilePath;
use hfile::{Block, BlockKind, BlockRef, BlockSource, Miss, Reader, Stop};

use crate::caching::Caching;
use crate::columns::{KeptVector, VectorNumbers};
use crate::error::{Error, Result};
use crate::scanner::region::RegionScanner;
use crate::scanner::sink::{Limits, Progress, ResultSink, Room, Stopped};

/// Bytes of the first run that is read ahead, doubled by each run that follows it.
const RUN_BYTES_MIN: usize = 128 << 10;
/// Bytes of a run at most: on a disk the seek is paid for, and ten scanners at once take little memory.
const RUN_BYTES_MAX: usize = 1 << 20;
/// Files whose runs a scanner follows.
const RUNS_MAX: usize = 16;

/// Reads blocks of files, one load for all that wait for a block, and keeps them in the cache.
pub struct BlockLoader {
    cache: BlockCache<Cached>,
    file_ids: FileIds,
    vector_numbers: VectorNumbers,
    // Blocks that were read and are damaged.
    damaged: AtomicU64,
}

/// Under which number the blocks of a file are cached.
///
/// One file is opened by several regions when a region is split: its halves have the same blocks, and those that the parent
/// had read are of use to its daughters. So a file keeps its number for as long as its blocks may be cached. It is known by
/// region, family and name, which is also where it is when it has moved to the archive; no name is used twice.
#[derive(Default)]
struct FileIds {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    ids: HashMap<String, u64>,
    /// What is cached of a file; of one that is not here, what is by default.
    caching: HashMap<u64, Caching>,
}

/// Files whose numbers are kept. Beyond, all are forgotten: what is opened then finds nothing in the cache, and no more.
const FILES_KNOWN_MAX: usize = 100_000;

impl FileIds {
    fn of(&self, path: &FilePath, caching: Caching) -> u64 {
        let mut known = self.known();
        if known.ids.len() >= FILES_KNOWN_MAX {
            *known = Known::default();
        }
        let file_id = *known.ids.entry(identity(path)).or_insert_with(next_file_id);
        known.caching.insert(file_id, caching);
        file_id
    }

    fn caching(&self, file_id: u64) -> Caching {
        self.known().caching.get(&file_id).copied().unwrap_or_default()
    }

    fn forget(&self, path: &FilePath, file_id: u64) {
        let mut known = self.known();
        let key = identity(path);
        if known.ids.get(&key) == Some(&file_id) {
            known.ids.remove(&key);
            known.caching.remove(&file_id);
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // Numbers by names: whole after any panic.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A number that no other file of the process has.
pub(crate) fn next_file_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Region, family and name of a file.
fn identity(path: &FilePath) -> String {
    let text = path.as_str();
    let start = text.rmatch_indices('/').nth(2).map_or(0, |(at, _)| at + 1);
    text[start..].to_owned()
}

/// What is in the cache.
#[derive(Clone)]
enum Cached {
    Block {
        block: Arc<Block>,
        in_memory: bool,
    },
    /// Made of blocks, under a number that no file has.
    Vector(Arc<KeptVector>),
}

/// As what vectors are counted: no block is of this kind.
const VECTOR_KIND: usize = cache::KINDS - 1;

impl Cached {
    fn block(self) -> Option<Arc<Block>> {
        match self {
            Cached::Block { block, .. } => Some(block),
            Cached::Vector(_) => None,
        }
    }

    /// The block, which a call asked for.
    #[inline]
    fn found(self) -> Option<Arc<Block>> {
        let block = self.block()?;
        spent::used(Use::BlocksFound, 1);
        spent::used(Use::BlockBytes, block.payload_len() as u64);
        Some(block)
    }
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
                BlockKind::Data => Class::Usual,
                _ => Class::Guide,
            },
            Cached::Vector(_) => Class::Usual,
        }
    }

    fn kind(&self) -> usize {
        match self {
            Cached::Block { block, .. } => block.kind() as usize,
            Cached::Vector(_) => VECTOR_KIND,
        }
    }
}

/// What a load leaves in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    /// All blocks.
    All,
    /// Blocks of indexes and filters only, as HBase does for scans that ask not to cache.
    Indexes,
}

impl Keep {
    fn keeps_data(self, caching: Caching) -> bool {
        self == Keep::All && caching.data
    }
}

impl BlockLoader {
    /// A loader with a cache of at most `cache_bytes`.
    pub fn new(cache_bytes: u64) -> BlockLoader {
        BlockLoader {
            cache: BlockCache::new(cache_bytes),
            file_ids: FileIds::default(),
            vector_numbers: VectorNumbers::default(),
            damaged: AtomicU64::new(0),
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
        self.damaged.load(Ordering::Relaxed)
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
        let stats = self.cache.stats();
        // A little is left, lest one shard of the cache be full before the others.
        let has_room = stats.weight_bytes + block.heap_len() as u64 <= stats.capacity_bytes / 16 * 15;
        if has_room {
            self.put(block.clone(), self.file_ids.caching(block.file_id()));
        }
        has_room
    }

    fn put(&self, block: Arc<Block>, caching: Caching) {
        let key = BlockKey { file_id: block.file_id(), offset: block.offset() };
        if !self.cache.contains(&key) {
            self.cache.insert(key, Cached::Block { block, in_memory: caching.in_memory });
        }
    }

    /// The vector that was kept under a number and a place, if it still is.
    pub(crate) fn vector(&self, number: u64, place: u64) -> Option<Arc<KeptVector>> {
        match self.cache.find(&BlockKey { file_id: number, offset: place })? {
            Cached::Vector(vector) => Some(vector),
            Cached::Block { .. } => None,
        }
    }

    /// Keeps a vector under a number that [`next_file_id`] gave, for as long as its memory is not wanted.
    pub(crate) fn keep_vector(&self, number: u64, place: u64, vector: Arc<KeptVector>) {
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
        self.cache.evict_file(file_id);
        // Its vectors go as all that nobody asks for: their numbers are not used again.
        self.vector_numbers.forget(file_id);
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
        if block.kind == BlockKind::Data && !keep.keeps_data(caching) {
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

    fn note_damage(&self, error: &hfile::Error) {
        if matches!(error, hfile::Error::Corrupt { .. }) {
            self.damaged.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Loads a run of data blocks that begins with `first`.
    async fn load_run(&self, first: &BlockRef, bytes: usize, keep: Keep) -> Result<Vec<Arc<Block>>> {
        let blocks = first.file.load_run(first, bytes).await;
        let blocks = blocks.inspect_err(|error| self.note_damage(error))?;
        let caching = self.file_ids.caching(first.file.file_id());
        for block in &blocks {
            if block.kind() != BlockKind::Data || keep.keeps_data(caching) {
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

/// What is in the cache. A miss does not count: whoever reads from here leaves it to a scanner, which asks again.
impl BlockSource for BlockLoader {
    fn block(&self, file: &Arc<Reader>, offset: u64) -> Option<Arc<Block>> {
        self.cache.find(&BlockKey { file_id: file.file_id(), offset }).and_then(Cached::found)
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

/// Which files a scanner reads front to back, and how far ahead pays there.
#[derive(Default)]
pub(crate) struct Runs {
    files: Vec<Run>,
}

struct Run {
    file_id: u64,
    // Where the last data block that was loaded ends.
    end: u64,
    // Bytes of the last run, 0 before the first.
    bytes: usize,
}

/// Blocks between the end of a run and the next data block that do not break the run: index and filter blocks lie among
/// the data.
const GAP_BYTES_MAX: u64 = 256 << 10;

impl Runs {
    /// How many bytes to read at once for a missed block: `None` if not more than the block.
    fn bytes_for(&mut self, block: &BlockRef) -> Option<usize> {
        if block.kind != BlockKind::Data {
            return None;
        }
        let run = self.files.iter_mut().find(|run| run.file_id == block.file.file_id())?;
        let goes_on = (run.end..run.end + GAP_BYTES_MAX).contains(&block.offset);
        run.bytes = if goes_on { (run.bytes * 2).clamp(RUN_BYTES_MIN, RUN_BYTES_MAX) } else { 0 };
        (run.bytes > 0).then_some(run.bytes)
    }

    fn loaded(&mut self, last: &Block) {
        if last.kind() != BlockKind::Data {
            return;
        }
        let end = last.offset() + u64::from(last.on_disk_len());
        match self.files.iter_mut().find(|run| run.file_id == last.file_id()) {
            Some(run) => run.end = end,
            None => {
                if self.files.len() >= RUNS_MAX {
                    self.files.remove(0);
                }
                self.files.push(Run { file_id: last.file_id(), end, bytes: 0 });
            }
        }
    }
}

/// Calls `scanner` until a limit is reached: loads what it misses, and lets others run now and then.
///
/// A scanner that is driven again goes on where it stopped. Where the sink has no more room, it stops as if the limit of
/// bytes were reached.
///
/// # Errors
/// [`Error::NoRoom`] if the sink has no more room and what it has cannot be cut; [`Error::RowTooBig`].
/// [`Error::Corrupt`], [`Error::Fs`], [`Error::Unsupported`]: the scanner cannot go on. A result may be half written. The
/// same for [`Error::BadRequest`]: the filter met what it cannot judge.
pub async fn drive(
    scanner: &mut RegionScanner,
    limits: &mut Limits,
    sink: &mut dyn ResultSink,
) -> Result<Progress> {
    let (seen_before, _) = scanner.rows_seen_and_returned();
    let driven = drive_on(scanner, limits, sink).await;
    spent::used(Use::Rows, scanner.rows_seen_and_returned().0 - seen_before);
    driven
}

async fn drive_on(
    scanner: &mut RegionScanner,
    limits: &mut Limits,
    sink: &mut dyn ResultSink,
) -> Result<Progress> {
    loop {
        match scanner.next(limits, sink) {
            Ok(Progress { stopped: Stopped::Slice, .. }) => {
                scanner.note_slice();
                let goes_on = match sink.room() {
                    Room::Enough => true,
                    Room::Full => scanner.stop_early(limits),
                    Room::Over => false,
                };
                if !goes_on {
                    return Err(Error::NoRoom { bytes: sink.bytes() });
                }
                tokio::task::yield_now().await;
            }
            Ok(progress) => return scanner.refused().map_or(Ok(progress), Err),
            Err(Stop::Failed(error)) => return Err(error.into()),
            Err(Stop::Miss(miss)) => scanner.load(&miss).await?,
        }
    }
}
