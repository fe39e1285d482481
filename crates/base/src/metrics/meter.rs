//! How often something happens: events a second, over all time and over the last minutes.
//!
//! A meter does not count. It is told what others counted, when somebody looks, so that an event is counted once.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Between two looks at the count that the averages are made of.
const STEP_S: f64 = 5.0;
/// The minutes that the averages look back.
const MINUTES: [f64; 3] = [1.0, 5.0, 15.0];

/// Averages how many events come in a second, the older they are the less they weigh.
#[derive(Debug)]
pub struct Meter {
    count: AtomicU64,
    averages: Mutex<Averages>,
}

#[derive(Debug)]
struct Averages {
    begun: Duration,
    // Steps since then that are in the averages, and the events.
    steps: u64,
    counted: u64,
    rates: [f64; 3],
}

/// Events a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// Since the meter was made.
    pub mean: f64,
    /// Over the last minute.
    pub one_minute: f64,
    /// Over the last five.
    pub five_minutes: f64,
    /// Over the last fifteen.
    pub fifteen_minutes: f64,
}

impl Meter {
    /// A meter that begins at `now`, a time of a monotonic clock.
    pub fn new(now: Duration) -> Meter {
        let averages = Averages { begun: now, steps: 0, counted: 0, rates: [0.0; 3] };
        Meter { count: AtomicU64::new(0), averages: Mutex::new(averages) }
    }

    /// Notes how many events there were ever. A count only grows: a smaller one, by a slower teller, is nothing new.
    pub fn tell(&self, events: u64) {
        self.count.fetch_max(events, Relaxed);
    }

    /// Events ever.
    pub fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }

    /// The rates at `now`. What came since the last look counts as spread evenly over the time since.
    pub fn rates(&self, now: Duration) -> Rates {
        let (count, mut averages) = (self.count(), self.averages());
        let passed = now.saturating_sub(averages.begun).as_secs_f64();
        let steps = (passed / STEP_S) as u64;
        let new_steps = steps.saturating_sub(averages.steps);
        if new_steps > 0 {
            let rate = count.saturating_sub(averages.counted) as f64 / (new_steps as f64 * STEP_S);
            let is_first = averages.steps == 0;
            for (average, minutes) in averages.rates.iter_mut().zip(MINUTES) {
                let kept = (-STEP_S / 60.0 / minutes).exp().powf(new_steps as f64);
                *average = if is_first { rate } else { rate + (*average - rate) * kept };
            }
            (averages.steps, averages.counted) = (steps, count);
        }
        let [one_minute, five_minutes, fifteen_minutes] = averages.rates;
        let mean = if passed > 0.0 { count as f64 / passed } else { 0.0 };
        Rates { mean, one_minute, five_minutes, fifteen_minutes }
    }

    fn averages(&self) -> MutexGuard<'_, Averages> {
        // Numbers: whole after any panic.
        self.averages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_steady_rate_is_told_as_it_is() {
        let meter = Meter::new(7 * SECOND);
        let mut rates = Rates::default();
        for second in 1..=600 {
            meter.tell(30 * u64::from(second));
            rates = meter.rates((7 + second) * SECOND);
        }
        assert_eq!((meter.count(), rates.mean), (18_000, 30.0));
        for rate in [rates.one_minute, rates.five_minutes, rates.fifteen_minutes] {
            assert!((rate - 30.0).abs() < 1e-6, "{rates:?}");
        }
    }

    #[test]
    fn what_is_over_is_forgotten_the_sooner_the_shorter_the_average() {
        let meter = Meter::new(Duration::ZERO);
        meter.tell(500);
        assert_eq!(meter.rates(5 * SECOND).one_minute, 100.0);
        let rates = meter.rates(65 * SECOND);
        assert!((rates.one_minute - 100.0 / std::f64::consts::E).abs() < 1e-6, "{rates:?}");
        assert!(rates.one_minute < rates.five_minutes && rates.five_minutes < rates.fifteen_minutes);
        // Looked at often or once: the same.
        let often = Meter::new(Duration::ZERO);
        often.tell(500);
        let often = (1..=13).map(|step| often.rates(5 * step * SECOND)).last().unwrap();
        assert!((often.fifteen_minutes - rates.fifteen_minutes).abs() < 1e-9);
    }

    #[test]
    fn nothing_is_told_before_the_first_step_but_the_mean() {
        let meter = Meter::new(Duration::ZERO);
        assert_eq!(meter.rates(Duration::ZERO), Rates::default());
        meter.tell(8);
        assert_eq!(meter.rates(2 * SECOND), Rates { mean: 4.0, ..Rates::default() });
    }
}
