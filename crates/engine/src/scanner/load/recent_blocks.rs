//! A thread-local table of blocks that the thread recently found in the cache.
//!
//! A look-up in the cache takes a lock and follows a chain of pointers, of which the CPU can
//! prefetch none before it has the previous one. So each thread remembers weak references to the
//! blocks that it found. While a block is alive, in the cache or with a reader, the thread can use
//! it again without the cache, and can prefetch it before it is needed.
//!
//! Eviction must know which blocks are used, but not how often. So a thread looks up a block in the
//! cache only [`EFFECTIVE_HITS_MAX`] times per [epoch](cache::BlockCache::epoch).

use std::cell::RefCell;
use std::sync::{Arc, Weak};

use base::prefetch::prefetch_at;
use cache::{BlockKey, EFFECTIVE_HITS_MAX};
use hfile::Block;

/// Number of pairs in a thread's table, as a power of two. The table takes 512 KiB. The allocation
/// of an evicted block, about two hundred bytes, is freed when its entry is replaced.
const PAIRS_LOG2: u32 = 13;
/// Spreads evenly spaced keys, such as the offsets of a file's blocks: 2^64 divided by the golden
/// ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
/// Bytes of an [`Arc`]'s counters, which precede its value.
const COUNTS_BYTES: usize = 2 * size_of::<usize>();

/// A block that was found in the cache.
struct Entry {
    key: BlockKey,
    hits: HitCount,
    block: Weak<Block>,
}

/// The entries that share a hash: one CPU cache line.
#[repr(align(64))]
struct Pair([Entry; 2]);
const _: () = assert!(size_of::<Pair>() == 64);

/// The epoch of the last hit, which also identifies the cache, and the number of hits in it. One
/// integer, so that one comparison checks all.
#[derive(Clone, Copy, PartialEq, Eq)]
struct HitCount(u64);

impl HitCount {
    const HITS_MAX: u64 = EFFECTIVE_HITS_MAX;

    /// As many hits as eviction takes into account.
    #[inline]
    fn max(epoch: u64) -> HitCount {
        HitCount(epoch * (HitCount::HITS_MAX + 1) + HitCount::HITS_MAX)
    }

    fn first(epoch: u64) -> HitCount {
        HitCount(epoch * (HitCount::HITS_MAX + 1) + 1)
    }

    /// One more hit, in this epoch.
    fn increment(self, epoch: u64) -> HitCount {
        match (HitCount::first(epoch).0..HitCount::max(epoch).0).contains(&self.0) {
            true => HitCount(self.0 + 1),
            false => HitCount::first(epoch),
        }
    }
}

thread_local! {
    // Empty until the first block is found.
    static PAIRS: RefCell<Vec<Pair>> = const { RefCell::new(Vec::new()) };
}

/// The block, if this thread has [found](record) it in the cache in this epoch as often as eviction
/// takes into account.
#[inline]
pub(super) fn get(key: BlockKey, epoch: u64) -> Option<Arc<Block>> {
    let is_match = |entry: &&Entry| entry.key == key && entry.hits == HitCount::max(epoch);
    with_pair(key, |pair| pair.iter().find(is_match)?.block.upgrade()).flatten()
}

/// Prefetches the memory that [`get`] reads, and the block.
#[inline]
pub(super) fn prefetch(key: BlockKey) {
    with_pair(key, |pair| {
        if let Some(entry) = pair.iter().find(|entry| entry.key == key) {
            let counts = entry.block.as_ptr().cast::<u8>().wrapping_sub(COUNTS_BYTES);
            prefetch_at(counts, COUNTS_BYTES + size_of::<Block>());
        }
    });
}

/// Records that this thread found the block in the cache, in this epoch.
pub(super) fn record(key: BlockKey, epoch: u64, block: &Arc<Block>) {
    debug_assert!(
        (block.file_id(), block.offset()) == (key.file_id, key.offset),
        "a block is remembered under its own key"
    );
    // A thread that is exiting has no table.
    _ = PAIRS.try_with(|pairs| {
        let mut pairs = pairs.borrow_mut();
        if pairs.is_empty() {
            let empty = || Entry { key, hits: HitCount(0), block: Weak::new() };
            pairs.resize_with(1 << PAIRS_LOG2, || Pair([empty(), empty()]));
        }
        let Pair(pair) = &mut pairs[index_of(key)];
        let is_match = |entry: &&mut Entry| entry.key == key && entry.block.as_ptr() == Arc::as_ptr(block);
        match pair.iter_mut().find(is_match) {
            Some(entry) => entry.hits = entry.hits.increment(epoch),
            None => {
                // Replaces the older entry.
                pair.rotate_right(1);
                pair[0] = Entry { key, hits: HitCount::first(epoch), block: Arc::downgrade(block) };
            }
        }
    });
}

#[inline]
fn with_pair<T>(key: BlockKey, read: impl FnOnce(&[Entry; 2]) -> T) -> Option<T> {
    PAIRS.try_with(|pairs| pairs.borrow().get(index_of(key)).map(|Pair(pair)| read(pair))).ok().flatten()
}

#[inline]
fn index_of(key: BlockKey) -> usize {
    let mixed = (key.offset ^ key.file_id.rotate_left(u64::BITS / 2)).wrapping_mul(SPREAD);
    (mixed >> (u64::BITS - PAIRS_LOG2)) as usize
}
