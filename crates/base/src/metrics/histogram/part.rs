//! What one thread noted of a histogram's values.
//!
//! It is the thread's alone to add to, by ordinary instructions. Values that are often the same again are not put into
//! buckets one by one: they are counted beside them as long as none comes that differs, and moved then. Who looks meanwhile
//! looks again (a seqlock): the thread waits for nobody.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64, fence};

use super::Value;
use super::buckets::{BUCKETS, bucket_of};
use crate::metrics::areas::{Count, Zeroed};

/// The values of one thread, by bucket.
#[repr(C)]
pub(super) struct Part {
    sum: Count,
    // Of those since the last look, so that 0 says that there was none: the complement of the least, and one more than the
    // greatest.
    least: AtomicU64,
    above: AtomicU64,
    // Whether there was ever any that is in `sum` and `counts`.
    is_used: AtomicU64,
    // Of those that are often the same, the last one, and how often it came again since it was noted as others are; how often of
    // that it had come at the last look. None of it is in `sum` and `counts`.
    last: AtomicU64,
    again: AtomicU64,
    again_seen: AtomicU64,
    // Odd while what came again is moved.
    moves: AtomicU64,
    // They may wrap: only differences are looked at.
    counts: [AtomicU32; BUCKETS],
}

// SAFETY: atomic numbers, of which each can be 0.
unsafe impl Zeroed for Part {}

impl Part {
    /// Notes a value that there were `times` of, for the thread whose part it is.
    #[inline]
    pub(super) fn note(&self, Value { value, bucket }: Value, times: u32) {
        self.count(bucket, times);
        self.sum.add(value.wrapping_mul(u64::from(times)));
        if value >= self.above.load(Relaxed) || !value > self.least.load(Relaxed) {
            self.note_extreme(value);
        }
    }

    /// Notes a value that is often the same as the last one noted so.
    #[inline]
    pub(super) fn note_alike(&self, value: u64) {
        match value == self.last.load(Relaxed) {
            true => self.again.store(self.again.load(Relaxed).wrapping_add(1), Relaxed),
            false => self.note_other(value),
        }
    }

    fn note_other(&self, value: u64) {
        let (last, again) = (self.last.load(Relaxed), self.again.load(Relaxed));
        let moves = self.moves.load(Relaxed);
        self.moves.store(moves + 1, Relaxed);
        fence(Release);
        self.count(bucket_of(last), again as u32);
        self.sum.add(last.wrapping_mul(again));
        if again != self.again_seen.load(Relaxed) {
            self.note_extreme(last);
        }
        self.last.store(value, Relaxed);
        self.again.store(0, Relaxed);
        self.again_seen.store(0, Relaxed);
        self.moves.store(moves + 2, Release);
        self.note(Value::of(value), 1);
    }

    #[inline]
    fn count(&self, bucket: usize, times: u32) {
        let count = &self.counts[bucket];
        // Not by fetch_add, as in Count::add.
        count.store(count.load(Relaxed).wrapping_add(times), Relaxed);
    }

    /// The first value since the last look, or one beyond those since.
    #[cold]
    fn note_extreme(&self, value: u64) {
        self.is_used.store(1, Relaxed);
        // Who looks may begin anew meanwhile.
        self.least.fetch_max(!value, Relaxed);
        self.above.fetch_max(value.saturating_add(1), Relaxed);
    }

    /// Whether there was ever any value.
    pub(super) fn is_used(&self) -> bool {
        self.is_used.load(Relaxed) != 0 || self.again.load(Relaxed) != 0
    }

    /// How many there are in each bucket.
    pub(super) fn counts(&self) -> [u32; BUCKETS] {
        self.settled(|| {
            let mut counts = std::array::from_fn(|bucket| self.counts[bucket].load(Relaxed));
            let of_last = &mut counts[bucket_of(self.last.load(Relaxed))];
            *of_last = of_last.wrapping_add(self.again.load(Relaxed) as u32);
            counts
        })
    }

    /// All values added up.
    pub(super) fn sum(&self) -> u64 {
        self.settled(|| {
            let again = self.last.load(Relaxed).wrapping_mul(self.again.load(Relaxed));
            self.sum.get().wrapping_add(again)
        })
    }

    /// The least and the greatest value since the last look, if there was any; begins anew.
    pub(super) fn take_extremes(&self) -> Option<(u64, u64)> {
        let take = |mark: &AtomicU64| if mark.load(Relaxed) == 0 { 0 } else { mark.swap(0, Relaxed) };
        let (least, above) = (take(&self.least), take(&self.above));
        let noted = (above != 0).then(|| (!least, above - 1));
        let (last, again) = self.settled(|| (self.last.load(Relaxed), self.again.load(Relaxed)));
        if again == self.again_seen.swap(again, Relaxed) {
            return noted;
        }
        let (least, greatest) = noted.unwrap_or((last, last));
        Some((least.min(last), greatest.max(last)))
    }

    /// Takes over the values of another thread's, of which others told so far; for the thread whose part it is.
    pub(super) fn take_over(&self, other: &Part) {
        for (bucket, more) in other.counts().into_iter().enumerate() {
            self.count(bucket, more);
        }
        self.sum.add(other.sum());
        if let Some((least, greatest)) = other.take_extremes() {
            self.note_extreme(least);
            self.note_extreme(greatest);
        }
    }

    /// What `look` sees while nothing is moved.
    fn settled<T>(&self, look: impl Fn() -> T) -> T {
        loop {
            let moves = self.moves.load(Acquire);
            let seen = look();
            fence(Acquire);
            if moves.is_multiple_of(2) && self.moves.load(Relaxed) == moves {
                return seen;
            }
            // It may have been interrupted in the middle.
            std::thread::yield_now();
        }
    }
}
