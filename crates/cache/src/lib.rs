//! Layer 1: the block cache: values by (file, offset), kept until their memory is wanted.
//!
//! One cache serves all regions of a server. A reader asks [`BlockCache::get`]; on a miss its driver calls
//! [`BlockCache::load_with`], and of several that miss on one block, one loads it and the others wait for it.
//! Invariants:
//!
//! * HFiles never change and a file's number is never given twice, so a value is never stale, only unwanted;
//! * weight is the memory an entry takes; the sum of weights never exceeds the capacity;
//! * values of a class that has a share of its own are not evicted while their class has no more than that;
//! * a value outlives its eviction for as long as somebody holds it;
//! * a load that fails, or whose future is dropped, leaves nothing behind: the next waiter tries for itself.
//!
//! Admission and eviction are `quick_cache`'s (a Clock-PRO that one scan does not flush).
//!
//! Knows nothing about: what a block is, how it is read, which blocks are worth keeping.

mod eviction;
mod keeping;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::sync::Arc;

use base::metrics::{Count, Counter, Counts};
use bytes::Bytes;
use quick_cache::sync::Cache;
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};

use eviction::Evictions;
use keeping::Keeping;

/// Where a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockKey {
    /// Number of the file, unique in the process.
    pub file_id: u64,
    /// Offset of the block in the file.
    pub offset: u64,
}

/// Who goes first when memory is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// What was asked for least.
    Usual,
    /// What its owner wants kept: goes only from what such values have beyond a quarter of the capacity.
    Favoured,
    /// What leads to other values, or spares looking for them: the same, with a quarter of its own.
    Guide,
}

/// How often a value that is found counts, at most, as long as nothing is evicted (quick_cache's `MAX_F`).
pub const FINDS_COUNTED: u64 = 2;

/// Kinds of values that a cache can tell apart when it counts.
pub const KINDS: usize = 16;

/// What takes memory.
pub trait Weighted {
    /// Bytes of memory that go when the last handle of this value goes; never changes.
    fn weight(&self) -> usize;

    /// Its class; never changes.
    fn class(&self) -> Class {
        Class::Usual
    }

    /// As what it is counted, below [`KINDS`]; never changes.
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

// What an entry takes beside its value: key, handle, links and the share of the hash table, which remembers keys
// that were evicted too. quick_cache states (16 + 8 + 21) * 1.5, rounded up to a power of two of entries.
const ENTRY_BYTES: u64 = 128;
// A shard must hold some of the largest blocks; smaller caches have fewer shards.
const SHARD_BYTES_MIN: u64 = 16 << 20;
// Four for each core: a get takes a shard's lock for some tens of nanoseconds.
const SHARDS_A_CORE: usize = 4;
// HBase's default block is 64 KiB; index and small blocks pull the average down.
const USUAL_BLOCK_BYTES: u64 = 32 << 10;
// The part of the values, as 1/n, that is evicted in a turn.
const TURNS_A_ROUND: usize = 16;

#[derive(Clone)]
struct ByWeight;

impl<V: Weighted> Weighter<BlockKey, V> for ByWeight {
    fn weight(&self, _key: &BlockKey, value: &V) -> u64 {
        value.weight() as u64 + ENTRY_BYTES
    }
}

/// What a cache counts of one kind of values; since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindStats {
    /// Asked for and there.
    pub hits: u64,
    /// Put in because they were asked for and not there.
    pub loads: u64,
    /// There now.
    pub entries: u64,
}

/// Figures of a cache at one moment; counts are since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Asked for and there.
    pub hits: u64,
    /// Asked for and not there.
    pub misses: u64,
    /// Loads that put a value in.
    pub loads: u64,
    /// Loads that failed.
    pub failed_loads: u64,
    /// Values that went to make room, or were too large to come in.
    pub evictions: u64,
    /// Values there now.
    pub entries: u64,
    /// Memory they take, with what the cache itself needs for each.
    pub weight_bytes: u64,
    /// The most they may take.
    pub capacity_bytes: u64,
}

/// A cache of values by (file, offset); see the crate's documentation.
pub struct BlockCache<V> {
    cache: Cache<BlockKey, V, ByWeight, DefaultHashBuilder, Evictions>,
    evictions: Evictions,
    keeping: Arc<Keeping>,
    hits: Counts<ByKind>,
    misses: Counter,
    loads: Counts<ByKind>,
    failed_loads: Counter,
}

/// A count for each kind.
type ByKind = [Count; KINDS];

impl<V: Weighted + Clone> BlockCache<V> {
    /// A cache of at most `capacity_bytes`; 0 keeps nothing, which still lets waiters share a load.
    pub fn new(capacity_bytes: u64) -> BlockCache<V> {
        let shards = shard_count(capacity_bytes);
        let items =
            usize::try_from(capacity_bytes / USUAL_BLOCK_BYTES).unwrap_or(usize::MAX).max(32 * shards);
        let options = OptionsBuilder::new()
            .shards(shards)
            .estimated_items_capacity(items)
            .weight_capacity(whole_shards(capacity_bytes, shards))
            .build()
            .expect("capacity and number of items are given");
        let keeping = Arc::new(Keeping::new(capacity_bytes, shards));
        let evictions = Evictions::new(keeping.clone(), (items / TURNS_A_ROUND).max(1) as u64);
        let cache = Cache::with_options(options, ByWeight, DefaultHashBuilder::default(), evictions.clone());
        BlockCache {
            cache,
            evictions,
            keeping,
            hits: Counts::default(),
            misses: Counter::new(),
            loads: Counts::default(),
            failed_loads: Counter::new(),
        }
    }

    /// The value of `key`, if it is there; counts as a hit or a miss.
    pub fn get(&self, key: &BlockKey) -> Option<V> {
        let found = self.find(key);
        if found.is_none() {
            self.misses.increment()
        }
        found
    }

    /// The value of `key`, if it is there; counts as a hit. For those who leave what is not there to one who asks again, so
    /// that a miss is counted once.
    #[inline]
    pub fn find(&self, key: &BlockKey) -> Option<V> {
        let found = self.cache.get(key);
        if let Some(value) = &found {
            self.hits.increment(|of| &of[value.kind()]);
        }
        found
    }

    /// Which turn it is: a few evictions, and no turn of another cache has its number.
    ///
    /// Who goes next is decided by what was [found](Self::find) before. To find a value [a few times](FINDS_COUNTED) in a turn is
    /// enough for that: who remembers in which turn he found it, without holding it, may have it again by himself, if it is still
    /// there, and [says so](Self::note_hit).
    #[inline]
    pub fn turn(&self) -> u64 {
        self.evictions.turn()
    }

    /// A value of this kind was asked for, and was remembered from this [turn](Self::turn).
    #[inline]
    pub fn note_hit(&self, kind: usize) {
        self.hits.increment(|of| &of[kind]);
    }

    /// So many were not there of those that were [looked for](Self::find), and are loaded.
    pub fn note_misses(&self, misses: u64) {
        self.misses.add(misses);
    }

    /// The value of `key`, if it is there. Neither counts nor tells the cache that the value is wanted.
    pub fn peek(&self, key: &BlockKey) -> Option<V> {
        self.cache.peek(key)
    }

    /// Whether `key` is there. Neither counts nor tells the cache that the value is wanted.
    pub fn contains(&self, key: &BlockKey) -> bool {
        self.cache.contains_key(key)
    }

    /// Puts a value in that was made without being asked for (a block just written, or read ahead).
    pub fn insert(&self, key: BlockKey, value: V) {
        self.keeping.comes(&value);
        self.cache.insert(key, value);
    }

    /// The value of `key`, by `load` if need be. Of several callers at once, one loads and the others wait for its
    /// value; where it fails or is dropped, the next of them runs its own `load`. Counts as load, not as hit or miss.
    ///
    /// A value too large for the cache is returned (to all who wait) and not kept.
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
                self.keeping.comes(&value);
                // Refused if the key was inserted meanwhile; the caller has its value anyway.
                if let Err(refused) = guard.insert(value.clone()) {
                    self.keeping.goes(&refused);
                }
                Ok(value)
            }
            Err(error) => {
                self.failed_loads.increment();
                Err(error)
            }
        }
    }

    /// Drops the values of a file that is gone. Walks the whole cache, shard by shard; for the end of a compaction.
    ///
    /// A load of that file still under way comes in after it, and goes as all that nobody asks for.
    pub fn evict_file(&self, file_id: u64) {
        self.cache.retain(|key, value| {
            let stays = key.file_id != file_id;
            if !stays {
                self.keeping.goes(value);
            }
            stays
        });
        self.evictions.end_turn();
    }

    /// Drops all values.
    pub fn clear(&self) {
        self.cache.retain(|_, value| {
            self.keeping.goes(value);
            false
        });
        self.evictions.end_turn();
    }

    /// Changes the capacity; a smaller one evicts at once. The number of shards, and with it the largest value that
    /// is kept, stays in proportion.
    pub fn set_capacity(&self, capacity_bytes: u64) {
        self.keeping.set_capacity(capacity_bytes);
        self.cache.set_capacity(whole_shards(capacity_bytes, self.cache.num_shards()));
    }

    /// Figures of one kind of this moment.
    pub fn kind_stats(&self, kind: usize) -> KindStats {
        KindStats {
            hits: self.hits.get(|of| &of[kind]),
            loads: self.loads.get(|of| &of[kind]),
            entries: self.keeping.entries(kind),
        }
    }

    /// Figures of this moment.
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

/// Of all kinds.
fn sum(counts: &Counts<ByKind>) -> u64 {
    (0..KINDS).map(|kind| counts.get(|of| &of[kind])).sum()
}

fn shard_count(capacity_bytes: u64) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let most = (cores * SHARDS_A_CORE).next_power_of_two() as u64;
    let roomy = (capacity_bytes / SHARD_BYTES_MIN).max(1);
    // The power of two at or below.
    let roomy = 1 << roomy.ilog2();
    most.min(roomy) as usize
}

// quick_cache gives each shard its part rounded up; rounded down first, the parts do not exceed the whole.
fn whole_shards(capacity_bytes: u64, shards: usize) -> u64 {
    capacity_bytes - capacity_bytes % shards as u64
}
