//! Counts evictions, and drops evicted values outside of the cache's lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use quick_cache::Lifecycle;

use crate::class_shares::ClassShares;
use crate::{BlockKey, Weighted};

/// Range of epoch numbers of one cache; no cache reaches that many epochs, so numbers of different
/// caches differ.
const EPOCHS_MAX: u64 = 1 << 40;

#[derive(Clone)]
pub(crate) struct Evictions {
    epochs: Arc<Epochs>,
    shares: Arc<ClassShares>,
}

/// The current epoch, and the number of evictions in all epochs.
struct Epochs {
    epoch: AtomicU64,
    evicted: AtomicU64,
    // Evictions per epoch.
    len: u64,
}

impl Evictions {
    /// An epoch is `epoch_len` evictions.
    pub(crate) fn new(shares: Arc<ClassShares>, epoch_len: u64) -> Evictions {
        assert!(epoch_len > 0, "an epoch has at least one eviction");
        static CACHES: AtomicU64 = AtomicU64::new(0);
        let epoch = CACHES.fetch_add(1, Relaxed).wrapping_mul(EPOCHS_MAX);
        let epochs = Epochs { epoch: AtomicU64::new(epoch), evicted: AtomicU64::new(0), len: epoch_len };
        Evictions { epochs: Arc::new(epochs), shares }
    }

    #[inline]
    pub(crate) fn epoch(&self) -> u64 {
        self.epochs.epoch.load(Relaxed)
    }

    /// Begins the next epoch.
    pub(crate) fn end_epoch(&self) {
        self.epochs.epoch.fetch_add(1, Relaxed);
    }

    pub(crate) fn count(&self) -> u64 {
        self.epochs.evicted.load(Relaxed)
    }
}

impl<V: Weighted> Lifecycle<BlockKey, V> for Evictions {
    // Evicted values; dropped after the request, when the shard is unlocked. An empty vector takes
    // no memory.
    type RequestState = Vec<V>;

    fn begin_request(&self) -> Vec<V> {
        Vec::new()
    }

    fn is_pinned(&self, _key: &BlockKey, value: &V) -> bool {
        self.shares.protects(value)
    }

    fn on_evict(&self, gone: &mut Vec<V>, _key: BlockKey, value: V) {
        if self.epochs.evicted.fetch_add(1, Relaxed).is_multiple_of(self.epochs.len) {
            self.end_epoch();
        }
        self.shares.count_removal(&value);
        gone.push(value);
    }
}
