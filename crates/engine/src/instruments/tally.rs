//! What regions count for themselves, added up where somebody looks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::metrics::Counts;

use crate::instruments::region::{RegionCounts, Usage};

/// The requests of several regions, those of closed ones among them: a region counts in one place only, and has to go through
/// this when it is opened and closed.
#[derive(Default)]
pub(super) struct Tally(Mutex<Regions>);

#[derive(Default)]
struct Regions {
    closed: Requests,
    open: BTreeMap<u64, Arc<Counts<RegionCounts>>>,
    next_place: u64,
}

/// Rows that were read, mutations, and what they used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Requests {
    pub(super) reads: u64,
    pub(super) writes: u64,
    pub(super) usage: Usage,
}

impl Tally {
    /// A region was opened: the place that it has until it [leaves](Self::leave).
    pub(super) fn join(&self, counts: &Arc<Counts<RegionCounts>>) -> u64 {
        let mut regions = self.lock();
        let place = regions.next_place;
        regions.next_place += 1;
        regions.open.insert(place, counts.clone());
        place
    }

    /// The region at `place` was closed, and counts no more.
    pub(super) fn leave(&self, place: u64) {
        let mut regions = self.lock();
        if let Some(counts) = regions.open.remove(&place) {
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
        // Numbers and a map: whole after any panic.
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
    fn requests_of_closed_regions_are_not_forgotten() {
        let tally = Tally::default();
        let [first, second] = [1, 10].map(|rows| {
            let counts = Arc::new(Counts::<RegionCounts>::default());
            counts.add(|of| &of.gets, rows);
            counts.add(|of| &of.scanned, rows);
            counts.add(|of| &of.writes, 3 * rows);
            let place = tally.join(&counts);
            (counts, place)
        });
        let both = Requests { reads: 22, writes: 33, ..Requests::default() };
        assert_eq!(tally.requests(), both);
        tally.leave(first.1);
        assert_eq!(tally.requests(), both);
        second.0.increment(|of| &of.writes);
        assert_eq!(tally.requests(), Requests { writes: 34, ..both });
    }
}
