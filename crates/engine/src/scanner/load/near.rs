//! Where the blocks are that a thread asked for lately.
//!
//! Who asks the cache takes a lock and looks at one place of memory after the other, none of which the processor can
//! fetch before it has the one in front. So a thread remembers which blocks it found, without holding them: it may have one again as
//! long as the cache has it, and can ask the processor for it before it is wanted.
//!
//! The cache must know what is asked for when it lets go of values, but not how often. So a thread goes to the cache
//! [some times](cache::FINDS_COUNTED) in each of its [turns](cache::BlockCache::turn).

use std::cell::RefCell;
use std::sync::{Arc, Weak};

use base::prefetch::prefetch_at;
use cache::{BlockKey, FINDS_COUNTED};
use hfile::Block;

/// Blocks that a thread remembers, as a power of two: a quarter of a megabyte, and two hundred bytes for each that is gone.
const PLACES_LOG2: u32 = 13;
/// Spreads what is at even distances, as blocks of a file are: 2^64 by the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
/// Bytes of the counts of an [`Arc`] in front of what it holds.
const COUNTS_BYTES: usize = 2 * size_of::<usize>();

/// A block that was found. Two of them are a line of the processor's cache.
struct Place {
    key: BlockKey,
    found: Found,
    block: Weak<Block>,
}

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
    static PLACES: RefCell<Vec<Place>> = const { RefCell::new(Vec::new()) };
}

/// The block, if this thread [found](note) it in this turn as often as the cache counts.
#[inline]
pub(super) fn find(key: BlockKey, turn: u64) -> Option<Arc<Block>> {
    let find = |place: &Place| match place.key == key && place.found == Found::enough(turn) {
        true => place.block.upgrade(),
        false => None,
    };
    with_place(key, find).flatten()
}

/// Asks the processor for what [`find`] looks at.
#[inline]
pub(super) fn prefetch(key: BlockKey) {
    with_place(key, |place| {
        if place.key == key {
            prefetch_at(place.block.as_ptr().cast::<u8>().wrapping_sub(COUNTS_BYTES), COUNTS_BYTES);
        }
    });
}

/// This thread found the block in the cache, in this turn.
pub(super) fn note(key: BlockKey, turn: u64, block: &Arc<Block>) {
    // A thread that ends remembers nothing.
    _ = PLACES.try_with(|places| {
        let mut places = places.borrow_mut();
        if places.is_empty() {
            places.resize_with(1 << PLACES_LOG2, || Place { key, found: Found(0), block: Weak::new() });
        }
        let place = &mut places[index_of(key)];
        match place.key == key && place.block.as_ptr() == Arc::as_ptr(block) {
            true => place.found = place.found.again(turn),
            false => *place = Place { key, found: Found::once(turn), block: Arc::downgrade(block) },
        }
    });
}

#[inline]
fn with_place<T>(key: BlockKey, look: impl FnOnce(&Place) -> T) -> Option<T> {
    PLACES.try_with(|places| places.borrow().get(index_of(key)).map(look)).ok().flatten()
}

#[inline]
fn index_of(key: BlockKey) -> usize {
    let mixed = (key.offset ^ key.file_id.rotate_left(u64::BITS / 2)).wrapping_mul(SPREAD);
    (mixed >> (u64::BITS - PLACES_LOG2)) as usize
}
