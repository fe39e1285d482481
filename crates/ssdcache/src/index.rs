//! Where each block is: a hash table in memory, with 24 bytes per block plus free slots.
//!
//! Blocks are found by a 64-bit hash of their identity. The record on the SSD has the whole
//! identity, so two blocks with the same hash are not confused; one of them is a miss.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::record;

/// Number of shards, each with its own lock.
const SHARDS: usize = 64;
/// The bit of [`Entry::len_and_use`] that records a use. Blocks are shorter than 2 GiB.
const USED: u32 = 1 << 31;
/// Bytes of a slot of a hash table: key, entry, and a byte for the table.
const SLOT_BYTES: usize = size_of::<u64>() + size_of::<Entry>() + 1;

/// Where a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Location {
    /// The hash of the block's identity.
    pub(crate) key: u64,
    /// Number of the segment.
    pub(crate) segment: u32,
    /// Offset of the record in the segment.
    pub(crate) at: u32,
    /// Bytes of the block.
    pub(crate) len: u32,
    /// Checksum of the record.
    pub(crate) checksum: u32,
}

impl Location {
    /// Bytes of the record.
    pub(crate) fn record_len(&self) -> usize {
        record::HEADER_LEN + self.len as usize
    }
}

#[derive(Clone, Copy)]
struct Entry {
    segment: u32,
    at: u32,
    len_and_use: u32,
    checksum: u32,
}
const _: () = assert!(size_of::<Entry>() == 16);

impl Entry {
    fn new(location: &Location) -> Entry {
        assert!(location.len & USED == 0, "a block has less than 2 GiB");
        let Location { segment, at, len, checksum, .. } = *location;
        Entry { segment, at, len_and_use: len, checksum }
    }

    fn location(&self, key: u64) -> Location {
        let Entry { segment, at, len_and_use, checksum } = *self;
        Location { key, segment, at, len: len_and_use & !USED, checksum }
    }

    fn is_used(&self) -> bool {
        self.len_and_use & USED != 0
    }
}

/// The keys are hashes already.
#[derive(Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn write(&mut self, _bytes: &[u8]) {
        unreachable!("keys are integers")
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

type Shard = HashMap<u64, Entry, BuildHasherDefault<KeyHasher>>;

/// The locations of all blocks.
pub(crate) struct Index {
    shards: Vec<Mutex<Shard>>,
    len: AtomicU64,
}

impl Index {
    pub(crate) fn new() -> Index {
        Index { shards: (0..SHARDS).map(|_| Mutex::default()).collect(), len: AtomicU64::new(0) }
    }

    /// The block's location. Records the use.
    pub(crate) fn find(&self, key: u64) -> Option<Location> {
        let mut shard = self.shard(key);
        let entry = shard.get_mut(&key)?;
        entry.len_and_use |= USED;
        Some(entry.location(key))
    }

    pub(crate) fn contains(&self, key: u64) -> bool {
        self.shard(key).contains_key(&key)
    }

    /// Adds or replaces a block. A location in an older segment than the present one is ignored.
    pub(crate) fn insert(&self, location: &Location) {
        let mut shard = self.shard(location.key);
        if shard.get(&location.key).is_some_and(|present| present.segment > location.segment) {
            return;
        }
        if shard.insert(location.key, Entry::new(location)).is_none() {
            self.len.fetch_add(1, Relaxed);
        }
    }

    /// Removes a block, if it is still at this location.
    pub(crate) fn remove_at(&self, location: &Location) {
        let mut shard = self.shard(location.key);
        if shard.get(&location.key).is_some_and(|entry| entry.location(location.key) == *location) {
            shard.remove(&location.key);
            self.len.fetch_sub(1, Relaxed);
        }
    }

    /// The used blocks of a segment, in the order of their offsets.
    pub(crate) fn used_in(&self, segment: u32) -> Vec<Location> {
        let mut used = Vec::new();
        for shard in &self.shards {
            let shard = lock(shard);
            let found = shard.iter().filter(|(_, entry)| entry.segment == segment && entry.is_used());
            used.extend(found.map(|(key, entry)| entry.location(*key)));
        }
        used.sort_unstable_by_key(|location| location.at);
        used
    }

    /// Removes all blocks of a segment. Returns their number.
    pub(crate) fn remove_segment(&self, segment: u32) -> u64 {
        let mut removed = 0;
        for shard in &self.shards {
            let mut shard = lock(shard);
            let before = shard.len();
            shard.retain(|_, entry| entry.segment != segment);
            removed += (before - shard.len()) as u64;
        }
        self.len.fetch_sub(removed, Relaxed);
        removed
    }

    /// Number of blocks.
    pub(crate) fn len(&self) -> u64 {
        self.len.load(Relaxed)
    }

    /// Bytes of memory.
    pub(crate) fn memory_bytes(&self) -> u64 {
        // A hash table grows to a power of two of slots, of which it uses 7/8.
        let slots = |shard: &Mutex<Shard>| match lock(shard).capacity() {
            0 => 0,
            capacity => (capacity * 8 / 7).next_power_of_two(),
        };
        self.shards.iter().map(|shard| (slots(shard) * SLOT_BYTES) as u64).sum()
    }

    fn shard(&self, key: u64) -> MutexGuard<'_, Shard> {
        // Neither the lowest nor the highest bits, which the hash tables use.
        lock(&self.shards[(key >> 40) as usize % SHARDS])
    }
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    // Each change of a map is one step, so it is valid after any panic.
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BlockId;

    fn at(key: u64, segment: u32, at: u32) -> Location {
        Location { key, segment, at, len: 100, checksum: 9 }
    }

    #[test]
    fn uses_are_recorded_per_segment() {
        let index = Index::new();
        for key in 0..10 {
            index.insert(&at(key, key as u32 % 2, 10 - key as u32));
        }
        for key in [2, 3, 6] {
            assert_eq!(index.find(key).map(|found| found.key), Some(key));
        }
        assert!(index.contains(4));
        let used: Vec<u64> = index.used_in(0).iter().map(|location| location.key).collect();
        assert_eq!(used, [6, 2], "in the order of offsets");
        assert_eq!(index.remove_segment(0), 5);
        assert_eq!((index.len(), index.find(2), index.contains(3)), (5, None, true));
    }

    #[test]
    fn the_newest_location_stays() {
        let index = Index::new();
        index.insert(&at(1, 5, 0));
        index.insert(&at(1, 4, 0));
        assert_eq!(index.find(1), Some(at(1, 5, 0)));
        index.remove_at(&at(1, 4, 0));
        assert_eq!(index.len(), 1, "at another location");
        index.insert(&at(1, 6, 0));
        index.remove_at(&at(1, 6, 0));
        assert_eq!((index.len(), index.find(1)), (0, None));
    }

    #[test]
    fn the_index_takes_less_than_a_percent_of_large_blocks() {
        let index = Index::new();
        for block in 0..200_000_u64 {
            let key = BlockId { file: u128::from(block / 1000), offset: (block % 1000) << 16 }.key();
            index.insert(&at(key, 0, 0));
        }
        assert_eq!(index.len(), 200_000, "no two of these blocks have the same hash");
        let per_block = index.memory_bytes() / index.len();
        assert!((size_of::<u64>() as u64 + 16..100).contains(&per_block), "{per_block} bytes");
        assert!(per_block * 100 < 64 << 10);
    }
}
