//! Where the blocks are that a thread asked for lately.
//!
//! Who asks the cache takes a lock and looks at one place of memory after the other, none of which the processor can
//! fetch before it has the one in front. So a thread remembers which blocks it found, without holding them: it may have one again as
//! long as the cache has it (or somebody who reads it), and can ask the processor for it before it is wanted.
//!
//! The cache must know what is asked for when it lets go of values, but not how often. So a thread goes to the cache
//! [some times](cache::FINDS_COUNTED) in each of its [turns](cache::BlockCache::turn).

use std::cell::RefCell;
use std::sync::{Arc, Weak};

use base::prefetch::prefetch_at;
use cache::{BlockKey, FINDS_COUNTED};
use hfile::Block;

/// Pairs of blocks that a thread remembers, as a power of two: half a megabyte. (What is left of a block that is gone, some two
/// hundred bytes, goes when it is forgotten.)
const PAIRS_LOG2: u32 = 13;
/// Spreads what is at even distances, as blocks of a file are: 2^64 by the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
/// Bytes of the counts of an [`Arc`] in front of what it holds.
const COUNTS_BYTES: usize = 2 * size_of::<usize>();

/// A block that was found.
struct Place {
    key: BlockKey,
    found: Found,
    block: Weak<Block>,
}

/// Blocks that would be at the same place. A line of the processor's cache.
#[repr(align(64))]
struct Pair([Place; 2]);
const _: () = assert!(size_of::<Pair>() == 64);

/// In which turn of which cache, and how often in it. (One number, so that it is compared at once.)
#[derive(Clone, Copy, PartialEq, Eq)]
struct Found(u64);

impl Found {
    const TIMES_MAX: u64 = FINDS_COUNTED;

    /// As often as the cache counts.
    #[inline]
    fn enough(turn: u64) -> Found {
        Found(turn * (Found::TIMES_MAX + 1) + Found::TIMES_MAX)
    }

    fn once(turn: u64) -> Found {
        Found(turn * (Found::TIMES_MAX + 1) + 1)
    }

    /// Once more, in this turn.
    fn again(self, turn: u64) -> Found {
        match (Found::once(turn).0..Found::enough(turn).0).contains(&self.0) {
            true => Found(self.0 + 1),
            false => Found::once(turn),
        }
    }
}

thread_local! {
    // Nothing before the first block.
    static PAIRS: RefCell<Vec<Pair>> = const { RefCell::new(Vec::new()) };
}

/// The block, if this thread [found](note) it in this turn as often as the cache counts.
#[inline]
pub(super) fn find(key: BlockKey, turn: u64) -> Option<Arc<Block>> {
    let is_it = |place: &&Place| place.key == key && place.found == Found::enough(turn);
    with_pair(key, |pair| pair.iter().find(is_it)?.block.upgrade()).flatten()
}

/// Asks the processor for what [`find`] looks at, and for the block.
#[inline]
pub(super) fn prefetch(key: BlockKey) {
    with_pair(key, |pair| {
        if let Some(place) = pair.iter().find(|place| place.key == key) {
            let counts = place.block.as_ptr().cast::<u8>().wrapping_sub(COUNTS_BYTES);
            prefetch_at(counts, COUNTS_BYTES + size_of::<Block>());
        }
    });
}

/// This thread found the block in the cache, in this turn.
pub(super) fn note(key: BlockKey, turn: u64, block: &Arc<Block>) {
    // A thread that ends remembers nothing.
    _ = PAIRS.try_with(|pairs| {
        let mut pairs = pairs.borrow_mut();
        if pairs.is_empty() {
            let nowhere = || Place { key, found: Found(0), block: Weak::new() };
            pairs.resize_with(1 << PAIRS_LOG2, || Pair([nowhere(), nowhere()]));
        }
        let Pair(pair) = &mut pairs[index_of(key)];
        let is_it = |place: &&mut Place| place.key == key && place.block.as_ptr() == Arc::as_ptr(block);
        match pair.iter_mut().find(is_it) {
            Some(place) => place.found = place.found.again(turn),
            None => {
                // In place of the one that came before the other.
                pair.rotate_right(1);
                pair[0] = Place { key, found: Found::once(turn), block: Arc::downgrade(block) };
            }
        }
    });
}

#[inline]
fn with_pair<T>(key: BlockKey, look: impl FnOnce(&[Place; 2]) -> T) -> Option<T> {
    PAIRS.try_with(|pairs| pairs.borrow().get(index_of(key)).map(|Pair(pair)| look(pair))).ok().flatten()
}

#[inline]
fn index_of(key: BlockKey) -> usize {
    let mixed = (key.offset ^ key.file_id.rotate_left(u64::BITS / 2)).wrapping_mul(SPREAD);
    (mixed >> (u64::BITS - PAIRS_LOG2)) as usize
}
