//! Which values are not to be evicted now: those of a class that has no more than its share. And how many there are.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::{Class, ENTRY_BYTES, KINDS, Weighted};

/// The part of the capacity that a class has as its own, as 1/n. Half of it is left to what is asked for most.
const SHARE: u64 = 4;
/// A value above this part of a shard, as 1/n, has no such privilege: a few of them could fill the shard.
const VALUE_SHARE: u64 = 32;

/// How much the classes have, and how much each may keep.
#[derive(Debug)]
pub(crate) struct Keeping {
    favoured_bytes: AtomicU64,
    guide_bytes: AtomicU64,
    share_bytes: AtomicU64,
    value_bytes_max: AtomicU64,
    entries: [AtomicU64; KINDS],
    shards: u64,
}

impl Keeping {
    pub(crate) fn new(capacity_bytes: u64, shards: usize) -> Keeping {
        let keeping = Keeping {
            favoured_bytes: AtomicU64::new(0),
            guide_bytes: AtomicU64::new(0),
            share_bytes: AtomicU64::new(0),
            value_bytes_max: AtomicU64::new(0),
            entries: Default::default(),
            shards: shards as u64,
        };
        keeping.set_capacity(capacity_bytes);
        keeping
    }

    pub(crate) fn set_capacity(&self, capacity_bytes: u64) {
        self.share_bytes.store(capacity_bytes / SHARE, Relaxed);
        self.value_bytes_max.store(capacity_bytes / self.shards / VALUE_SHARE, Relaxed);
    }

    /// Takes note of a value that is put in. Must be called before it is, so that no count goes below zero.
    pub(crate) fn comes(&self, value: &impl Weighted) {
        self.entries[value.kind()].fetch_add(1, Relaxed);
        if let Some(bytes) = self.bytes_of(value.class()) {
            bytes.fetch_add(weight(value), Relaxed);
        }
    }

    /// Takes note of a value that went, or did not come in after all.
    pub(crate) fn goes(&self, value: &impl Weighted) {
        self.entries[value.kind()].fetch_sub(1, Relaxed);
        if let Some(bytes) = self.bytes_of(value.class()) {
            bytes.fetch_sub(weight(value), Relaxed);
        }
    }

    /// Values of a kind that are there.
    pub(crate) fn entries(&self, kind: usize) -> u64 {
        self.entries[kind].load(Relaxed)
    }

    /// Whether a value in the cache must stay.
    pub(crate) fn keeps(&self, value: &impl Weighted) -> bool {
        self.bytes_of(value.class()).is_some_and(|bytes| {
            bytes.load(Relaxed) <= self.share_bytes.load(Relaxed)
                && weight(value) <= self.value_bytes_max.load(Relaxed)
        })
    }

    #[cfg(test)]
    pub(crate) fn counted(&self) -> [u64; 2] {
        [self.favoured_bytes.load(Relaxed), self.guide_bytes.load(Relaxed)]
    }

    fn bytes_of(&self, class: Class) -> Option<&AtomicU64> {
        match class {
            Class::Usual => None,
            Class::Favoured => Some(&self.favoured_bytes),
            Class::Guide => Some(&self.guide_bytes),
        }
    }
}

fn weight(value: &impl Weighted) -> u64 {
    value.weight() as u64 + ENTRY_BYTES
}
