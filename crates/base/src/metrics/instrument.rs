//! Instruments as attributes: the attributes of each, with their name suffixes.

use std::time::Duration;

use crate::metrics::{
    COUNTING, Counter, Declared, Histogram, Interval, Kind, Meter, OwnArea, Scope, TimeTotals, Value,
};
use crate::spent::nanos;

/// A field of [`instruments`](crate::instruments).
pub trait Instrument {
    /// The kind it is declared as.
    const KIND: Kind;
    /// A new instrument; `now` is a time on the monotonic clock.
    fn begin(now: Duration) -> Self;
    /// Shows its values.
    fn show(&self, declared: &Declared, scope: &mut Scope<'_>);
    /// Ends the current interval.
    fn roll(&self) {}
}

impl Instrument for Counter {
    const KIND: Kind = Kind::Counter;

    fn begin(_: Duration) -> Counter {
        Counter::new()
    }

    fn show(&self, declared: &Declared, scope: &mut Scope<'_>) {
        scope.counter(declared, "", self.get());
    }
}

impl Instrument for Meter {
    const KIND: Kind = Kind::Meter;

    fn begin(now: Duration) -> Meter {
        Meter::new(now)
    }

    fn show(&self, declared: &Declared, scope: &mut Scope<'_>) {
        let rates = self.rates(scope.now());
        scope.counter(declared, "_count", self.count());
        scope.gauge(declared, "_mean_rate", rates.mean);
        scope.gauge(declared, "_1min_rate", rates.one_minute);
        scope.gauge(declared, "_5min_rate", rates.five_minutes);
        scope.gauge(declared, "_15min_rate", rates.fifteen_minutes);
    }
}

impl Instrument for Histogram {
    const KIND: Kind = Kind::Histogram;

    fn begin(_: Duration) -> Histogram {
        Histogram::new()
    }

    fn show(&self, declared: &Declared, scope: &mut Scope<'_>) {
        show_interval(declared, scope, self.count(), &self.interval(), 1);
    }

    fn roll(&self) {
        Histogram::roll(self);
    }
}

/// Times, recorded in microseconds and shown in milliseconds, as in HBase.
#[derive(Debug, Default)]
pub struct Times(Histogram);

impl Times {
    /// Records a duration.
    #[inline]
    pub fn record(&self, time: Duration) {
        self.record_many(time, 1);
    }

    /// Records `times` equal durations; `times` must be at least one.
    #[inline]
    pub fn record_many(&self, time: Duration, times: u32) {
        // Not as_micros, which uses 128 bits.
        let micros = time.as_secs().wrapping_mul(1_000_000).wrapping_add(u64::from(time.subsec_micros()));
        self.0.record_many(micros, times);
    }

    /// Records a duration, for a caller that already has the thread's area.
    #[inline]
    pub fn record_in(&self, duration: RecordedDuration, area: OwnArea) {
        self.0.record_in(duration.micros, area);
    }

    /// The times in microseconds.
    pub fn micros(&self) -> &Histogram {
        &self.0
    }
}

/// A duration, for callers that record it in several histograms.
#[derive(Clone, Copy, Debug)]
pub struct RecordedDuration {
    nanos: u64,
    micros: Value,
}

impl RecordedDuration {
    /// A duration of `nanos` nanoseconds.
    #[inline]
    pub fn of_nanos(nanos: u64) -> RecordedDuration {
        RecordedDuration { nanos, micros: Value::of(nanos / MICROSECOND_NANOS) }
    }

    /// The time between two readings of a clock; zero if `ended` is not after `begun`.
    #[inline]
    pub fn between(begun: Duration, ended: Duration) -> RecordedDuration {
        RecordedDuration::of_nanos(nanos(ended).saturating_sub(nanos(begun)))
    }

    /// The duration in nanoseconds.
    #[inline]
    pub fn nanos(self) -> u64 {
        self.nanos
    }
}

/// Nanoseconds per microsecond.
const MICROSECOND_NANOS: u64 = 1000;
/// Microseconds per millisecond.
const MILLISECOND: u64 = 1000;

impl Instrument for Times {
    const KIND: Kind = Kind::Times;

    fn begin(_: Duration) -> Times {
        Times::default()
    }

    fn show(&self, declared: &Declared, scope: &mut Scope<'_>) {
        let (interval, count) = (self.0.interval(), self.0.count());
        show_interval(declared, scope, count, &interval, MILLISECOND);
        scope.times(declared, TimeTotals { count, sum_us: self.0.sum() }, &interval);
        show_ranges(declared, scope, &interval, &TIME_RANGES, MILLISECOND);
    }

    fn roll(&self) {
        self.0.roll();
    }
}

/// Sizes in bytes.
#[derive(Debug, Default)]
pub struct Sizes(Histogram);

impl Sizes {
    /// Records a size.
    #[inline]
    pub fn record(&self, bytes: u64) {
        if COUNTING {
            self.record_in(bytes, OwnArea::get());
        }
    }

    /// Records a size, for a caller that already has the thread's area.
    #[inline]
    pub fn record_in(&self, bytes: u64, area: OwnArea) {
        // Repeated requests have equal sizes.
        self.0.record_likely_repeat(bytes, area);
    }

    /// The sizes in bytes.
    pub fn bytes(&self) -> &Histogram {
        &self.0
    }
}

impl Instrument for Sizes {
    const KIND: Kind = Kind::Sizes;

    fn begin(_: Duration) -> Sizes {
        Sizes::default()
    }

    fn show(&self, declared: &Declared, scope: &mut Scope<'_>) {
        let interval = self.0.interval();
        show_interval(declared, scope, self.0.count(), &interval, 1);
        show_ranges(declared, scope, &interval, &SIZE_RANGES, 1);
    }

    fn roll(&self) {
        self.0.roll();
    }
}

/// The percentiles that HBase shows.
const PERCENTILES: [(&str, f64); 8] = [
    ("_25th_percentile", 0.25),
    ("_median", 0.5),
    ("_75th_percentile", 0.75),
    ("_90th_percentile", 0.9),
    ("_95th_percentile", 0.95),
    ("_98th_percentile", 0.98),
    ("_99th_percentile", 0.99),
    ("_99.9th_percentile", 0.999),
];

/// Shows values in whole multiples of `unit`.
fn show_interval(declared: &Declared, scope: &mut Scope<'_>, count: u64, interval: &Interval, unit: u64) {
    scope.counter(declared, "_num_ops", count);
    scope.gauge(declared, "_min", interval.min() / unit);
    scope.gauge(declared, "_max", interval.max() / unit);
    scope.gauge(declared, "_mean", interval.mean() as u64 / unit);
    for (suffix, share) in PERCENTILES {
        scope.gauge(declared, suffix, interval.quantile(share) / unit);
    }
}

/// Inclusive end of a range in units (`None`: open), and its name suffix.
type Range = (Option<u64>, &'static str);

/// HBase's ranges of milliseconds.
const TIME_RANGES: [Range; 15] = [
    (Some(1), "_TimeRangeCount_0-1"),
    (Some(3), "_TimeRangeCount_1-3"),
    (Some(10), "_TimeRangeCount_3-10"),
    (Some(30), "_TimeRangeCount_10-30"),
    (Some(100), "_TimeRangeCount_30-100"),
    (Some(300), "_TimeRangeCount_100-300"),
    (Some(1000), "_TimeRangeCount_300-1000"),
    (Some(3000), "_TimeRangeCount_1000-3000"),
    (Some(10_000), "_TimeRangeCount_3000-10000"),
    (Some(30_000), "_TimeRangeCount_10000-30000"),
    (Some(60_000), "_TimeRangeCount_30000-60000"),
    (Some(120_000), "_TimeRangeCount_60000-120000"),
    (Some(300_000), "_TimeRangeCount_120000-300000"),
    (Some(600_000), "_TimeRangeCount_300000-600000"),
    (None, "_TimeRangeCount_600000-inf"),
];

/// HBase's ranges of bytes.
const SIZE_RANGES: [Range; 9] = [
    (Some(10), "_SizeRangeCount_0-10"),
    (Some(100), "_SizeRangeCount_10-100"),
    (Some(1000), "_SizeRangeCount_100-1000"),
    (Some(10_000), "_SizeRangeCount_1000-10000"),
    (Some(100_000), "_SizeRangeCount_10000-100000"),
    (Some(1_000_000), "_SizeRangeCount_100000-1000000"),
    (Some(10_000_000), "_SizeRangeCount_1000000-10000000"),
    (Some(100_000_000), "_SizeRangeCount_10000000-100000000"),
    (None, "_SizeRangeCount_100000000-inf"),
];

/// Shows the non-empty ranges. HBase's values are whole units, rounded down, so a range includes
/// all values below the next unit.
fn show_ranges(
    declared: &Declared,
    scope: &mut Scope<'_>,
    interval: &Interval,
    ranges: &'static [Range],
    unit: u64,
) {
    let mut before = 0;
    for (end, suffix) in ranges {
        let count = end.map_or(interval.count(), |end| interval.count_up_to((end + 1) * unit - 1));
        if count > before {
            scope.gauge(declared, suffix, count - before);
        }
        before = count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Unit;
    use crate::metrics::testing::Shown;

    fn declared(kind: Kind) -> Declared {
        Declared { bean: "B", name: "Get", kind, unit: Unit::Count, help: "" }
    }

    fn shown<I: Instrument>(instrument: &I) -> Shown {
        instrument.roll();
        let mut shown = Shown::default();
        instrument.show(&declared(I::KIND), &mut Scope::of(Duration::from_secs(10), &mut shown));
        shown
    }

    #[test]
    fn times_are_shown_in_milliseconds_and_ranges() {
        let times = Times::begin(Duration::ZERO);
        // 0, 1 and 1 milliseconds when rounded as in HBase, then 2 and 700,000.
        [0, 1000, 1900, 2100, 700_000_000]
            .iter()
            .for_each(|micros| times.record(Duration::from_micros(*micros)));
        let shown = shown(&times);
        assert_eq!(shown.of("Get_num_ops"), Some("5"));
        assert_eq!((shown.of("Get_min"), shown.of("Get_max")), (Some("0"), Some("700000")));
        assert_eq!((shown.of("Get_median"), shown.of("Get_mean")), (Some("1"), Some("140001")));
        assert_eq!(shown.of("Get_TimeRangeCount_0-1"), Some("3"));
        assert_eq!(shown.of("Get_TimeRangeCount_1-3"), Some("1"));
        assert_eq!(shown.of("Get_TimeRangeCount_600000-inf"), Some("1"));
        assert_eq!(shown.names().filter(|name| name.contains("Range")).count(), 3, "no empty ranges");
    }

    #[test]
    fn sizes_have_ranges_of_their_own() {
        let sizes = Sizes::begin(Duration::ZERO);
        [0, 10, 11, 5000, 200_000_000].iter().for_each(|bytes| sizes.record(*bytes));
        let shown = shown(&sizes);
        assert_eq!(shown.of("Get_SizeRangeCount_0-10"), Some("2"));
        assert_eq!(shown.of("Get_SizeRangeCount_10-100"), Some("1"));
        assert_eq!(shown.of("Get_SizeRangeCount_1000-10000"), Some("1"));
        assert_eq!(shown.of("Get_SizeRangeCount_100000000-inf"), Some("1"));
    }

    #[test]
    fn a_meter_shows_its_rates() {
        let meter = Meter::begin(Duration::ZERO);
        meter.set_total(50);
        let shown = shown(&meter);
        assert_eq!((shown.of("Get_count"), shown.of("Get_mean_rate")), (Some("50"), Some("5.0")));
        assert_eq!(shown.of("Get_15min_rate"), Some("5.0"));
    }
}
