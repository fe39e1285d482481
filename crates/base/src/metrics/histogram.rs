//! How values are spread, without a lock where they are noted.
//!
//! A histogram counts values by buckets that are a sixteenth of their value wide, so that what is told of it is wrong by
//! three percent at most; the smallest and the greatest are exact. Counts only grow. Who looks remembers those of his last
//! look: what came since is an [`Interval`], which HBase's `_min` to `_99.9th_percentile` are about.
//!
//! What belongs to several histograms is noted in one, of which the others tell ([`Histogram::tells_of`]).

mod buckets;
mod interval;
mod part;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::metrics::COUNTING;
use crate::metrics::areas::{OwnArea, Place};
use buckets::{BUCKETS, bucket_of};
pub use interval::Interval;
use part::Part;

/// Values that are noted by many threads and looked at by few.
pub struct Histogram {
    parts: Place<Part>,
    seen: Mutex<Seen>,
    others: OnceLock<Others>,
}

/// Goes through what a histogram tells of besides its own values.
type Others = Box<dyn Fn(&mut dyn FnMut(Told<'_>)) + Send + Sync>;

/// What a histogram tells of besides its own values.
#[derive(Clone, Copy, Debug)]
pub enum Told<'a> {
    /// All values of another one.
    Of(&'a Histogram),
    /// For each value of another one a zero.
    ZerosFor(&'a Histogram),
}

/// A value as histograms note it: for who notes it in several, and finds its bucket once.
#[derive(Clone, Copy, Debug)]
pub struct Value {
    value: u64,
    bucket: usize,
}

impl Value {
    /// Any value.
    #[inline]
    pub fn of(value: u64) -> Value {
        Value { value, bucket: bucket_of(value) }
    }
}

/// What was there at the last look.
#[derive(Debug, Default)]
struct Seen {
    counts: Vec<u32>,
    // All of them: those of a bucket may have wrapped.
    count: u64,
    sum: u64,
    interval: Arc<Interval>,
}

impl Histogram {
    /// A histogram without values. It takes no memory to speak of before the first.
    pub fn new() -> Histogram {
        Histogram { parts: Place::new(), seen: Mutex::default(), others: OnceLock::new() }
    }

    /// From now on tells also of what `others` goes through: values that would be noted here too are noted once, where they are
    /// needed apart. Whose values they are rolls them, in the same pass as this one is rolled.
    ///
    /// # Panics
    /// If it was told that before.
    pub fn tells_of(&self, others: impl Fn(&mut dyn FnMut(Told<'_>)) + Send + Sync + 'static) {
        assert!(self.others.set(Box::new(others)).is_ok(), "told of once");
    }

    /// Notes a value.
    #[inline]
    pub fn record(&self, value: u64) {
        self.record_many(value, 1);
    }

    /// Notes a value that there were `times` of; at least one.
    #[inline]
    pub fn record_many(&self, value: u64, times: u32) {
        if COUNTING {
            self.parts.own().note(Value::of(value), times);
        }
    }

    /// Notes a value, for who has the thread's area at hand.
    #[inline]
    pub fn note(&self, value: Value, area: OwnArea) {
        if COUNTING {
            self.parts.within(area).note(value, 1);
        }
    }

    /// Notes a value of a kind that is often the same as the one before, for less than [`note`](Self::note) takes then.
    #[inline]
    pub fn note_alike(&self, value: u64, area: OwnArea) {
        if COUNTING {
            self.parts.within(area).note_alike(value);
        }
    }

    /// Takes over the values of one that ends, and of which this one has told so far.
    pub fn take_over(&self, other: &Histogram) {
        if !COUNTING {
            return;
        }
        // Both as of one moment, for what was told before is not to be told again.
        let (mut seen, of_other) = (self.seen(), other.seen());
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

    /// How many values there were ever. Adds up buckets, so that noting a value need not count it twice.
    pub fn count(&self) -> u64 {
        let mut count = self.own_count();
        self.each_other(|(Told::Of(other) | Told::ZerosFor(other))| count += other.count());
        count
    }

    fn own_count(&self) -> u64 {
        let seen = self.seen();
        seen.count
            + self.counts().iter().enumerate().map(|(at, now)| u64::from(seen.since(at, *now))).sum::<u64>()
    }

    /// What was noted up to now, for who has intervals of his own; ends nobody's.
    pub fn snapshot(&self) -> Snapshot {
        let mut all = Snapshot { counts: self.counts(), sum: self.own_sum() };
        self.each_other(|told| all.add(told));
        all
    }

    /// Those of all threads together, by bucket.
    fn counts(&self) -> Vec<u32> {
        let mut counts = vec![0u32; BUCKETS];
        for part in self.used_parts() {
            for (sum, count) in counts.iter_mut().zip(part.counts()) {
                *sum = sum.wrapping_add(count);
            }
        }
        counts
    }

    /// All values ever, added up.
    pub fn sum(&self) -> u64 {
        let mut sum = self.own_sum();
        self.each_other(|told| {
            if let Told::Of(other) = told {
                sum = sum.wrapping_add(other.sum());
            }
        });
        sum
    }

    fn own_sum(&self) -> u64 {
        self.used_parts().fold(0, |sum, part| sum.wrapping_add(part.sum()))
    }

    /// Ends an interval and begins the next one.
    pub fn roll(&self) {
        let mut seen = self.seen();
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
        // A thread may note values after the sum was read and before its counts are, so sum and counts may be apart. An
        // interval without counts has no place for a sum: the next one with values has it.
        let sum = if counts.is_empty() { seen.sum } else { sum };
        let interval = Interval::of(counts, sum.wrapping_sub(seen.sum), min, max);
        let count = seen.count + interval.count();
        *seen = Seen { counts: now, count, sum, interval: Arc::new(interval) };
    }

    /// The interval that ended last.
    pub fn interval(&self) -> Arc<Interval> {
        let mut all = self.seen().interval.clone();
        self.each_other(|told| {
            let more = match told {
                Told::Of(other) => other.interval(),
                Told::ZerosFor(other) => Arc::new(Interval::of_zeros(other.interval().count())),
            };
            if more.count() > 0 {
                all = Arc::new(all.with(&more));
            }
        });
        all
    }

    fn each_other(&self, mut visit: impl FnMut(Told<'_>)) {
        if let Some(others) = self.others.get() {
            others(&mut visit);
        }
    }

    /// Those of threads that noted anything: who looks need not go through the others.
    fn used_parts(&self) -> impl Iterator<Item = &Part> {
        self.parts.all().filter(|part| part.is_used())
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        // Numbers: whole after any panic.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Histogram").field("count", &self.count()).finish_non_exhaustive()
    }
}

impl Seen {
    /// What came to a bucket that has `now`.
    fn since(&self, bucket: usize, now: u32) -> u32 {
        now.wrapping_sub(self.counts.get(bucket).copied().unwrap_or(0))
    }
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram::new()
    }
}

/// What a histogram had at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    counts: Vec<u32>,
    sum: u64,
}

impl Snapshot {
    fn add(&mut self, told: Told<'_>) {
        match told {
            Told::Of(other) => {
                let more = other.snapshot();
                self.sum = self.sum.wrapping_add(more.sum);
                for (sum, count) in self.counts.iter_mut().zip(more.counts) {
                    *sum = sum.wrapping_add(count);
                }
            }
            // As the counts of buckets it may wrap.
            Told::ZerosFor(other) => self.counts[0] = self.counts[0].wrapping_add(other.count() as u32),
        }
    }

    /// The values noted since `before`, an earlier snapshot of the same histogram. Its smallest and greatest are known as
    /// exactly as all others.
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
    fn an_interval_tells_of_its_values() {
        let histogram = histogram_of((1..=1000).map(|value| value * 7));
        assert_eq!((histogram.count(), histogram.sum()), (1000, 3_503_500));
        assert_eq!(histogram.interval().count(), 0, "it did not end yet");
        histogram.roll();
        let interval = histogram.interval();
        assert_eq!((interval.count(), interval.min(), interval.max()), (1000, 7, 7000));
        assert_eq!(interval.mean(), 3503.5);
        for (share, exact) in [(0.25, 1750u64), (0.5, 3500), (0.99, 6930), (0.999, 6993), (1.0, 7000)] {
            let told = interval.quantile(share);
            assert!(told.abs_diff(exact) * 100 <= exact * 4, "{share}: {told}, not {exact}");
        }
        let below = interval.count_up_to(3500) as i64;
        assert!((below - 500).abs() < 20, "{below}");
        assert_eq!((interval.count_up_to(6), interval.count_up_to(u64::MAX)), (0, 1000));
    }

    #[test]
    fn the_next_interval_has_only_what_came_since() {
        let histogram = histogram_of([5, 5_000_000]);
        histogram.roll();
        histogram.record(80);
        histogram.roll();
        let interval = histogram.interval();
        assert_eq!((interval.count(), interval.min(), interval.max()), (1, 80, 80));
        assert_eq!((interval.quantile(0.5), interval.mean()), (80, 80.0));
        histogram.roll();
        assert_eq!(*histogram.interval(), Interval::default());
        assert_eq!(histogram.count(), 3, "ever");
    }

    #[test]
    fn nothing_is_lost_between_threads_and_looks() {
        let histogram = histogram_of([]);
        let mut seen = 0;
        std::thread::scope(|scope| {
            let noting: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| (0..50_000).for_each(|value| histogram.record(value))))
                .collect();
            while noting.iter().any(|thread| !thread.is_finished()) {
                histogram.roll();
                seen += histogram.interval().count();
            }
        });
        histogram.roll();
        assert_eq!((seen + histogram.interval().count(), histogram.count()), (200_000, 200_000));
    }

    #[test]
    fn who_has_intervals_of_his_own_ends_none_of_others() {
        let histogram = histogram_of([5, 700]);
        let before = histogram.snapshot();
        assert_eq!(before.since(&Snapshot::default()).count(), 2);
        (1..=100).for_each(|value| histogram.record(value * 10));
        histogram.roll();
        let interval = histogram.snapshot().since(&before);
        assert_eq!(interval.count(), 100);
        assert!(interval.quantile(0.99).abs_diff(990) <= 40, "{}", interval.quantile(0.99));
        assert!(interval.min() <= 10 && interval.max() >= 1000);
        assert_eq!(histogram.interval().count(), 102, "as if nobody had looked");
        assert_eq!(histogram.snapshot().since(&histogram.snapshot()), Interval::default());
    }

    #[test]
    fn what_others_note_is_told_of_too() {
        let [queued, at_once] = [[5, 900], [10, 70]].map(histogram_of).map(Arc::new);
        let (all, waits) = (histogram_of([2000]), histogram_of([40]));
        let (first, second) = (queued.clone(), at_once.clone());
        all.tells_of(move |tell| [&first, &second].into_iter().for_each(|one| tell(Told::Of(one))));
        let of = at_once.clone();
        waits.tells_of(move |tell| tell(Told::ZerosFor(&of)));
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
    fn who_takes_over_values_tells_none_of_them_twice() {
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
    fn values_that_are_alike_are_noted_as_any() {
        let (alike, plain) = (Histogram::new(), Histogram::new());
        for value in [7, 7, 7, 0, 0, 900, 7, 900, 900, u64::MAX, u64::MAX] {
            alike.note_alike(value, OwnArea::get());
            plain.record(value);
        }
        assert_eq!(alike.snapshot(), plain.snapshot());
        [&alike, &plain].into_iter().for_each(Histogram::roll);
        assert_eq!(alike.interval(), plain.interval());
        // The same as before, in the next interval.
        alike.note_alike(u64::MAX, OwnArea::get());
        alike.note_alike(900, OwnArea::get());
        alike.roll();
        alike.note_alike(900, OwnArea::get());
        alike.roll();
        let told = || (alike.interval().count(), alike.interval().min(), alike.interval().max());
        assert_eq!(told(), (1, 900, 900));
        // It came again before another did, and not at all in the interval behind that.
        [900, 900, 7].into_iter().for_each(|value| alike.note_alike(value, OwnArea::get()));
        alike.roll();
        assert_eq!(told(), (3, 7, 900));
        alike.note_alike(7, OwnArea::get());
        alike.roll();
        assert_eq!(told(), (1, 7, 7));
        alike.roll();
        assert_eq!(told(), (0, 0, 0));
    }

    #[test]
    fn nothing_of_what_is_alike_is_lost_between_threads_and_looks() {
        let histogram = histogram_of([]);
        let (mut count, mut sum, mut max) = (0, 0.0, 0);
        let mut look = || {
            histogram.roll();
            let interval = histogram.interval();
            count += interval.count();
            sum += interval.mean() * interval.count() as f64;
            max = max.max(interval.max());
        };
        std::thread::scope(|scope| {
            let note = |at: u64| histogram.note_alike(100 + at / 3 % 2, OwnArea::get());
            let noting: Vec<_> = (0..4).map(|_| scope.spawn(move || (0..60_000).for_each(note))).collect();
            while noting.iter().any(|thread| !thread.is_finished()) {
                look();
            }
        });
        // The last look may have seen counts before their sum: that sum comes with the next value.
        histogram.record(100);
        look();
        assert_eq!((count, sum.round(), max), (240_001, 24_120_100.0, 101));
        assert_eq!((histogram.count(), histogram.sum()), (240_001, 24_120_100));
    }

    #[test]
    fn a_sum_that_is_seen_before_its_counts_comes_with_the_next_value() {
        let histogram = histogram_of([100]);
        histogram.roll();
        histogram.seen().sum -= 60;
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
