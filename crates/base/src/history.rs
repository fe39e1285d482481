//! The last hour of a process, kept by itself: a handful of series in a ring of fixed size.
//!
//! Somebody takes a sample every period and hands in the time and a value for each series ([`History::note`]); who
//! looks gets all of them as they stand ([`History::window`]). Invariants:
//!
//! * memory is taken once: four bytes for each value;
//! * a value stands at the time it was taken at. Periods without a sample are gaps, and so are values that could not
//!   be told;
//! * nothing is taken for a gap that is only late: a sample that comes one or two periods late tells of those too.
//!
//! Not here: what is sampled, and how it is drawn.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Samples that are kept: an hour of them at one in ten seconds.
pub const SAMPLES: usize = 360;
/// Periods that a late sample stands for beside its own.
const LATE_PERIODS_MAX: u64 = 2;
/// By so much the wall clock may run ahead of the monotonic one before the difference is taken for sleep.
const DRIFT_MAX: Duration = Duration::from_secs(2);

/// What values of a series are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A number of things.
    Count,
    /// Things in a second.
    PerSecond,
    /// Bytes.
    Bytes,
    /// Bytes in a second.
    BytesPerSecond,
    /// Microseconds.
    Microseconds,
    /// Of a hundred.
    Percent,
    /// Processors at work.
    Cores,
}

impl Unit {
    /// As programs are told.
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

/// A series, declared once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Series {
    /// By which it is asked for.
    pub name: &'static str,
    /// What its values are.
    pub unit: Unit,
    /// What they mean.
    pub help: &'static str,
}

/// A moment by both clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Milliseconds since the epoch; may jump.
    pub wall_ms: u64,
    /// Time since some start; stands still while the machine sleeps.
    pub monotonic: Duration,
}

impl Moment {
    /// Now, by `clock`.
    pub fn of(clock: &dyn crate::env::Clock) -> Moment {
        Moment { wall_ms: clock.now_ms(), monotonic: clock.monotonic() }
    }
}

/// The ring; see the module's documentation.
pub struct History {
    series: Vec<Series>,
    period: Duration,
    ring: Mutex<Ring>,
}

struct Ring {
    // One series behind the other, each by slot modulo SAMPLES; a gap is no number.
    values: Vec<f32>,
    // The slot of the last sample, and when that was.
    last: Option<(u64, Moment)>,
    // Time that the monotonic clock did not see.
    asleep: Duration,
}

impl History {
    /// Nothing sampled yet; a sample is to come every `period`.
    ///
    /// # Panics
    /// If `period` is zero.
    pub fn new(series: Vec<Series>, period: Duration) -> History {
        assert!(!period.is_zero(), "samples are apart");
        let values = vec![f32::NAN; series.len() * SAMPLES];
        History { series, period, ring: Mutex::new(Ring { values, last: None, asleep: Duration::ZERO }) }
    }

    /// The series, in the order of their values.
    pub fn series(&self) -> &[Series] {
        &self.series
    }

    /// Time between two samples.
    pub fn period(&self) -> Duration {
        self.period
    }

    /// How long after `now` the next sample is due.
    pub fn until_next(&self, now: Moment) -> Duration {
        let asleep = self.ring().asleep;
        let into = (now.monotonic + asleep).as_nanos() % self.period.as_nanos();
        self.period - Duration::from_nanos(u64::try_from(into).unwrap_or(0))
    }

    /// Takes the values of `now`, one for each series; `None` is a gap. The second sample of a period takes the place
    /// of the first.
    ///
    /// # Panics
    /// If there are not as many values as series.
    pub fn note(&self, now: Moment, values: &[Option<f64>]) {
        assert_eq!(values.len(), self.series.len(), "a value for each series");
        let mut ring = self.ring();
        ring.notice_sleep(now);
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
                ring.values[place(of, at)] = value;
            }
        }
        ring.last = Some((slot, now));
    }

    /// All series as they stand at `now`.
    pub fn window(&self, now: Moment) -> Window {
        let ring = self.ring();
        let (end, end_ms) = match ring.last {
            None => (0, now.wall_ms),
            Some((last, at)) => {
                // The slot of this moment has no sample yet, which is no gap.
                let end = ring.slot_of(now, self.period).saturating_sub(1).max(last);
                (end, at.wall_ms + (end - last) * self.period.as_millis() as u64)
            }
        };
        let last = ring.last.map_or(0, |(last, _)| last);
        let value = |of: usize, back: usize| match end.checked_sub(back as u64) {
            // What is older than the ring is long, counted from the last sample, was written over.
            Some(slot) if slot <= last && last - slot < SAMPLES as u64 => ring.values[place(of, slot)],
            _ => f32::NAN,
        };
        let column = |of| (0..SAMPLES).rev().map(|back| value(of, back)).collect();
        let columns = (0..self.series.len()).map(column).collect();
        Window { series: self.series.clone(), period: self.period, end_ms, columns }
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        // Numbers: whole after any panic.
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ring {
    /// A machine that sleeps does not move its monotonic clock; the wall clock tells of it.
    fn notice_sleep(&mut self, now: Moment) {
        let Some((_, last)) = self.last else { return };
        let by_wall = Duration::from_millis(now.wall_ms.saturating_sub(last.wall_ms));
        let unseen = by_wall.saturating_sub(now.monotonic.saturating_sub(last.monotonic));
        if unseen > DRIFT_MAX {
            self.asleep += unseen;
        }
    }

    fn slot_of(&self, now: Moment, period: Duration) -> u64 {
        let slot = (now.monotonic + self.asleep).as_nanos() / period.as_nanos();
        u64::try_from(slot).unwrap_or(u64::MAX)
    }

    /// Makes gaps of the slots from `first` to the one before `end`.
    fn clear(&mut self, first: u64, end: u64) {
        let first = first.max(end.saturating_sub(SAMPLES as u64));
        let series = self.values.len() / SAMPLES;
        for slot in first..end {
            (0..series).for_each(|of| self.values[place(of, slot)] = f32::NAN);
        }
    }
}

fn place(series: usize, slot: u64) -> usize {
    series * SAMPLES + (slot % SAMPLES as u64) as usize
}

/// The series at one moment: [`SAMPLES`] values each, the oldest first.
pub struct Window {
    series: Vec<Series>,
    /// Time between two values.
    pub period: Duration,
    /// When the last value was taken, milliseconds since the epoch.
    pub end_ms: u64,
    columns: Vec<Vec<f32>>,
}

impl Window {
    /// Each series and its values; a gap is no number.
    pub fn all(&self) -> impl Iterator<Item = (&Series, &[f32])> {
        self.series.iter().zip(self.columns.iter().map(Vec::as_slice))
    }

    /// The values of a series; none if nobody declared it.
    pub fn of(&self, name: &str) -> &[f32] {
        self.all().find(|(series, _)| series.name == name).map_or(&[], |(_, values)| values)
    }

    /// The last value of a series, if that is no gap.
    pub fn last(&self, name: &str) -> Option<f64> {
        self.of(name).last().filter(|value| !value.is_nan()).map(|value| f64::from(*value))
    }
}

/// How fast a counter grows, from sample to sample.
#[derive(Debug, Default)]
pub struct Rate {
    before: Option<(Duration, u64)>,
}

impl Rate {
    /// In a second since the last call, of a counter that stands at `count`; `None` at the first call, and where the
    /// counter was set back.
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

    /// A moment so many seconds after the start, by both clocks.
    fn second(second: u64) -> Moment {
        Moment { wall_ms: START_MS + second * 1000, monotonic: Duration::from_secs(second) }
    }

    /// The last values of `reads`, a gap as `None`.
    fn tail(history: &History, now: Moment, count: usize) -> Vec<Option<u32>> {
        let window = history.window(now);
        let values = &window.of("reads")[SAMPLES - count..];
        values.iter().map(|value| (!value.is_nan()).then_some(*value as u32)).collect()
    }

    #[test]
    fn an_hour_is_kept_and_no_more() {
        let history = history();
        for at in 0..1000 {
            history.note(second(at * 10), &[Some(at as f64), None]);
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
        history.note(second(0), &[Some(1.0), Some(1.0)]);
        history.note(second(100), &[Some(2.0), Some(1.0)]);
        let mut expected = vec![None; 12];
        (expected[1], expected[11]) = (Some(1), Some(2));
        assert_eq!(tail(&history, second(100), 12), expected);
        assert_eq!(tail(&history, second(135), 4), [None, Some(2), None, None], "and after the last one");
        assert_eq!(tail(&history, second(8000), 360), vec![None; 360]);
        history.note(second(8000), &[Some(3.0), None]);
        assert_eq!(tail(&history, second(8000), 2), [None, Some(3)], "what is old does not come back");
        assert_eq!(
            history.window(second(8000)).of("reads").iter().filter(|value| !value.is_nan()).count(),
            1
        );
    }

    #[test]
    fn a_sample_that_is_late_tells_of_the_time_before_it() {
        let history = history();
        history.note(second(9), &[Some(1.0), None]);
        history.note(second(21), &[Some(2.0), None]);
        assert_eq!(tail(&history, second(25), 3), [Some(1), Some(2), Some(2)]);
        history.note(second(24), &[Some(3.0), None]);
        assert_eq!(tail(&history, second(25), 3), [Some(1), Some(2), Some(3)], "one in a period");
    }

    #[test]
    fn a_machine_that_sleeps_leaves_a_gap() {
        let history = history();
        history.note(second(10), &[Some(1.0), None]);
        let woken = Moment { wall_ms: START_MS + 3_600_000, ..second(20) };
        history.note(woken, &[Some(2.0), None]);
        assert_eq!(tail(&history, woken, 3), [None, None, Some(2)]);
        assert_eq!(tail(&history, woken, 360)[0], Some(1), "an hour ago");
    }

    #[test]
    fn a_wall_clock_that_is_set_back_changes_nothing() {
        let history = history();
        history.note(second(10), &[Some(1.0), None]);
        history.note(Moment { wall_ms: START_MS - 1_000_000, ..second(20) }, &[Some(2.0), None]);
        assert_eq!(tail(&history, second(20), 3), [None, Some(1), Some(2)]);
    }

    #[test]
    fn the_next_sample_is_due_when_a_period_begins() {
        let history = history();
        assert_eq!(history.until_next(second(0)), PERIOD);
        assert_eq!(history.until_next(second(17)), Duration::from_secs(3));
    }

    #[test]
    fn rates_know_nothing_of_counters_that_were_set_back() {
        let mut rate = Rate::default();
        assert_eq!(rate.at(second(0), 50), None);
        assert_eq!(rate.at(second(10), 150), Some(10.0));
        assert_eq!(rate.at(second(20), 20), None);
        assert_eq!(rate.at(second(40), 60), Some(2.0));
        assert_eq!(rate.at(second(40), 60), None, "no time has passed");
    }

    #[test]
    fn what_is_no_number_is_a_gap() {
        let history = history();
        history.note(second(0), &[Some(f64::NAN), Some(f64::INFINITY)]);
        let window = history.window(second(0));
        assert_eq!((window.last("reads"), window.last("writes")), (None, None));
    }
}
