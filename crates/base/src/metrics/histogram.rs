//! Distributions of values, recorded without a lock.
//!
//! A histogram counts values in buckets whose width is a sixteenth of their value. So reported
//! values are accurate to three percent; the minimum and the maximum are exact. Counts only grow. A
//! reader remembers the counts of its last read; the difference is an [`Interval`], the base of
//! HBase's `_min` to `_99.9th_percentile`.
//!
//! A value that belongs to several histograms is recorded in one, and the others include it
//! ([`Histogram::include`]).

mod buckets;
mod interval;
mod part;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::metrics::COUNTING;
use crate::metrics::areas::{AreaOffset, OwnArea};
use buckets::{BUCKETS, bucket_of};
pub use interval::Interval;
use part::Part;

/// A histogram that many threads update and few read.
pub struct Histogram {
    parts: AreaOffset<Part>,
    last_interval: Mutex<LastInterval>,
    others: OnceLock<Others>,
}

/// Visits the histograms that another histogram includes.
type Others = Box<dyn Fn(&mut dyn FnMut(Contribution<'_>)) + Send + Sync>;

/// A contribution to a histogram from another histogram.
#[derive(Clone, Copy, Debug)]
pub enum Contribution<'a> {
    /// All values of another histogram.
    Of(&'a Histogram),
    /// A zero for each value of another histogram.
    ZerosFor(&'a Histogram),
}

/// A value with its bucket, for callers that record it in several histograms.
#[derive(Clone, Copy, Debug)]
pub struct Value {
    value: u64,
    bucket: usize,
}

impl Value {
    /// Computes the bucket of a value.
    #[inline]
    pub fn of(value: u64) -> Value {
        Value { value, bucket: bucket_of(value) }
    }
}

/// State at the end of the last interval.
#[derive(Debug, Default)]
struct LastInterval {
    counts: Vec<u32>,
    // Total count. Unlike the counts of buckets, it does not wrap.
    count: u64,
    sum: u64,
    interval: Arc<Interval>,
}

impl Histogram {
    /// An empty histogram. It takes almost no memory before the first value.
    pub fn new() -> Histogram {
        Histogram { parts: AreaOffset::new(), last_interval: Mutex::default(), others: OnceLock::new() }
    }

    /// Includes the contributions that `others` visits, from now on. A value that belongs to both
    /// histograms is then recorded only in the more specific one. The owners of the included
    /// histograms must roll them in the same pass as this one.
    ///
    /// # Panics
    /// If called twice.
    pub fn include(&self, others: impl Fn(&mut dyn FnMut(Contribution<'_>)) + Send + Sync + 'static) {
        assert!(self.others.set(Box::new(others)).is_ok(), "`include` is called once");
    }

    /// Records a value.
    #[inline]
    pub fn record(&self, value: u64) {
        self.record_many(value, 1);
    }

    /// Records `times` equal values; `times` must be at least one.
    #[inline]
    pub fn record_many(&self, value: u64, times: u32) {
        debug_assert!(times > 0, "a recorded value occurred at least once");
        if COUNTING {
            self.parts.own().record(Value::of(value), times);
        }
    }

    /// Records a value, for a caller that already has the thread's area.
    #[inline]
    pub fn record_in(&self, value: Value, area: OwnArea) {
        if COUNTING {
            self.parts.within(area).record(value, 1);
        }
    }

    /// Records a value that often equals the previous one. In that case it is cheaper than
    /// [`record_in`](Self::record_in).
    #[inline]
    pub fn record_likely_repeat(&self, value: u64, area: OwnArea) {
        if COUNTING {
            self.parts.within(area).record_likely_repeat(value);
        }
    }

    /// Takes over the values of a histogram that is about to be dropped and that this histogram has
    /// included so far.
    pub fn take_over(&self, other: &Histogram) {
        if !COUNTING {
            return;
        }
        // Hold both locks, so that values that were reported before are not reported again.
        let (mut seen, of_other) = (self.last_interval(), other.last_interval());
        let own = self.parts.own();
        other.used_parts().for_each(|part| own.take_over(part));
        if !of_other.counts.is_empty() {
            seen.counts.resize(BUCKETS, 0);
        }
        for (sum, before) in seen.counts.iter_mut().zip(&of_other.counts) {
            *sum = sum.wrapping_add(*before);
        }
        seen.sum = seen.sum.wrapping_add(of_other.sum);
        seen.count += of_other.count;
        let interval = seen.interval.with(&of_other.interval);
        seen.interval = Arc::new(interval);
    }

    /// Number of values since the start. Sums the buckets, so that recording a value needs no
    /// second counter.
    pub fn count(&self) -> u64 {
        let mut count = self.own_count();
        self.each_other(|(Contribution::Of(other) | Contribution::ZerosFor(other))| count += other.count());
        count
    }

    fn own_count(&self) -> u64 {
        let seen = self.last_interval();
        seen.count
            + self.counts().iter().enumerate().map(|(at, now)| u64::from(seen.since(at, *now))).sum::<u64>()
    }

    /// All values so far, for readers that compute their own intervals. Does not end an interval.
    pub fn snapshot(&self) -> Snapshot {
        let mut all = Snapshot { counts: self.counts(), sum: self.own_sum() };
        self.each_other(|contribution| all.add(contribution));
        all
    }

    /// Counts by bucket, summed over all threads.
    fn counts(&self) -> Vec<u32> {
        let mut counts = vec![0u32; BUCKETS];
        for part in self.used_parts() {
            for (sum, count) in counts.iter_mut().zip(part.counts()) {
                *sum = sum.wrapping_add(count);
            }
        }
        counts
    }

    /// Sum of all values since the start.
    pub fn sum(&self) -> u64 {
        let mut sum = self.own_sum();
        self.each_other(|contribution| {
            if let Contribution::Of(other) = contribution {
                sum = sum.wrapping_add(other.sum());
            }
        });
        sum
    }

    fn own_sum(&self) -> u64 {
        self.used_parts().fold(0, |sum, part| sum.wrapping_add(part.sum()))
    }

    /// Ends the current interval and begins the next one.
    pub fn roll(&self) {
        let mut seen = self.last_interval();
        if seen.counts.is_empty() && self.used_parts().next().is_none() {
            return;
        }
        let wider = |one: (u64, u64), other: (u64, u64)| (one.0.min(other.0), one.1.max(other.1));
        let extremes = self.used_parts().filter_map(Part::take_extremes).reduce(wider);
        let (min, max) = extremes.unwrap_or_default();
        let sum = self.own_sum();
        let now = self.counts();
        let counts = now.iter().enumerate().map(|(bucket, now)| (bucket, seen.since(bucket, *now)));
        let counts: Vec<(u16, u32)> =
            counts.filter(|(_, count)| *count > 0).map(|(bucket, count)| (bucket as u16, count)).collect();
        // A thread may record values after the sum was read and before its counts are read, so sum
        // and counts may not match. An interval without counts cannot hold a sum; the next interval
        // with values includes it.
        let sum = if counts.is_empty() { seen.sum } else { sum };
        let interval = Interval::of(counts, sum.wrapping_sub(seen.sum), min, max);
        let count = seen.count + interval.count();
        *seen = LastInterval { counts: now, count, sum, interval: Arc::new(interval) };
    }

    /// The last complete interval.
    pub fn interval(&self) -> Arc<Interval> {
        let mut all = self.last_interval().interval.clone();
        self.each_other(|contribution| {
            let more = match contribution {
                Contribution::Of(other) => other.interval(),
                Contribution::ZerosFor(other) => Arc::new(Interval::of_zeros(other.interval().count())),
            };
            if more.count() > 0 {
                all = Arc::new(all.with(&more));
            }
        });
        all
    }

    fn each_other(&self, mut visit: impl FnMut(Contribution<'_>)) {
        if let Some(others) = self.others.get() {
            others(&mut visit);
        }
    }

    /// The parts of threads that recorded values. Readers skip the other parts.
    fn used_parts(&self) -> impl Iterator<Item = &Part> {
        self.parts.all().filter(|part| part.is_used())
    }

    fn last_interval(&self) -> MutexGuard<'_, LastInterval> {
        // Numbers, valid after any panic.
        self.last_interval.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Histogram").field("count", &self.count()).finish_non_exhaustive()
    }
}

impl LastInterval {
    /// The increase of a bucket whose count is `now`.
    fn since(&self, bucket: usize, now: u32) -> u32 {
        now.wrapping_sub(self.counts.get(bucket).copied().unwrap_or(0))
    }
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram::new()
    }
}

/// The values of a histogram at one point in time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    counts: Vec<u32>,
    sum: u64,
}

impl Snapshot {
    fn add(&mut self, contribution: Contribution<'_>) {
        match contribution {
            Contribution::Of(other) => {
                let more = other.snapshot();
                self.sum = self.sum.wrapping_add(more.sum);
                for (sum, count) in self.counts.iter_mut().zip(more.counts) {
                    *sum = sum.wrapping_add(count);
                }
            }
            // May wrap, like the counts of buckets.
            Contribution::ZerosFor(other) => {
                self.counts[0] = self.counts[0].wrapping_add(other.count() as u32)
            }
        }
    }

    /// The values recorded since `before`, an earlier snapshot of the same histogram. Minimum and
    /// maximum have only the accuracy of a bucket.
    pub fn since(&self, before: &Snapshot) -> Interval {
        let counted_before = |bucket: usize| before.counts.get(bucket).copied().unwrap_or(0);
        let counts = self.counts.iter().enumerate();
        let counts = counts.map(|(bucket, now)| (bucket as u16, now.wrapping_sub(counted_before(bucket))));
        let counts = counts.filter(|(_, count)| *count > 0).collect();
        Interval::of(counts, self.sum.wrapping_sub(before.sum), 0, u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUE_MAX: u64 = (1 << buckets::VALUE_BITS) - 1;

    fn histogram_of(values: impl IntoIterator<Item = u64>) -> Histogram {
        let histogram = Histogram::new();
        values.into_iter().for_each(|value| histogram.record(value));
        histogram
    }

    #[test]
    fn an_interval_summarizes_its_values() {
        let histogram = histogram_of((1..=1000).map(|value| value * 7));
        assert_eq!((histogram.count(), histogram.sum()), (1000, 3_503_500));
        assert_eq!(histogram.interval().count(), 0, "the interval has not ended yet");
        histogram.roll();
        let interval = histogram.interval();
        assert_eq!((interval.count(), interval.min(), interval.max()), (1000, 7, 7000));
        assert_eq!(interval.mean(), 3503.5);
        for (share, exact) in [(0.25, 1750u64), (0.5, 3500), (0.99, 6930), (0.999, 6993), (1.0, 7000)] {
            let value = interval.quantile(share);
            assert!(value.abs_diff(exact) * 100 <= exact * 4, "{share}: {value}, not {exact}");
        }
        let below = interval.count_up_to(3500) as i64;
        assert!((below - 500).abs() < 20, "{below}");
        assert_eq!((interval.count_up_to(6), interval.count_up_to(u64::MAX)), (0, 1000));
    }

    #[test]
    fn the_next_interval_has_only_new_values() {
        let histogram = histogram_of([5, 5_000_000]);
        histogram.roll();
        histogram.record(80);
        histogram.roll();
        let interval = histogram.interval();
        assert_eq!((interval.count(), interval.min(), interval.max()), (1, 80, 80));
        assert_eq!((interval.quantile(0.5), interval.mean()), (80, 80.0));
        histogram.roll();
        assert_eq!(*histogram.interval(), Interval::default());
        assert_eq!(histogram.count(), 3, "since the start");
    }

    #[test]
    fn no_value_is_lost_between_threads_and_reads() {
        let histogram = histogram_of([]);
        let mut seen = 0;
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| (0..50_000).for_each(|value| histogram.record(value))))
                .collect();
            while threads.iter().any(|thread| !thread.is_finished()) {
                histogram.roll();
                seen += histogram.interval().count();
            }
        });
        histogram.roll();
        assert_eq!((seen + histogram.interval().count(), histogram.count()), (200_000, 200_000));
    }

    #[test]
    fn snapshots_do_not_end_intervals() {
        let histogram = histogram_of([5, 700]);
        let before = histogram.snapshot();
        assert_eq!(before.since(&Snapshot::default()).count(), 2);
        (1..=100).for_each(|value| histogram.record(value * 10));
        histogram.roll();
        let interval = histogram.snapshot().since(&before);
        assert_eq!(interval.count(), 100);
        assert!(interval.quantile(0.99).abs_diff(990) <= 40, "{}", interval.quantile(0.99));
        assert!(interval.min() <= 10 && interval.max() >= 1000);
        assert_eq!(histogram.interval().count(), 102, "snapshots do not change intervals");
        assert_eq!(histogram.snapshot().since(&histogram.snapshot()), Interval::default());
    }

    #[test]
    fn included_histograms_contribute() {
        let [queued, at_once] = [[5, 900], [10, 70]].map(histogram_of).map(Arc::new);
        let (all, waits) = (histogram_of([2000]), histogram_of([40]));
        let (first, second) = (queued.clone(), at_once.clone());
        all.include(move |visit| [&first, &second].into_iter().for_each(|one| visit(Contribution::Of(one))));
        let of = at_once.clone();
        waits.include(move |visit| visit(Contribution::ZerosFor(&of)));
        assert_eq!((all.count(), all.sum(), waits.count(), waits.sum()), (5, 2985, 3, 40));
        for one in [&*queued, &all, &*at_once, &waits] {
            one.roll();
        }
        let interval = all.interval();
        assert_eq!((interval.count(), interval.min(), interval.max()), (5, 5, 2000));
        assert_eq!((interval.quantile(0.2), interval.quantile(0.4), interval.mean()), (5, 10, 597.0));
        let interval = waits.interval();
        assert_eq!((interval.count(), interval.min(), interval.max()), (3, 0, 40));
        assert_eq!((interval.quantile(0.5), interval.count_up_to(39)), (0, 2));
        assert_eq!(waits.snapshot().since(&Snapshot::default()).count(), 3);
        assert_eq!(all.snapshot().since(&queued.snapshot()).count(), 3);
    }

    #[test]
    fn values_taken_over_are_reported_once() {
        let (all, ending) = (Arc::new(histogram_of([7])), histogram_of([100, 200]));
        [&*all, &ending].into_iter().for_each(Histogram::roll);
        let before = ending.snapshot();
        ending.record(3);
        all.take_over(&ending);
        assert_eq!((all.interval().count(), all.interval().max()), (3, 200), "as before");
        assert_eq!((all.count(), all.sum()), (4, 310));
        assert_eq!(all.snapshot().since(&before).count(), 2);
        all.record(9);
        all.roll();
        let interval = all.interval();
        assert_eq!((interval.count(), interval.min(), interval.max(), interval.mean()), (2, 3, 9, 6.0));
        assert_eq!(all.count(), 5);
    }

    #[test]
    fn repeated_values_are_recorded_like_others() {
        let (repeated, plain) = (Histogram::new(), Histogram::new());
        for value in [7, 7, 7, 0, 0, 900, 7, 900, 900, u64::MAX, u64::MAX] {
            repeated.record_likely_repeat(value, OwnArea::get());
            plain.record(value);
        }
        assert_eq!(repeated.snapshot(), plain.snapshot());
        [&repeated, &plain].into_iter().for_each(Histogram::roll);
        assert_eq!(repeated.interval(), plain.interval());
        // Equal to the previous value, in the next interval.
        repeated.record_likely_repeat(u64::MAX, OwnArea::get());
        repeated.record_likely_repeat(900, OwnArea::get());
        repeated.roll();
        repeated.record_likely_repeat(900, OwnArea::get());
        repeated.roll();
        let summary = || (repeated.interval().count(), repeated.interval().min(), repeated.interval().max());
        assert_eq!(summary(), (1, 900, 900));
        // Repeated before a different value comes, and absent in the interval after that.
        [900, 900, 7].into_iter().for_each(|value| repeated.record_likely_repeat(value, OwnArea::get()));
        repeated.roll();
        assert_eq!(summary(), (3, 7, 900));
        repeated.record_likely_repeat(7, OwnArea::get());
        repeated.roll();
        assert_eq!(summary(), (1, 7, 7));
        repeated.roll();
        assert_eq!(summary(), (0, 0, 0));
    }

    #[test]
    fn no_repeated_value_is_lost_between_threads_and_reads() {
        let histogram = histogram_of([]);
        let (mut count, mut sum, mut max) = (0, 0.0, 0);
        let mut read = || {
            histogram.roll();
            let interval = histogram.interval();
            count += interval.count();
            sum += interval.mean() * interval.count() as f64;
            max = max.max(interval.max());
        };
        std::thread::scope(|scope| {
            let record = |at: u64| histogram.record_likely_repeat(100 + at / 3 % 2, OwnArea::get());
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(move || (0..60_000).for_each(record))).collect();
            while threads.iter().any(|thread| !thread.is_finished()) {
                read();
            }
        });
        // The last read may have seen counts before their sum: that sum is included with the next
        // value.
        histogram.record(100);
        read();
        assert_eq!((count, sum.round(), max), (240_001, 24_120_100.0, 101));
        assert_eq!((histogram.count(), histogram.sum()), (240_001, 24_120_100));
    }

    #[test]
    fn a_sum_read_before_its_counts_is_reported_with_the_next_value() {
        let histogram = histogram_of([100]);
        histogram.roll();
        histogram.last_interval().sum -= 60;
        histogram.roll();
        assert_eq!(histogram.interval().count(), 0);
        histogram.record(40);
        histogram.roll();
        assert_eq!((histogram.interval().count(), histogram.interval().mean()), (1, 100.0));
    }

    #[test]
    fn too_great_a_value_is_the_greatest() {
        let histogram = histogram_of([u64::MAX, 0]);
        histogram.roll();
        assert_eq!((histogram.interval().min(), histogram.interval().max()), (0, VALUE_MAX));
    }
}
