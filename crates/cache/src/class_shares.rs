//! Which values must not be evicted: those of a class that holds at most its share. Also counts the
//! entries.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::{Class, ENTRY_BYTES, KINDS, Weighted};

/// Reserved share of the capacity per class, as 1/n. The two classes leave half of it for the most
/// used values.
const SHARE: u64 = 4;
const _: () = assert!(SHARE > 2, "the two shares leave space for other values");
/// A value above this part of a shard, as 1/n, is not protected: a few such values could fill the
/// shard.
const VALUE_SHARE: u64 = 32;

/// Bytes held by each class, and the limits for protection.
#[derive(Debug)]
pub(crate) struct ClassShares {
    favoured_bytes: AtomicU64,
    index_bytes: AtomicU64,
    share_bytes: AtomicU64,
    value_bytes_max: AtomicU64,
    entries: [AtomicU64; KINDS],
    shards: u64,
}

impl ClassShares {
    pub(crate) fn new(capacity_bytes: u64, shards: usize) -> ClassShares {
        let shares = ClassShares {
            favoured_bytes: AtomicU64::new(0),
            index_bytes: AtomicU64::new(0),
            share_bytes: AtomicU64::new(0),
            value_bytes_max: AtomicU64::new(0),
            entries: Default::default(),
            shards: shards as u64,
        };
        shares.set_capacity(capacity_bytes);
        shares
    }

    pub(crate) fn set_capacity(&self, capacity_bytes: u64) {
        self.share_bytes.store(capacity_bytes / SHARE, Relaxed);
        self.value_bytes_max.store(capacity_bytes / self.shards / VALUE_SHARE, Relaxed);
    }

    /// Counts a value that is about to be inserted. Must be called before the insert, so that no
    /// count drops below zero.
    pub(crate) fn count_insert(&self, value: &impl Weighted) {
        self.entries[value.kind()].fetch_add(1, Relaxed);
        if let Some(bytes) = self.bytes_of(value.class()) {
            bytes.fetch_add(weight(value), Relaxed);
        }
    }

    /// Counts a value that was removed or rejected.
    pub(crate) fn count_removal(&self, value: &impl Weighted) {
        let entries = self.entries[value.kind()].fetch_sub(1, Relaxed);
        debug_assert!(entries > 0, "only a counted value is removed");
        if let Some(bytes) = self.bytes_of(value.class()) {
            let before = bytes.fetch_sub(weight(value), Relaxed);
            debug_assert!(before >= weight(value), "the weight of a value never changes");
        }
    }

    /// Number of cached values of a kind.
    pub(crate) fn entries(&self, kind: usize) -> u64 {
        self.entries[kind].load(Relaxed)
    }

    /// Whether a cached value must not be evicted.
    pub(crate) fn protects(&self, value: &impl Weighted) -> bool {
        self.bytes_of(value.class()).is_some_and(|bytes| {
            bytes.load(Relaxed) <= self.share_bytes.load(Relaxed)
                && weight(value) <= self.value_bytes_max.load(Relaxed)
        })
    }

    #[cfg(test)]
    pub(crate) fn class_bytes(&self) -> [u64; 2] {
        [self.favoured_bytes.load(Relaxed), self.index_bytes.load(Relaxed)]
    }

    fn bytes_of(&self, class: Class) -> Option<&AtomicU64> {
        match class {
            Class::Normal => None,
            Class::Favoured => Some(&self.favoured_bytes),
            Class::Index => Some(&self.index_bytes),
        }
    }
}

fn weight(value: &impl Weighted) -> u64 {
    value.weight() as u64 + ENTRY_BYTES
}
