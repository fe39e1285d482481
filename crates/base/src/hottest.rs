//! The most frequent items of a stream, in bounded memory and at a small price for each.
//!
//! An item belongs to one set of a few places, by its hash. One that has a place there is counted; one that has none takes
//! the place that was counted least, and with it the count, for it may have been counted as often before: so an item's count
//! is never too low, and what it may be too high by is known. Nothing is allocated once the places have been filled. Source:
//! Metwally and others, Space-Saving ("Efficient Computation of Frequent and Top-k Elements in Data Streams", 2005), here in
//! sets as those of a processor's cache, so that an item meets a few others and not all.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;

/// Places of a set.
const WAYS: usize = 8;

/// Counts of the most frequent of items that are bytes.
#[derive(Debug, Clone)]
pub struct Hottest {
    sets: Box<[[Place; WAYS]]>,
}

#[derive(Debug, Clone, Default)]
struct Place {
    hash: u64,
    // 0 if nothing is here.
    count: u64,
    // What the count had before the item came.
    before: u64,
    item: Vec<u8>,
}

impl Hottest {
    /// Nothing counted yet. There is room for `items_max` items at least, though not for any of them: eight whose hashes are
    /// near to each other leave no room for a ninth.
    pub fn new(items_max: usize) -> Hottest {
        let sets = items_max.div_ceil(WAYS).next_power_of_two();
        Hottest { sets: (0..sets).map(|_| Default::default()).collect() }
    }

    /// Counts an item `times` more.
    pub fn add(&mut self, item: &[u8], times: u64) {
        let hash = FixedState::default().hash_one(item);
        let at = hash as usize & (self.sets.len() - 1);
        let set = &mut self.sets[at];
        if let Some(place) = set.iter_mut().find(|place| place.hash == hash && place.item == item) {
            place.count += times;
            return;
        }
        let [first, others @ ..] = set;
        let least = others.iter_mut().fold(first, |least, place| match place.count < least.count {
            true => place,
            false => least,
        });
        (least.hash, least.before) = (hash, least.count);
        least.count += times;
        least.item.clear();
        least.item.extend_from_slice(item);
    }

    /// By how much a count that [`into_items`](Self::into_items) gives can be too low, that of one it does not give among them.
    pub fn error(&self) -> u64 {
        let of_absent = self.sets.iter().map(|set| set.iter().map(|place| place.count).min().unwrap_or(0));
        let of_present = self.sets.iter().flatten().map(|place| place.before);
        of_absent.chain(of_present).max().unwrap_or(0)
    }

    /// How many items are counted.
    pub fn len(&self) -> usize {
        self.sets.iter().flatten().filter(|place| place.count > 0).count()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All items that have a place, in no order, each with how often it came at least.
    pub fn into_items(self) -> impl Iterator<Item = (Vec<u8>, u64)> {
        let places = self.sets.into_iter().flatten().filter(|place| place.count > 0);
        places.map(|place| (place.item, place.count - place.before))
    }

    /// Takes what was counted away, and begins anew.
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
    fn who_comes_last_takes_the_place_that_was_counted_least() {
        let mut hottest = Hottest::new(1);
        for at in 0..=WAYS as u8 {
            hottest.add(&[at], 10 + u64::from(at));
        }
        assert_eq!((hottest.len(), hottest.error()), (WAYS, 11));
        let items: HashMap<_, _> = hottest.into_items().collect();
        assert_eq!((items.get(&[0u8][..]), items[&[WAYS as u8][..]]), (None, 18));
    }

    /// Many more items than there is room for, as frequent as Zipf's law has it.
    #[test]
    fn the_most_frequent_of_very_many_are_found() {
        let random = testing::env(7).random;
        let mut hottest = Hottest::new(512);
        let mut truth = HashMap::<u64, u64>::new();
        let total: f64 = (1..=100_000).map(|rank| 1.0 / f64::from(rank)).sum();
        for _ in 0..200_000 {
            // The rank at which the sum of shares passes a random share; near enough by its logarithm.
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
