//! Event rates: events per second since the start and over the last minutes.
//!
//! A meter does not count events. Readers pass it a count from elsewhere, so that each event is
//! counted only once.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Seconds between two updates of the averages.
const STEP_S: f64 = 5.0;
/// Time constants of the averages in minutes.
const MINUTES: [f64; 3] = [1.0, 5.0, 15.0];

/// Exponentially weighted averages of an event rate.
#[derive(Debug)]
pub struct Meter {
    count: AtomicU64,
    averages: Mutex<Averages>,
}

#[derive(Debug)]
struct Averages {
    begun: Duration,
    // Steps and events that are included in the averages.
    steps: u64,
    counted: u64,
    rates: [f64; 3],
}

/// Event rates per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// Since the meter was created.
    pub mean: f64,
    /// Over the last minute.
    pub one_minute: f64,
    /// Over the last five minutes.
    pub five_minutes: f64,
    /// Over the last fifteen minutes.
    pub fifteen_minutes: f64,
}

impl Meter {
    /// A meter that begins at `now` on the monotonic clock.
    pub fn new(now: Duration) -> Meter {
        let averages = Averages { begun: now, steps: 0, counted: 0, rates: [0.0; 3] };
        Meter { count: AtomicU64::new(0), averages: Mutex::new(averages) }
    }

    /// Sets the total number of events. The count only grows: a smaller number from a slower caller
    /// is ignored.
    pub fn set_total(&self, events: u64) {
        self.count.fetch_max(events, Relaxed);
    }

    /// Total number of events.
    pub fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }

    /// The rates at `now`. Events since the last call count as evenly spread over the time since
    /// then.
    pub fn rates(&self, now: Duration) -> Rates {
        let (count, mut averages) = (self.count(), self.averages());
        let passed = now.saturating_sub(averages.begun).as_secs_f64();
        let steps = (passed / STEP_S) as u64;
        let new_steps = steps.saturating_sub(averages.steps);
        if new_steps > 0 {
            let rate = count.saturating_sub(averages.counted) as f64 / (new_steps as f64 * STEP_S);
            let is_first = averages.steps == 0;
            for (average, minutes) in averages.rates.iter_mut().zip(MINUTES) {
                let weight = (-STEP_S / 60.0 / minutes).exp().powf(new_steps as f64);
                *average = if is_first { rate } else { rate + (*average - rate) * weight };
            }
            (averages.steps, averages.counted) = (steps, count);
        }
        let [one_minute, five_minutes, fifteen_minutes] = averages.rates;
        let mean = if passed > 0.0 { count as f64 / passed } else { 0.0 };
        Rates { mean, one_minute, five_minutes, fifteen_minutes }
    }

    fn averages(&self) -> MutexGuard<'_, Averages> {
        // Numbers, valid after any panic.
        self.averages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_steady_rate_is_reported_exactly() {
        let meter = Meter::new(7 * SECOND);
        let mut rates = Rates::default();
        for second in 1..=600 {
            meter.set_total(30 * u64::from(second));
            rates = meter.rates((7 + second) * SECOND);
        }
        assert_eq!((meter.count(), rates.mean), (18_000, 30.0));
        for rate in [rates.one_minute, rates.five_minutes, rates.fifteen_minutes] {
            assert!((rate - 30.0).abs() < 1e-6, "{rates:?}");
        }
    }

    #[test]
    fn shorter_averages_decay_faster() {
        let meter = Meter::new(Duration::ZERO);
        meter.set_total(500);
        assert_eq!(meter.rates(5 * SECOND).one_minute, 100.0);
        let rates = meter.rates(65 * SECOND);
        assert!((rates.one_minute - 100.0 / std::f64::consts::E).abs() < 1e-6, "{rates:?}");
        assert!(rates.one_minute < rates.five_minutes && rates.five_minutes < rates.fifteen_minutes);
        // The number of reads does not change the result.
        let often = Meter::new(Duration::ZERO);
        often.set_total(500);
        let often = (1..=13).map(|step| often.rates(5 * step * SECOND)).last().unwrap();
        assert!((often.fifteen_minutes - rates.fifteen_minutes).abs() < 1e-9);
    }

    #[test]
    fn only_the_mean_is_reported_before_the_first_step() {
        let meter = Meter::new(Duration::ZERO);
        assert_eq!(meter.rates(Duration::ZERO), Rates::default());
        meter.set_total(8);
        assert_eq!(meter.rates(2 * SECOND), Rates { mean: 4.0, ..Rates::default() });
    }
}
