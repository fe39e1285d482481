//! The last hour of a process, in memory: a few time series in a ring of fixed size.
//!
//! A sampler passes the time and one value per series once every period ([`History::record`]).
//! Readers get a snapshot of all series ([`History::window`]). Invariants:
//!
//! * memory is allocated once: four bytes per value;
//! * a value is stored at the time of its sample. Periods without a sample are gaps, and so are
//!   values that could not be measured;
//! * a late sample leaves no gap: a sample that is one or two periods late also fills the missed
//!   periods.
//!
//! Elsewhere: the choice of the sampled metrics, and charts.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Samples retained: one hour at one sample per ten seconds.
pub const SAMPLES: usize = 360;
/// Missed periods that a late sample fills in addition to its own.
const LATE_PERIODS_MAX: u64 = 2;
/// If the wall clock runs ahead of the monotonic clock by more than this, the machine has slept.
const DRIFT_MAX: Duration = Duration::from_secs(2);

/// Unit of a series' values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A plain count.
    Count,
    /// Events per second.
    PerSecond,
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
    /// Microseconds.
    Microseconds,
    /// Percent.
    Percent,
    /// CPU cores in use.
    Cores,
}

impl Unit {
    /// The unit's name in machine-readable output.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Count => "count",
            Unit::PerSecond => "per second",
            Unit::Bytes => "bytes",
            Unit::BytesPerSecond => "bytes per second",
            Unit::Microseconds => "microseconds",
            Unit::Percent => "percent",
            Unit::Cores => "cores",
        }
    }
}

/// Declaration of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Series {
    /// Unique name, used for look-ups.
    pub name: &'static str,
    /// Unit of the values.
    pub unit: Unit,
    /// Human-readable description.
    pub help: &'static str,
}

/// A point in time on both clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Milliseconds since the Unix epoch; may jump.
    pub wall_ms: u64,
    /// Time since an arbitrary start; does not advance while the machine sleeps.
    pub monotonic: Duration,
}

impl Moment {
    /// The current time of `clock`.
    pub fn of(clock: &dyn crate::env::Clock) -> Moment {
        Moment { wall_ms: clock.now_ms(), monotonic: clock.monotonic() }
    }
}

/// The ring of samples; see the module's documentation.
pub struct History {
    series: Vec<Series>,
    period: Duration,
    ring: Mutex<Ring>,
}

struct Ring {
    // The series in sequence, each indexed by slot modulo SAMPLES; NaN marks a gap.
    values: Vec<f32>,
    // The slot and the time of the last sample.
    last: Option<(u64, Moment)>,
    // Total sleep of the machine, which the monotonic clock does not count.
    suspended: Duration,
}

impl History {
    /// An empty history with one sample per `period`.
    ///
    /// # Panics
    /// If `period` is zero.
    pub fn new(series: Vec<Series>, period: Duration) -> History {
        assert!(!period.is_zero(), "the sample period is zero");
        let values = vec![f32::NAN; series.len() * SAMPLES];
        History { series, period, ring: Mutex::new(Ring { values, last: None, suspended: Duration::ZERO }) }
    }

    /// The series, in the order of the values in [`History::record`].
    pub fn series(&self) -> &[Series] {
        &self.series
    }

    /// Time between two samples.
    pub fn period(&self) -> Duration {
        self.period
    }

    /// Time from `now` until the next sample is due.
    pub fn until_next(&self, now: Moment) -> Duration {
        let asleep = self.ring().suspended;
        let into = (now.monotonic + asleep).as_nanos() % self.period.as_nanos();
        self.period - Duration::from_nanos(u64::try_from(into).unwrap_or(0))
    }

    /// Stores the values of `now`, one per series; `None` is a gap. A second sample in the same
    /// period replaces the first.
    ///
    /// # Panics
    /// If the number of values differs from the number of series.
    pub fn record(&self, now: Moment, values: &[Option<f64>]) {
        assert_eq!(values.len(), self.series.len(), "one value per series");
        let mut ring = self.ring();
        ring.detect_sleep(now);
        let slot = ring.slot_of(now, self.period);
        let first = match ring.last {
            Some((last, _)) if slot <= last => slot,
            Some((last, _)) => {
                let missed = slot - last - 1;
                ring.clear(last + 1, slot);
                if missed <= LATE_PERIODS_MAX { last + 1 } else { slot }
            }
            None => slot,
        };
        for at in first..=slot {
            for (of, value) in values.iter().enumerate() {
                let value = value.filter(|value| value.is_finite()).map_or(f32::NAN, |value| value as f32);
                ring.values[value_index(of, at)] = value;
            }
        }
        ring.last = Some((slot, now));
    }

    /// A snapshot of all series at `now`.
    pub fn window(&self, now: Moment) -> Window {
        let ring = self.ring();
        let (end, end_ms) = match ring.last {
            None => (0, now.wall_ms),
            Some((last, at)) => {
                // The current slot has no sample yet, which is not a gap.
                let end = ring.slot_of(now, self.period).saturating_sub(1).max(last);
                (end, at.wall_ms + (end - last) * self.period.as_millis() as u64)
            }
        };
        let last = ring.last.map_or(0, |(last, _)| last);
        let value = |of: usize, back: usize| match end.checked_sub(back as u64) {
            // Slots older than the ring's length, counted from the last sample, have been
            // overwritten.
            Some(slot) if slot <= last && last - slot < SAMPLES as u64 => ring.values[value_index(of, slot)],
            _ => f32::NAN,
        };
        let column = |of| (0..SAMPLES).rev().map(|back| value(of, back)).collect();
        let columns = (0..self.series.len()).map(column).collect();
        Window { series: self.series.clone(), period: self.period, end_ms, columns }
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        // The ring holds only numbers, so it is valid after any panic.
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ring {
    /// Detects sleep of the machine, which stops the monotonic clock but not the wall clock.
    fn detect_sleep(&mut self, now: Moment) {
        let Some((_, last)) = self.last else { return };
        let by_wall = Duration::from_millis(now.wall_ms.saturating_sub(last.wall_ms));
        let unseen = by_wall.saturating_sub(now.monotonic.saturating_sub(last.monotonic));
        if unseen > DRIFT_MAX {
            self.suspended += unseen;
        }
    }

    fn slot_of(&self, now: Moment, period: Duration) -> u64 {
        let slot = (now.monotonic + self.suspended).as_nanos() / period.as_nanos();
        u64::try_from(slot).unwrap_or(u64::MAX)
    }

    /// Marks the slots in `first..end` as gaps.
    fn clear(&mut self, first: u64, end: u64) {
        let first = first.max(end.saturating_sub(SAMPLES as u64));
        let series = self.values.len() / SAMPLES;
        for slot in first..end {
            (0..series).for_each(|of| self.values[value_index(of, slot)] = f32::NAN);
        }
    }
}

fn value_index(series: usize, slot: u64) -> usize {
    series * SAMPLES + (slot % SAMPLES as u64) as usize
}

/// A snapshot of the series: [`SAMPLES`] values each, the oldest first.
pub struct Window {
    series: Vec<Series>,
    /// Time between two values.
    pub period: Duration,
    /// Time of the last value, in milliseconds since the Unix epoch.
    pub end_ms: u64,
    columns: Vec<Vec<f32>>,
}

impl Window {
    /// Each series with its values; NaN marks a gap.
    pub fn all(&self) -> impl Iterator<Item = (&Series, &[f32])> {
        self.series.iter().zip(self.columns.iter().map(Vec::as_slice))
    }

    /// The values of a series, or an empty slice if the series does not exist.
    pub fn of(&self, name: &str) -> &[f32] {
        self.all().find(|(series, _)| series.name == name).map_or(&[], |(_, values)| values)
    }

    /// The last value of a series, unless it is a gap.
    pub fn last(&self, name: &str) -> Option<f64> {
        self.of(name).last().filter(|value| !value.is_nan()).map(|value| f64::from(*value))
    }
}

/// Computes the growth rate of a counter from one sample to the next.
#[derive(Debug, Default)]
pub struct Rate {
    before: Option<(Duration, u64)>,
}

impl Rate {
    /// Growth per second since the last call, for a counter whose value is `count`. Returns `None`
    /// on the first call and when the counter was reset.
    pub fn at(&mut self, now: Moment, count: u64) -> Option<f64> {
        let (then, before) = self.before.replace((now.monotonic, count))?;
        let seconds = now.monotonic.checked_sub(then)?.as_secs_f64();
        let grown = count.checked_sub(before)?;
        (seconds > 0.0).then(|| grown as f64 / seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_secs(10);
    const START_MS: u64 = 1_700_000_000_000;

    fn history() -> History {
        let series = |name| Series { name, unit: Unit::PerSecond, help: "" };
        History::new(vec![series("reads"), series("writes")], PERIOD)
    }

    /// The moment `second` seconds after the start, on both clocks.
    fn second(second: u64) -> Moment {
        Moment { wall_ms: START_MS + second * 1000, monotonic: Duration::from_secs(second) }
    }

    /// The last values of `reads`, with gaps as `None`.
    fn tail(history: &History, now: Moment, count: usize) -> Vec<Option<u32>> {
        let window = history.window(now);
        let values = &window.of("reads")[SAMPLES - count..];
        values.iter().map(|value| (!value.is_nan()).then_some(*value as u32)).collect()
    }

    #[test]
    fn one_hour_is_stored() {
        let history = history();
        for at in 0..1000 {
            history.record(second(at * 10), &[Some(at as f64), None]);
        }
        let window = history.window(second(9995));
        let expected: Vec<f32> = (640..1000).map(|at| at as f32).collect();
        assert_eq!(window.of("reads"), expected);
        assert_eq!((window.last("reads"), window.last("writes")), (Some(999.0), None));
        assert_eq!((window.end_ms, window.period), (START_MS + 9_990_000, PERIOD));
        assert!(window.of("nothing").is_empty());
    }

    #[test]
    fn time_without_samples_is_a_gap() {
        let history = history();
        history.record(second(0), &[Some(1.0), Some(1.0)]);
        history.record(second(100), &[Some(2.0), Some(1.0)]);
        let mut expected = vec![None; 12];
        (expected[1], expected[11]) = (Some(1), Some(2));
        assert_eq!(tail(&history, second(100), 12), expected);
        assert_eq!(tail(&history, second(135), 4), [None, Some(2), None, None], "later periods are gaps");
        assert_eq!(tail(&history, second(8000), 360), vec![None; 360]);
        history.record(second(8000), &[Some(3.0), None]);
        assert_eq!(tail(&history, second(8000), 2), [None, Some(3)], "overwritten values do not come back");
        assert_eq!(
            history.window(second(8000)).of("reads").iter().filter(|value| !value.is_nan()).count(),
            1
        );
    }

    #[test]
    fn a_late_sample_counts_for_the_time_before_it() {
        let history = history();
        history.record(second(9), &[Some(1.0), None]);
        history.record(second(21), &[Some(2.0), None]);
        assert_eq!(tail(&history, second(25), 3), [Some(1), Some(2), Some(2)]);
        history.record(second(24), &[Some(3.0), None]);
        assert_eq!(tail(&history, second(25), 3), [Some(1), Some(2), Some(3)], "one sample per period");
    }

    #[test]
    fn a_machine_that_sleeps_leaves_a_gap() {
        let history = history();
        history.record(second(10), &[Some(1.0), None]);
        let woken = Moment { wall_ms: START_MS + 3_600_000, ..second(20) };
        history.record(woken, &[Some(2.0), None]);
        assert_eq!(tail(&history, woken, 3), [None, None, Some(2)]);
        assert_eq!(tail(&history, woken, 360)[0], Some(1), "an hour ago");
    }

    #[test]
    fn a_wall_clock_that_is_set_back_changes_nothing() {
        let history = history();
        history.record(second(10), &[Some(1.0), None]);
        history.record(Moment { wall_ms: START_MS - 1_000_000, ..second(20) }, &[Some(2.0), None]);
        assert_eq!(tail(&history, second(20), 3), [None, Some(1), Some(2)]);
    }

    #[test]
    fn the_next_sample_is_due_when_a_period_begins() {
        let history = history();
        assert_eq!(history.until_next(second(0)), PERIOD);
        assert_eq!(history.until_next(second(17)), Duration::from_secs(3));
    }

    #[test]
    fn a_counter_reset_gives_no_rate() {
        let mut rate = Rate::default();
        assert_eq!(rate.at(second(0), 50), None);
        assert_eq!(rate.at(second(10), 150), Some(10.0));
        assert_eq!(rate.at(second(20), 20), None);
        assert_eq!(rate.at(second(40), 60), Some(2.0));
        assert_eq!(rate.at(second(40), 60), None, "no time has passed");
    }

    #[test]
    fn nan_is_a_gap() {
        let history = history();
        history.record(second(0), &[Some(f64::NAN), Some(f64::INFINITY)]);
        let window = history.window(second(0));
        assert_eq!((window.last("reads"), window.last("writes")), (None, None));
    }
}
