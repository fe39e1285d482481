//! The counts of regions, summed when they are read.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::metrics::Counts;

use crate::instruments::region::{RegionCounts, Usage};

/// The requests of several regions, including closed ones. A region counts only once, so it
/// registers here when it is opened, and unregisters when it is closed.
#[derive(Default)]
pub(super) struct Tally(Mutex<Regions>);

#[derive(Default)]
struct Regions {
    closed: Requests,
    open: BTreeMap<u64, Arc<Counts<RegionCounts>>>,
    next_key: u64,
}

/// Rows read, mutations, and the resources that they used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Requests {
    pub(super) reads: u64,
    pub(super) writes: u64,
    pub(super) usage: Usage,
}

impl Tally {
    /// Registers an opened region, and returns its key until it [unregisters](Self::unregister).
    pub(super) fn register(&self, counts: &Arc<Counts<RegionCounts>>) -> u64 {
        let mut regions = self.lock();
        let key = regions.next_key;
        regions.next_key += 1;
        regions.open.insert(key, counts.clone());
        key
    }

    /// Removes the closed region under `key`, which no longer counts.
    pub(super) fn unregister(&self, key: u64) {
        let mut regions = self.lock();
        if let Some(counts) = regions.open.remove(&key) {
            regions.closed.add(Requests::of(&counts));
        }
    }

    /// All requests so far.
    pub(super) fn requests(&self) -> Requests {
        let regions = self.lock();
        let mut sum = regions.closed;
        regions.open.values().for_each(|counts| sum.add(Requests::of(counts)));
        sum
    }

    fn lock(&self) -> MutexGuard<'_, Regions> {
        // Numbers and a map: consistent after any panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Requests {
    fn of(counts: &Counts<RegionCounts>) -> Requests {
        Requests {
            reads: RegionCounts::reads(counts),
            writes: counts.get(|of| &of.writes),
            usage: Usage::of(counts),
        }
    }

    fn add(&mut self, other: Requests) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.usage += other.usage;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_closed_regions_remain_counted() {
        let tally = Tally::default();
        let [first, second] = [1, 10].map(|rows| {
            let counts = Arc::new(Counts::<RegionCounts>::default());
            counts.add(|of| &of.gets, rows);
            counts.add(|of| &of.scanned, rows);
            counts.add(|of| &of.writes, 3 * rows);
            let key = tally.register(&counts);
            (counts, key)
        });
        let both = Requests { reads: 22, writes: 33, ..Requests::default() };
        assert_eq!(tally.requests(), both);
        tally.unregister(first.1);
        assert_eq!(tally.requests(), both);
        second.0.increment(|of| &of.writes);
        assert_eq!(tally.requests(), Requests { writes: 34, ..both });
    }
}
