//! The most frequent items of a stream, in bounded memory.
//!
//! Counts are kept of as many items as there is room for. When there is none, all counts are lowered by their median, and
//! those that are used up go: half of them. So an item's count is too low by at most what was taken off in all, which is
//! known, and what is more frequent than that is there. Source: Misra and Gries, with the batched lowering of Anderson
//! and others ("A High-Performance Algorithm for Identifying Frequent Items in Data Streams", 2017).

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

/// Counts of the most frequent items.
#[derive(Debug, Clone)]
pub struct Hottest<T> {
    counts: HashMap<T, u64>,
    items_max: usize,
    // What every count may lack.
    lowered: u64,
}

impl<T: Hash + Eq> Hottest<T> {
    /// Nothing counted yet; keeps at most `items_max` items, at least one.
    pub fn new(items_max: usize) -> Hottest<T> {
        Hottest { counts: HashMap::new(), items_max: items_max.max(1), lowered: 0 }
    }

    /// Counts an item `times` more; it is copied only where it is new.
    pub fn add<Q: Hash + Eq + ToOwned<Owned = T> + ?Sized>(&mut self, item: &Q, times: u64)
    where
        T: Borrow<Q>,
    {
        if let Some(count) = self.counts.get_mut(item) {
            *count += times;
            return;
        }
        if self.counts.len() >= self.items_max {
            self.lower();
        }
        self.counts.insert(item.to_owned(), times);
    }

    /// Takes the median off all counts.
    fn lower(&mut self) {
        let mut counts: Vec<u64> = self.counts.values().copied().collect();
        let middle = counts.len() / 2;
        let (_, median, _) = counts.select_nth_unstable(middle);
        let median = *median;
        self.lowered += median;
        self.counts.retain(|_, count| {
            *count = count.saturating_sub(median);
            *count > 0
        });
    }

    /// By how much a count can be too low.
    pub fn error(&self) -> u64 {
        self.lowered
    }

    /// How many items are counted.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// All items that are counted, in no order, each with at least so many times.
    pub fn into_items(self) -> impl Iterator<Item = (T, u64)> {
        self.counts.into_iter()
    }

    /// Takes what was counted away, and begins anew.
    pub fn take(&mut self) -> Hottest<T> {
        std::mem::replace(self, Hottest::new(self.items_max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn few_items_are_counted_exactly() {
        let mut hottest = Hottest::<String>::new(10);
        for at in 0..10 {
            hottest.add(format!("{at}").as_str(), at + 1);
        }
        hottest.add("3", 100);
        assert_eq!((hottest.len(), hottest.error()), (10, 0));
        let items: HashMap<_, _> = hottest.take().into_items().collect();
        assert_eq!((items["3"], items["9"]), (104, 10));
        assert!(hottest.is_empty());
    }

    /// Many more items than there is room for, as frequent as Zipf's law has it.
    #[test]
    fn the_most_frequent_of_very_many_are_found() {
        let random = testing::env(7).random;
        let mut hottest = Hottest::<[u8; 8]>::new(512);
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
        let found: HashMap<u64, u64> =
            hottest.into_items().map(|(item, count)| (u64::from_be_bytes(item), count)).collect();
        let mut top: Vec<(u64, u64)> = truth.into_iter().collect();
        top.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        for (rank, count) in &top[..20] {
            let counted = found[rank];
            assert!(counted <= *count && counted + error >= *count, "{rank}: {counted} of {count}");
        }
    }
}
