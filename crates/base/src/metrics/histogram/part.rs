//! One thread's part of a histogram.
//!
//! Only the owning thread adds to it, with ordinary instructions. Repetitions of the previous value
//! are counted separately and moved into their bucket when a different value comes. A seqlock makes
//! a reader retry if it reads during such a move, so the owner never waits.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64, fence};

use super::Value;
use super::buckets::{BUCKETS, bucket_of};
use crate::metrics::areas::{Count, Zeroed};

/// One thread's values, by bucket.
#[repr(C)]
pub(super) struct Part {
    sum: Count,
    // Minimum and maximum since the last `take_extremes`, encoded so that 0 means "none".
    min_complement: AtomicU64,
    max_plus_one: AtomicU64,
    // Non-zero after the first value that was counted in `sum` and `counts`.
    is_used: AtomicU64,
    // The last value of `record_likely_repeat`, and how often it was repeated. The repetitions are
    // not in `sum` and `counts` yet.
    last: AtomicU64,
    repeats: AtomicU64,
    // The value of `repeats` at the last `take_extremes`.
    repeats_reported: AtomicU64,
    // Sequence number of the seqlock: odd while repeated values are being moved.
    moves: AtomicU64,
    // May wrap: only differences are used.
    counts: [AtomicU32; BUCKETS],
}

// SAFETY: atomic integers, which may be zero.
unsafe impl Zeroed for Part {}

impl Part {
    /// Records `times` equal values. Only the thread that owns the part may call this.
    #[inline]
    pub(super) fn record(&self, Value { value, bucket }: Value, times: u32) {
        self.count(bucket, times);
        self.sum.add(value.wrapping_mul(u64::from(times)));
        if value >= self.max_plus_one.load(Relaxed) || !value > self.min_complement.load(Relaxed) {
            self.record_extreme(value);
        }
    }

    /// Records a value that often equals the last one recorded with this method.
    #[inline]
    pub(super) fn record_likely_repeat(&self, value: u64) {
        match value == self.last.load(Relaxed) {
            true => self.repeats.store(self.repeats.load(Relaxed).wrapping_add(1), Relaxed),
            false => self.record_different(value),
        }
    }

    fn record_different(&self, value: u64) {
        let (last, again) = (self.last.load(Relaxed), self.repeats.load(Relaxed));
        let moves = self.moves.load(Relaxed);
        self.moves.store(moves + 1, Relaxed);
        fence(Release);
        self.count(bucket_of(last), again as u32);
        self.sum.add(last.wrapping_mul(again));
        if again != self.repeats_reported.load(Relaxed) {
            self.record_extreme(last);
        }
        self.last.store(value, Relaxed);
        self.repeats.store(0, Relaxed);
        self.repeats_reported.store(0, Relaxed);
        self.moves.store(moves + 2, Release);
        self.record(Value::of(value), 1);
    }

    #[inline]
    fn count(&self, bucket: usize, times: u32) {
        let count = &self.counts[bucket];
        // Not fetch_add, for the reason given in Count::add.
        count.store(count.load(Relaxed).wrapping_add(times), Relaxed);
    }

    /// Updates the minimum and maximum with `value`.
    #[cold]
    fn record_extreme(&self, value: u64) {
        self.is_used.store(1, Relaxed);
        // A reader may reset the extremes concurrently.
        self.min_complement.fetch_max(!value, Relaxed);
        self.max_plus_one.fetch_max(value.saturating_add(1), Relaxed);
    }

    /// Whether any value was ever recorded.
    pub(super) fn is_used(&self) -> bool {
        self.is_used.load(Relaxed) != 0 || self.repeats.load(Relaxed) != 0
    }

    /// Counts by bucket.
    pub(super) fn counts(&self) -> [u32; BUCKETS] {
        self.settled(|| {
            let mut counts = std::array::from_fn(|bucket| self.counts[bucket].load(Relaxed));
            let of_last = &mut counts[bucket_of(self.last.load(Relaxed))];
            *of_last = of_last.wrapping_add(self.repeats.load(Relaxed) as u32);
            counts
        })
    }

    /// Sum of all values.
    pub(super) fn sum(&self) -> u64 {
        self.settled(|| {
            let again = self.last.load(Relaxed).wrapping_mul(self.repeats.load(Relaxed));
            self.sum.get().wrapping_add(again)
        })
    }

    /// Returns the minimum and maximum since the last call, if there was a value, and resets them.
    pub(super) fn take_extremes(&self) -> Option<(u64, u64)> {
        let take = |mark: &AtomicU64| if mark.load(Relaxed) == 0 { 0 } else { mark.swap(0, Relaxed) };
        let (min_complement, max_plus_one) = (take(&self.min_complement), take(&self.max_plus_one));
        let recorded = (max_plus_one != 0).then(|| (!min_complement, max_plus_one - 1));
        let (last, again) = self.settled(|| (self.last.load(Relaxed), self.repeats.load(Relaxed)));
        if again == self.repeats_reported.swap(again, Relaxed) {
            return recorded;
        }
        let (least, greatest) = recorded.unwrap_or((last, last));
        Some((least.min(last), greatest.max(last)))
    }

    /// Adds the values of `other`, whose histogram is about to be dropped. Only the thread that
    /// owns `self` may call this.
    pub(super) fn take_over(&self, other: &Part) {
        for (bucket, more) in other.counts().into_iter().enumerate() {
            self.count(bucket, more);
        }
        self.sum.add(other.sum());
        if let Some((least, greatest)) = other.take_extremes() {
            self.record_extreme(least);
            self.record_extreme(greatest);
        }
    }

    /// The result of `read`, which is repeated until no values are moved meanwhile.
    fn settled<T>(&self, read: impl Fn() -> T) -> T {
        loop {
            let moves = self.moves.load(Acquire);
            let value = read();
            fence(Acquire);
            if moves.is_multiple_of(2) && self.moves.load(Relaxed) == moves {
                return value;
            }
            // The writer may have been preempted in the middle of a move.
            std::thread::yield_now();
        }
    }
}
