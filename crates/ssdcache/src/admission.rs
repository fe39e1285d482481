//! Which blocks were read before: two Bloom filters, of the current and the previous period.
//!
//! A block is worth a write to the SSD if it was read from its store file at least twice. A period
//! ends after as many first reads as small blocks fit in the cache. So a second read counts if at
//! most one to two times that many other blocks were read in between.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Bytes of a small block: one of 64 KiB that compresses well.
const SMALL_BLOCK_BYTES: u64 = 16 << 10;
const BLOCKS_MIN: u64 = 1 << 12;
/// Limits the memory of the filters to 256 MiB.
const BLOCKS_MAX: u64 = 1 << 27;
/// With eight bits per block and three probes, 3 % of new blocks are taken for known ones.
const BITS_PER_BLOCK: u64 = 8;
const PROBES: u32 = 3;

/// The blocks that were read recently.
pub(crate) struct ReadHistory {
    periods: [Vec<AtomicU64>; 2],
    /// Index of the current period.
    current: AtomicUsize,
    /// Number of blocks in the current period.
    blocks: AtomicU64,
    blocks_max: u64,
    /// Held while the period changes.
    change: Mutex<()>,
}

impl ReadHistory {
    pub(crate) fn new(capacity_bytes: u64) -> ReadHistory {
        let blocks_max =
            (capacity_bytes / SMALL_BLOCK_BYTES).clamp(BLOCKS_MIN, BLOCKS_MAX).next_power_of_two();
        let words = blocks_max * BITS_PER_BLOCK / u64::from(u64::BITS);
        let filter = || (0..words).map(|_| AtomicU64::new(0)).collect();
        ReadHistory {
            periods: [filter(), filter()],
            current: AtomicUsize::new(0),
            blocks: AtomicU64::new(0),
            blocks_max,
            change: Mutex::new(()),
        }
    }

    /// Whether the block was read before. Records this read.
    pub(crate) fn was_read(&self, key: u64) -> bool {
        let current = self.current.load(Relaxed);
        let is_in_previous = contains(&self.periods[1 - current], key);
        let is_in_current = add(&self.periods[current], key);
        if !is_in_current && self.blocks.fetch_add(1, Relaxed) + 1 >= self.blocks_max {
            self.begin_period();
        }
        is_in_previous || is_in_current
    }

    fn begin_period(&self) {
        // If another thread changes the period, this one need not.
        let Ok(_change) = self.change.try_lock() else { return };
        if self.blocks.load(Relaxed) < self.blocks_max {
            return;
        }
        let next = 1 - self.current.load(Relaxed);
        self.periods[next].iter().for_each(|word| word.store(0, Relaxed));
        self.current.store(next, Relaxed);
        self.blocks.store(0, Relaxed);
    }

    /// Bytes of memory.
    pub(crate) fn memory_bytes(&self) -> u64 {
        (2 * self.periods[0].len() * size_of::<u64>()) as u64
    }
}

/// The word and the bit of each probe.
fn probes(words: usize, key: u64) -> impl Iterator<Item = (usize, u64)> {
    // The high half is the step of the probes; odd, so that they differ.
    let step = (key >> 32) | 1;
    (0..u64::from(PROBES)).map(move |probe| {
        let bit = key.wrapping_add(probe.wrapping_mul(step)) as usize % (words * u64::BITS as usize);
        (bit / u64::BITS as usize, 1 << (bit % u64::BITS as usize))
    })
}

fn contains(filter: &[AtomicU64], key: u64) -> bool {
    probes(filter.len(), key).all(|(word, bit)| filter[word].load(Relaxed) & bit != 0)
}

/// Adds a block. Returns whether the filter contained it.
fn add(filter: &[AtomicU64], key: u64) -> bool {
    let set = |(word, bit): (usize, u64)| filter[word].fetch_or(bit, Relaxed) & bit != 0;
    probes(filter.len(), key).map(set).fold(true, |all, was_set| all & was_set)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BlockId;

    fn key(block: u64) -> u64 {
        BlockId { file: 7, offset: block << 16 }.key()
    }

    #[test]
    fn a_second_read_is_recognized() {
        let history = ReadHistory::new(1 << 30);
        assert!(!history.was_read(key(1)));
        assert!(history.was_read(key(1)));
    }

    #[test]
    fn new_blocks_are_rarely_taken_for_known_ones() {
        let history = ReadHistory::new(1 << 30);
        let taken = (0..200_000).filter(|block| history.was_read(key(*block))).count();
        assert!(taken < 200_000 / 15, "{taken}");
    }

    #[test]
    fn reads_are_forgotten_after_two_periods() {
        let history = ReadHistory::new(0);
        let others = |from: u64, count: u64| {
            (from..from + count).for_each(|block| _ = history.was_read(key(block)));
        };
        history.was_read(key(0));
        others(1_000_000, BLOCKS_MIN);
        assert!(history.was_read(key(0)), "in the previous period");
        others(2_000_000, BLOCKS_MIN * 5 / 2);
        let remembered = (1_000_000..1_001_000).filter(|block| history.was_read(key(*block))).count();
        assert!(remembered < 200, "{remembered} of 1000");
    }
}
