//! The block cache: values by (file, offset), cached until their memory is needed.
//!
//! One cache serves all regions of a server. A reader calls [`BlockCache::get`]. On a miss its
//! driver calls [`BlockCache::load_with`]; if several readers miss the same block, one loads it and
//! the others wait for it. Invariants:
//!
//! * HFiles never change and file numbers are never reused, so a value is never stale, only unused;
//! * a weight is the memory that an entry takes; the sum of weights never exceeds the capacity;
//! * values of a class with a reserved share are not evicted while the class holds at most its
//!   share;
//! * an evicted value lives as long as a caller holds it;
//! * a load that fails, or whose future is dropped, leaves no trace: the next waiter runs its own
//!   load.
//!
//! Admission and eviction are implemented by `quick_cache` (a scan-resistant Clock-PRO).
//!
//! Knows nothing about: the contents of blocks, how they are read, which blocks are worth caching.

mod class_shares;
mod eviction;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::sync::Arc;

use base::metrics::{Count, Counter, Counts};
use bytes::Bytes;
use quick_cache::sync::Cache;
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};

use class_shares::ClassShares;
use eviction::Evictions;

/// Position of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockKey {
    /// Number of the file, unique in the process.
    pub file_id: u64,
    /// Offset of the block in the file.
    pub offset: u64,
}

/// Eviction class of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Evicted by usage only.
    Normal,
    /// Preferred by its owner. Evicted only while this class holds more than a quarter of the
    /// capacity.
    Favoured,
    /// Leads to other values or saves look-ups of them. Protected like
    /// [`Favoured`](Class::Favoured), with a separate quarter.
    Index,
}

/// Maximum number of hits of an entry that influence its eviction, until the next eviction
/// (quick_cache's `MAX_F`).
pub const HITS_COUNTED_MAX: u64 = 2;

/// Number of kinds of values that the statistics distinguish.
pub const KINDS: usize = 16;

/// A value with a known memory size.
pub trait Weighted {
    /// Bytes of memory that are freed with the last handle of this value; never changes.
    fn weight(&self) -> usize;

    /// Eviction class; never changes.
    fn class(&self) -> Class {
        Class::Normal
    }

    /// Kind in the statistics, below [`KINDS`]; never changes.
    fn kind(&self) -> usize {
        0
    }
}

impl Weighted for Bytes {
    fn weight(&self) -> usize {
        self.len()
    }
}

impl<T: Weighted + ?Sized> Weighted for std::sync::Arc<T> {
    fn weight(&self) -> usize {
        (**self).weight()
    }

    fn class(&self) -> Class {
        (**self).class()
    }

    fn kind(&self) -> usize {
        (**self).kind()
    }
}

// Memory of an entry in addition to its value: key, handle, links and its share of the hash table,
// which also remembers evicted keys. quick_cache documents (16 + 8 + 21) * 1.5, rounded up to a
// power of two of entries.
const ENTRY_BYTES: u64 = 128;
// A shard must hold several of the largest blocks; smaller caches have fewer shards.
const SHARD_BYTES_MIN: u64 = 16 << 20;
// Four per core: a get holds a shard's lock for tens of nanoseconds.
const SHARDS_PER_CORE: usize = 4;
// HBase's default block is 64 KiB; index blocks and small blocks reduce the average.
const TYPICAL_BLOCK_BYTES: u64 = 32 << 10;
// Fraction of the values, as 1/n, that is evicted in an epoch.
const EPOCHS_PER_ROUND: usize = 16;

#[derive(Clone)]
struct ByWeight;

impl<V: Weighted> Weighter<BlockKey, V> for ByWeight {
    fn weight(&self, _key: &BlockKey, value: &V) -> u64 {
        value.weight() as u64 + ENTRY_BYTES
    }
}

/// Statistics of one kind of values; counts are since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindStats {
    /// Cache hits.
    pub hits: u64,
    /// Values inserted after a cache miss.
    pub loads: u64,
    /// Values cached now.
    pub entries: u64,
}

/// Statistics of a cache; counts are since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Cache hits.
    pub hits: u64,
    /// Cache misses.
    pub misses: u64,
    /// Loads that inserted a value.
    pub loads: u64,
    /// Loads that failed.
    pub failed_loads: u64,
    /// Values evicted, or too large to be inserted.
    pub evictions: u64,
    /// Values cached now.
    pub entries: u64,
    /// Memory of all entries in bytes, including the cache's own overhead.
    pub weight_bytes: u64,
    /// Capacity in bytes.
    pub capacity_bytes: u64,
}

/// A cache of values by (file, offset); see the crate's documentation.
pub struct BlockCache<V> {
    cache: Cache<BlockKey, V, ByWeight, DefaultHashBuilder, Evictions>,
    evictions: Evictions,
    shares: Arc<ClassShares>,
    hits: Counts<ByKind>,
    misses: Counter,
    loads: Counts<ByKind>,
    failed_loads: Counter,
}

/// A count per kind.
type ByKind = [Count; KINDS];

impl<V: Weighted + Clone> BlockCache<V> {
    /// A cache of at most `capacity_bytes`. A capacity of 0 caches nothing, but waiters still share
    /// a load.
    pub fn new(capacity_bytes: u64) -> BlockCache<V> {
        let shards = shard_count(capacity_bytes);
        let items =
            usize::try_from(capacity_bytes / TYPICAL_BLOCK_BYTES).unwrap_or(usize::MAX).max(32 * shards);
        let options = OptionsBuilder::new()
            .shards(shards)
            .estimated_items_capacity(items)
            .weight_capacity(whole_shards(capacity_bytes, shards))
            .build()
            .expect("capacity and number of items are set");
        let shares = Arc::new(ClassShares::new(capacity_bytes, shards));
        let evictions = Evictions::new(shares.clone(), (items / EPOCHS_PER_ROUND).max(1) as u64);
        let cache = Cache::with_options(options, ByWeight, DefaultHashBuilder::default(), evictions.clone());
        assert!(cache.num_shards() == shards, "the shares of classes are computed for the cache's shards");
        BlockCache {
            cache,
            evictions,
            shares,
            hits: Counts::default(),
            misses: Counter::new(),
            loads: Counts::default(),
            failed_loads: Counter::new(),
        }
    }

    /// The value of `key`, if cached. Counts as a hit or a miss.
    pub fn get(&self, key: &BlockKey) -> Option<V> {
        let found = self.find(key);
        if found.is_none() {
            self.misses.increment()
        }
        found
    }

    /// The value of `key`, if cached. Counts as a hit, but never as a miss: for callers that on a
    /// miss leave the block to another look-up, which counts it.
    #[inline]
    pub fn find(&self, key: &BlockKey) -> Option<V> {
        let found = self.cache.get(key);
        if let Some(value) = &found {
            self.hits.increment(|of| &of[value.kind()]);
        }
        found
    }

    /// The current epoch: a number of evictions that is small compared with the cache. Epoch
    /// numbers of different caches differ.
    ///
    /// Eviction only needs to see an entry [hit](Self::find) [`HITS_COUNTED_MAX`] times per epoch.
    /// A caller that remembers the epoch of its last hit may use its own weak reference for the
    /// rest of the epoch. It then reports the hit with [`count_hit`](Self::count_hit).
    #[inline]
    pub fn epoch(&self) -> u64 {
        self.evictions.epoch()
    }

    /// Counts a hit on a value of this kind that the caller remembered from this
    /// [epoch](Self::epoch).
    #[inline]
    pub fn count_hit(&self, kind: usize) {
        self.hits.increment(|of| &of[kind]);
    }

    /// The value of `key`, if cached. Neither counts nor affects eviction.
    pub fn peek(&self, key: &BlockKey) -> Option<V> {
        self.cache.peek(key)
    }

    /// Whether `key` is cached. Neither counts nor affects eviction.
    pub fn contains(&self, key: &BlockKey) -> bool {
        self.cache.contains_key(key)
    }

    /// Inserts a value that no caller looked up (a block just written, or prefetched).
    pub fn insert(&self, key: BlockKey, value: V) {
        self.shares.count_insert(&value);
        self.cache.insert(key, value);
    }

    /// The value of `key`, loaded with `load` if it is not cached. Of several concurrent callers,
    /// one loads and the others wait for its value. If the load fails or is dropped, the next
    /// waiter runs its own `load`. Counts as a load, not as a hit or miss.
    ///
    /// A value that is too large for the cache is returned (to all waiters) but not cached.
    ///
    /// # Errors
    /// Those of this caller's own `load`.
    pub async fn load_with<E>(
        &self,
        key: BlockKey,
        load: impl Future<Output = Result<V, E>>,
    ) -> Result<V, E> {
        let guard = match self.cache.get_value_or_guard_async(&key).await {
            Ok(value) => return Ok(value),
            Err(guard) => guard,
        };
        match load.await {
            Ok(value) => {
                self.loads.increment(|of| &of[value.kind()]);
                self.shares.count_insert(&value);
                // Rejected if the key was inserted concurrently; the caller still gets its value.
                if let Err(refused) = guard.insert(value.clone()) {
                    self.shares.count_removal(&refused);
                }
                Ok(value)
            }
            Err(error) => {
                self.failed_loads.increment();
                Err(error)
            }
        }
    }

    /// Drops the values of a deleted file. Walks the whole cache, shard by shard; meant for the end
    /// of a compaction.
    ///
    /// A concurrent load of that file may insert its value later; it is then evicted as unused.
    pub fn evict_file(&self, file_id: u64) {
        self.cache.retain(|key, value| {
            let stays = key.file_id != file_id;
            if !stays {
                self.shares.count_removal(value);
            }
            stays
        });
        self.evictions.end_epoch();
    }

    /// Drops all values.
    pub fn clear(&self) {
        self.cache.retain(|_, value| {
            self.shares.count_removal(value);
            false
        });
        self.evictions.end_epoch();
    }

    /// Changes the capacity; a smaller one evicts immediately. The number of shards does not
    /// change, so the size of the largest cacheable value changes in proportion.
    pub fn set_capacity(&self, capacity_bytes: u64) {
        self.shares.set_capacity(capacity_bytes);
        self.cache.set_capacity(whole_shards(capacity_bytes, self.cache.num_shards()));
    }

    /// Current statistics of one kind.
    pub fn kind_stats(&self, kind: usize) -> KindStats {
        KindStats {
            hits: self.hits.get(|of| &of[kind]),
            loads: self.loads.get(|of| &of[kind]),
            entries: self.shares.entries(kind),
        }
    }

    /// Current statistics.
    pub fn stats(&self) -> Stats {
        Stats {
            hits: sum(&self.hits),
            misses: self.misses.get(),
            loads: sum(&self.loads),
            failed_loads: self.failed_loads.get(),
            evictions: self.evictions.count(),
            entries: self.cache.len() as u64,
            weight_bytes: self.cache.weight(),
            capacity_bytes: self.cache.capacity(),
        }
    }
}

/// Sum over all kinds.
fn sum(counts: &Counts<ByKind>) -> u64 {
    (0..KINDS).map(|kind| counts.get(|of| &of[kind])).sum()
}

fn shard_count(capacity_bytes: u64) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let most = (cores * SHARDS_PER_CORE).next_power_of_two() as u64;
    let roomy = (capacity_bytes / SHARD_BYTES_MIN).max(1);
    // Round down to a power of two.
    let roomy = 1 << roomy.ilog2();
    most.min(roomy) as usize
}

// quick_cache rounds each shard's part up. Rounding the total down first ensures that the parts do
// not exceed it.
fn whole_shards(capacity_bytes: u64, shards: usize) -> u64 {
    capacity_bytes - capacity_bytes % shards as u64
}
