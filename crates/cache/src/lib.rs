//! The block cache: values by (file, offset), cached until their memory is needed.
//!
//! One cache serves all regions of a server. A reader calls [`BlockCache::get`], and after a miss
//! [`BlockCache::load_with`]. If several readers miss the same block, one of them loads it and the
//! other readers wait for it. Invariants:
//!
//! * Files never change and file numbers are never reused. So a cached value is never stale.
//! * The weight of an entry is the memory that it takes. The sum of all weights never exceeds the
//!   capacity.
//! * A [`Class`] can have a reserved share of the capacity. While the class takes at most its
//!   share, its values are not evicted, except very large ones.
//! * An evicted value lives as long as a caller holds it.
//! * A load that fails, or whose future is dropped, leaves no entry. The next waiter runs its own
//!   load.
//!
//! Admission and eviction are implemented by `quick_cache` (a scan-resistant Clock-PRO).
//!
//! Not here: what blocks contain, how they are read, and which blocks are cached.

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
    /// Has no reserved share.
    Normal,
    /// Values that the caller prefers to keep. They are evicted only while this class takes more
    /// than a quarter of the capacity.
    Favoured,
    /// Index and Bloom filter blocks. Protected like [`Favoured`](Class::Favoured), with a quarter
    /// of their own.
    Index,
}

/// Number of hits on an entry that delay its eviction (quick_cache's `MAX_F`). Further hits have no
/// effect on eviction.
pub const EFFECTIVE_HITS_MAX: u64 = 2;

/// Number of kinds of values that the statistics distinguish.
pub const KINDS: usize = 16;

/// A value with a known memory size.
pub trait Weighted {
    /// Bytes of memory that are freed with the last clone of this value; never changes.
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

// Estimated memory of an entry in addition to its value: key, handle, links, and its part of the
// hash table, which also contains the keys of evicted entries.
const ENTRY_BYTES: u64 = 128;
// A shard must hold several of the largest blocks; smaller caches have fewer shards.
const SHARD_BYTES_MIN: u64 = 16 << 20;
// Each access locks a shard for tens of nanoseconds. With this many shards, threads rarely wait.
const SHARDS_PER_CORE: usize = 4;
// Estimated average size of a block. HBase's default is 64 KiB, but some blocks are smaller.
const TYPICAL_BLOCK_BYTES: u64 = 32 << 10;
// An epoch (see `BlockCache::epoch`) ends after as many evictions as 1/16 of the values that fit in
// the cache.
const EPOCH_DIVISOR: usize = 16;

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
        let evictions = Evictions::new(shares.clone(), (items / EPOCH_DIVISOR).max(1) as u64);
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

    /// The value of `key`, if cached. Counts the hit or miss.
    pub fn get(&self, key: &BlockKey) -> Option<V> {
        let found = self.get_counting_hits(key);
        if found.is_none() {
            self.misses.increment()
        }
        found
    }

    /// The value of `key`, if cached. Counts a hit, but not a miss.
    #[inline]
    pub fn get_counting_hits(&self, key: &BlockKey) -> Option<V> {
        let found = self.cache.get(key);
        if let Some(value) = &found {
            self.hits.increment(|kinds| &kinds[value.kind()]);
        }
        found
    }

    /// The number of the current epoch. A new epoch begins each time a small part of the cache has
    /// been evicted. No epoch number occurs in two caches of a process.
    ///
    /// A caller can keep a weak reference to a value. Once it has looked up the value in the cache
    /// [`EFFECTIVE_HITS_MAX`] times in an epoch, it can use that reference for the rest of the
    /// epoch, because further hits do not affect eviction. It reports each such use with
    /// [`count_hit`](Self::count_hit).
    #[inline]
    pub fn epoch(&self) -> u64 {
        self.evictions.epoch()
    }

    /// Counts a hit on a value of this kind that the caller found by its own reference (see
    /// [`epoch`](Self::epoch)).
    #[inline]
    pub fn count_hit(&self, kind: usize) {
        self.hits.increment(|kinds| &kinds[kind]);
    }

    /// The value of `key`, if cached. Neither counts nor affects eviction.
    pub fn peek(&self, key: &BlockKey) -> Option<V> {
        self.cache.peek(key)
    }

    /// Whether `key` is cached. Neither counts nor affects eviction.
    pub fn contains(&self, key: &BlockKey) -> bool {
        self.cache.contains_key(key)
    }

    /// Inserts a value that no caller has looked up, such as a block that was just written.
    pub fn insert(&self, key: BlockKey, value: V) {
        self.shares.count_insert(&value);
        self.cache.insert(key, value);
    }

    /// The value of `key`, loaded with `load` if it is not cached. Of several concurrent callers,
    /// one loads the value and the other callers wait. If the load fails or is dropped, the next
    /// waiter runs its own `load`. Counts as a load, not as a hit or miss.
    ///
    /// A value that is too large for the cache is returned to all waiters, but not cached.
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
                self.loads.increment(|kinds| &kinds[value.kind()]);
                self.shares.count_insert(&value);
                // The cache rejects the value if the key was inserted concurrently.
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

    /// Drops the values of a deleted file. Slow: visits all entries of the cache.
    ///
    /// A concurrent load may still insert a block of that file. It is evicted later, like any
    /// unused block.
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
            hits: self.hits.get(|kinds| &kinds[kind]),
            loads: self.loads.get(|kinds| &kinds[kind]),
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
    (0..KINDS).map(|kind| counts.get(|kinds| &kinds[kind])).sum()
}

fn shard_count(capacity_bytes: u64) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let by_cores = (cores * SHARDS_PER_CORE).next_power_of_two() as u64;
    let by_capacity = (capacity_bytes / SHARD_BYTES_MIN).max(1);
    // Round down to a power of two.
    let by_capacity = 1 << by_capacity.ilog2();
    by_cores.min(by_capacity) as usize
}

// The greatest multiple of `shards` that is at most `capacity_bytes`. quick_cache rounds the
// capacity of each shard up, so with any other number the shards would exceed `capacity_bytes`.
fn whole_shards(capacity_bytes: u64, shards: usize) -> u64 {
    capacity_bytes - capacity_bytes % shards as u64
}
