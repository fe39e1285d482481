//! Counts what is evicted, and lets it go outside of the cache's lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use quick_cache::Lifecycle;

use crate::keeping::Keeping;
use crate::{BlockKey, Weighted};

/// Turns of one cache at most, before its numbers are another's: more than it has.
const TURNS_MAX: u64 = 1 << 40;

#[derive(Clone)]
pub(crate) struct Evictions {
    turns: Arc<Turns>,
    keeping: Arc<Keeping>,
}

/// Which turn it is, and how much was evicted in all of them.
struct Turns {
    turn: AtomicU64,
    evicted: AtomicU64,
    // So many evictions are a turn.
    len: u64,
}

impl Evictions {
    /// A turn is `turn_len` evictions.
    pub(crate) fn new(keeping: Arc<Keeping>, turn_len: u64) -> Evictions {
        static CACHES: AtomicU64 = AtomicU64::new(0);
        let turn = CACHES.fetch_add(1, Relaxed).wrapping_mul(TURNS_MAX);
        let turns = Turns { turn: AtomicU64::new(turn), evicted: AtomicU64::new(0), len: turn_len };
        Evictions { turns: Arc::new(turns), keeping }
    }

    #[inline]
    pub(crate) fn turn(&self) -> u64 {
        self.turns.turn.load(Relaxed)
    }

    /// The next turn begins.
    pub(crate) fn end_turn(&self) {
        self.turns.turn.fetch_add(1, Relaxed);
    }

    pub(crate) fn count(&self) -> u64 {
        self.turns.evicted.load(Relaxed)
    }
}

impl<V: Weighted> Lifecycle<BlockKey, V> for Evictions {
    // Values that go; dropped when the request is over and the shard unlocked. Empty, it takes no memory.
    type RequestState = Vec<V>;

    fn begin_request(&self) -> Vec<V> {
        Vec::new()
    }

    fn is_pinned(&self, _key: &BlockKey, value: &V) -> bool {
        self.keeping.keeps(value)
    }

    fn on_evict(&self, gone: &mut Vec<V>, _key: BlockKey, value: V) {
        if self.turns.evicted.fetch_add(1, Relaxed).is_multiple_of(self.turns.len) {
            self.end_turn();
        }
        self.keeping.goes(&value);
        gone.push(value);
    }
}
