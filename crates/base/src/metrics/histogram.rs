//! How values are spread, without a lock where they are noted.
//!
//! A histogram counts values by buckets that are a sixteenth of their value wide, so that what is told of it is wrong by
//! three percent at most; the smallest and the greatest are exact. Counts only grow. Who looks remembers those of his last
//! look: what came since is an [`Interval`], which HBase's `_min` to `_99.9th_percentile` are about.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::metrics::COUNTING;
use crate::metrics::shards::Shards;

/// A bucket is a power of two divided by two to this power.
const PARTS_BITS: u32 = 4;
const PARTS: u64 = 1 << PARTS_BITS;
/// Greater ones count as this: a terabyte, twelve days in microseconds.
const VALUE_MAX: u64 = (1 << 40) - 1;
const BUCKETS: usize = (40 - PARTS_BITS as usize + 1) << PARTS_BITS;

/// Values that are noted by many threads and looked at by few.
#[derive(Debug)]
pub struct Histogram {
    parts: Shards<Part>,
    seen: Mutex<Seen>,
}

/// What one thread noted.
#[derive(Debug)]
struct Part {
    // They may wrap: only differences are looked at.
    counts: [AtomicU32; BUCKETS],
    sum: AtomicU64,
    // Since the last look.
    min: AtomicU64,
    max: AtomicU64,
}

impl Default for Part {
    fn default() -> Part {
        Part {
            counts: [const { AtomicU32::new(0) }; BUCKETS],
            sum: AtomicU64::new(0),
            min: AtomicU64::new(u64::MAX),
            max: AtomicU64::new(0),
        }
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
        Histogram { parts: Shards::new(), seen: Mutex::default() }
    }

    /// Notes a value.
    #[inline]
    pub fn record(&self, value: u64) {
        self.record_many(value, 1);
    }

    /// Notes a value that there were `times` of; at least one.
    #[inline]
    pub fn record_many(&self, value: u64, times: u32) {
        if !COUNTING {
            return;
        }
        let part = self.parts.own();
        let value = value.min(VALUE_MAX);
        part.counts[bucket_of(value)].fetch_add(times, Relaxed);
        part.sum.fetch_add(value * u64::from(times), Relaxed);
        // Mostly neither is so, and a look is cheaper than a change.
        if value < part.min.load(Relaxed) {
            part.min.fetch_min(value, Relaxed);
        }
        if value > part.max.load(Relaxed) {
            part.max.fetch_max(value, Relaxed);
        }
    }

    /// How many values there were ever. Adds up buckets, so that noting a value need not count it twice.
    pub fn count(&self) -> u64 {
        let seen = self.seen();
        seen.count
            + self.counts().iter().enumerate().map(|(at, now)| u64::from(seen.since(at, *now))).sum::<u64>()
    }

    /// What was noted up to now, for who has intervals of his own; ends nobody's.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot { counts: self.counts(), sum: self.sum() }
    }

    /// Those of all threads together, by bucket.
    fn counts(&self) -> Vec<u32> {
        let mut counts = vec![0u32; BUCKETS];
        for part in self.parts.all() {
            for (sum, count) in counts.iter_mut().zip(&part.counts) {
                *sum = sum.wrapping_add(count.load(Relaxed));
            }
        }
        counts
    }

    /// All values ever, added up.
    pub fn sum(&self) -> u64 {
        self.parts.all().fold(0, |sum, part| sum.wrapping_add(part.sum.load(Relaxed)))
    }

    /// Ends an interval and begins the next one.
    pub fn roll(&self) {
        let mut seen = self.seen();
        let (mut sum, mut min, mut max) = (0u64, u64::MAX, 0);
        for part in self.parts.all() {
            min = min.min(part.min.swap(u64::MAX, Relaxed));
            max = max.max(part.max.swap(0, Relaxed));
            sum = sum.wrapping_add(part.sum.load(Relaxed));
        }
        let now = self.counts();
        let counts = now.iter().enumerate().map(|(bucket, now)| (bucket, seen.since(bucket, *now)));
        let counts: Vec<(u16, u32)> =
            counts.filter(|(_, count)| *count > 0).map(|(bucket, count)| (bucket as u16, count)).collect();
        let interval = Interval::of(counts, sum.wrapping_sub(seen.sum), min, max);
        let count = seen.count + interval.count();
        *seen = Seen { counts: now, count, sum, interval: Arc::new(interval) };
    }

    /// The interval that ended last.
    pub fn interval(&self) -> Arc<Interval> {
        self.seen().interval.clone()
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        // Numbers: whole after any panic.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
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

/// The values noted between two looks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    // By bucket, those with values.
    counts: Vec<(u16, u32)>,
    count: u64,
    sum: u64,
    min: u64,
    max: u64,
}

impl Interval {
    /// A value that is noted while somebody looks may be in the counts and not yet in the rest, or the other way round.
    fn of(counts: Vec<(u16, u32)>, sum: u64, min: u64, max: u64) -> Interval {
        let (Some(first), Some(last)) = (counts.first(), counts.last()) else { return Interval::default() };
        let (least, greatest) = (lowest_of(first.0.into()), highest_of(last.0.into()));
        let count = counts.iter().map(|(_, count)| u64::from(*count)).sum();
        let (min, max) = (min.clamp(least, greatest), max.clamp(least, greatest));
        Interval { counts, count, sum, min: min.min(max), max }
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The smallest; 0 if there were none.
    pub fn min(&self) -> u64 {
        self.min
    }

    /// The greatest; 0 if there were none.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// Their mean; 0 if there were none.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// The value that `share` of them (0 to 1) do not exceed, within three percent; 0 if there were none.
    pub fn quantile(&self, share: f64) -> u64 {
        let place = (share.clamp(0.0, 1.0) * self.count as f64).ceil().max(1.0) as u64;
        let mut passed = 0;
        for (bucket, count) in &self.counts {
            passed += u64::from(*count);
            if passed >= place {
                let bucket = usize::from(*bucket);
                let middle = lowest_of(bucket).midpoint(highest_of(bucket));
                return middle.clamp(self.min, self.max);
            }
        }
        self.max
    }

    /// How many do not exceed `value`, by the middles of their buckets.
    pub fn count_up_to(&self, value: u64) -> u64 {
        let up_to = self.counts.iter().take_while(|(bucket, _)| {
            let bucket = usize::from(*bucket);
            lowest_of(bucket).midpoint(highest_of(bucket)) <= value
        });
        up_to.map(|(_, count)| u64::from(*count)).sum()
    }
}

fn bucket_of(value: u64) -> usize {
    if value < PARTS {
        return value as usize;
    }
    let power = value.ilog2();
    let part = (value >> (power - PARTS_BITS)) & (PARTS - 1);
    (u64::from(power - PARTS_BITS + 1) << PARTS_BITS | part) as usize
}

/// The smallest value of a bucket.
fn lowest_of(bucket: usize) -> u64 {
    let (power, part) = (bucket as u64 >> PARTS_BITS, bucket as u64 & (PARTS - 1));
    match power {
        0 => part,
        _ => (PARTS | part) << (power - 1),
    }
}

/// The greatest value of a bucket.
fn highest_of(bucket: usize) -> u64 {
    lowest_of(bucket + 1) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_has_a_bucket_that_is_narrow() {
        assert_eq!(bucket_of(VALUE_MAX), BUCKETS - 1);
        for bucket in 0..BUCKETS {
            let (low, high) = (lowest_of(bucket), highest_of(bucket));
            assert_eq!((bucket_of(low), bucket_of(high)), (bucket, bucket));
            assert!(high - low <= low / 16, "{low} to {high}");
        }
    }

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
    fn too_great_a_value_is_the_greatest() {
        let histogram = histogram_of([u64::MAX, 0]);
        histogram.roll();
        assert_eq!((histogram.interval().min(), histogram.interval().max()), (0, VALUE_MAX));
    }
}
