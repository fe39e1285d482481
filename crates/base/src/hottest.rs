//! The most frequent items of a stream, in bounded memory and at low cost per item.
//!
//! An item's hash selects one set of a few slots. An item that has a slot is counted there. An item
//! without a slot replaces the least counted item of its set and inherits its count, because it may
//! have been counted that often before. So an item's count is never too low, and the bound of its
//! excess is known. Once the slots are filled, nothing is allocated.
//!
//! Source: Metwally and others, Space-Saving ("Efficient Computation of Frequent and Top-k Elements
//! in Data Streams", 2005). Here the slots form sets, like those of a CPU cache, so that an item is
//! compared with a few others and not with all.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;

/// Slots per set.
const WAYS: usize = 8;

/// Approximate counts of the most frequent byte strings.
#[derive(Debug, Clone)]
pub struct Hottest {
    sets: Box<[[Slot; WAYS]]>,
}

#[derive(Debug, Clone, Default)]
struct Slot {
    hash: u64,
    // 0 if the slot is empty.
    count: u64,
    // The count inherited from the replaced item.
    before: u64,
    item: Vec<u8>,
}

impl Hottest {
    /// An empty counter with at least `items_max` slots. A set holds eight items, so a ninth item
    /// whose hash selects a full set replaces one even if other sets have free slots.
    pub fn new(items_max: usize) -> Hottest {
        let sets = items_max.div_ceil(WAYS).next_power_of_two();
        Hottest { sets: (0..sets).map(|_| Default::default()).collect() }
    }

    /// Adds `times` to the count of `item`.
    pub fn add(&mut self, item: &[u8], times: u64) {
        let hash = FixedState::default().hash_one(item);
        let at = hash as usize & (self.sets.len() - 1);
        let set = &mut self.sets[at];
        if let Some(slot) = set.iter_mut().find(|slot| slot.hash == hash && slot.item == item) {
            slot.count += times;
            return;
        }
        let [first, others @ ..] = set;
        let least = others.iter_mut().fold(first, |least, slot| match slot.count < least.count {
            true => slot,
            false => least,
        });
        (least.hash, least.before) = (hash, least.count);
        least.count += times;
        least.item.clear();
        least.item.extend_from_slice(item);
    }

    /// The most by which a count from [`into_items`](Self::into_items) can be too low. The bound
    /// also holds for the missing count of an item that is not returned.
    pub fn error(&self) -> u64 {
        let of_absent = self.sets.iter().map(|set| set.iter().map(|slot| slot.count).min().unwrap_or(0));
        let of_present = self.sets.iter().flatten().map(|slot| slot.before);
        of_absent.chain(of_present).max().unwrap_or(0)
    }

    /// Number of items that have a slot.
    pub fn len(&self) -> usize {
        self.sets.iter().flatten().filter(|slot| slot.count > 0).count()
    }

    /// Whether no item has a slot.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All items that have a slot, in no particular order, each with a lower bound of its count.
    pub fn into_items(self) -> impl Iterator<Item = (Vec<u8>, u64)> {
        let slots = self.sets.into_iter().flatten().filter(|slot| slot.count > 0);
        slots.map(|slot| (slot.item, slot.count - slot.before))
    }

    /// Returns the counts and resets the counter.
    pub fn take(&mut self) -> Hottest {
        std::mem::replace(self, Hottest::new(self.sets.len() * WAYS))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::testing;

    #[test]
    fn few_items_are_counted_exactly() {
        let mut hottest = Hottest::new(100);
        for at in 0..10u8 {
            hottest.add(&[at], u64::from(at) + 1);
        }
        hottest.add(&[3], 100);
        hottest.add(&[], 7);
        assert_eq!((hottest.len(), hottest.error()), (11, 0));
        let items: HashMap<_, _> = hottest.take().into_items().collect();
        assert_eq!([&[3u8][..], &[9], &[]].map(|item| items[item]), [104, 10, 7]);
        assert!(hottest.is_empty());
    }

    #[test]
    fn a_new_item_replaces_the_least_counted() {
        let mut hottest = Hottest::new(1);
        for at in 0..=WAYS as u8 {
            hottest.add(&[at], 10 + u64::from(at));
        }
        assert_eq!((hottest.len(), hottest.error()), (WAYS, 11));
        let items: HashMap<_, _> = hottest.into_items().collect();
        assert_eq!((items.get(&[0u8][..]), items[&[WAYS as u8][..]]), (None, 18));
    }

    /// Far more items than slots, with a Zipf distribution.
    #[test]
    fn the_most_frequent_of_very_many_are_found() {
        let random = testing::env(7).random;
        let mut hottest = Hottest::new(512);
        let mut truth = HashMap::<u64, u64>::new();
        let total: f64 = (1..=100_000).map(|rank| 1.0 / f64::from(rank)).sum();
        for _ in 0..200_000 {
            // The rank at which the sum of shares exceeds a random share, approximated by a
            // logarithm.
            let share = (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
            let rank = (share * total - 0.577).exp().ceil().clamp(1.0, 100_000.0) as u64;
            hottest.add(&rank.to_be_bytes(), 1);
            *truth.entry(rank).or_default() += 1;
        }
        let error = hottest.error();
        assert!(hottest.len() <= 512 && error < 2_000, "{error}");
        let found: HashMap<u64, u64> = hottest
            .into_items()
            .map(|(item, count)| (u64::from_be_bytes(item.try_into().unwrap()), count))
            .collect();
        let mut top: Vec<(u64, u64)> = truth.into_iter().collect();
        top.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        for (rank, count) in &top[..20] {
            let counted = found[rank];
            assert!(counted <= *count && counted + error >= *count, "{rank}: {counted} of {count}");
        }
    }
}
