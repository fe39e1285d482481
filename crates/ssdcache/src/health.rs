//! Whether the SSD responds. After a read that took too long, or after only errors for some time,
//! the cache is disabled for a while. Then one read tests the SSD, and its success enables the
//! cache.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tracing::{info, warn};

/// Time for which the cache is first disabled. Each failed test doubles it.
const DISABLED_MIN: Duration = Duration::from_secs(30);
const DISABLED_MAX: Duration = Duration::from_secs(600);
/// Maximum number of concurrent reads. More requests than an SSD can work on in parallel only wait,
/// and if it does not respond, they wait until their limit.
const READS_MAX: usize = 256;

/// Decides which reads may use the SSD.
pub(crate) struct Health {
    errors_tolerated: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    reads: usize,
    /// When the cache was disabled, and until when.
    disabled: Option<Disabled>,
    /// The first of an uninterrupted sequence of errors.
    failing_since: Option<Duration>,
}

struct Disabled {
    until: Duration,
    period: Duration,
    is_tested: bool,
}

/// A read in progress.
pub(crate) struct Attempt<'a> {
    health: &'a Health,
    is_test: bool,
}

impl Health {
    pub(crate) fn new(errors_tolerated: Duration) -> Health {
        Health { errors_tolerated, state: Mutex::default() }
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.state().disabled.is_none()
    }

    /// Begins a read; `None` if it must not use the SSD now.
    pub(crate) fn enter(&self, now: Duration) -> Option<Attempt<'_>> {
        let mut state = self.state();
        let is_test = match &mut state.disabled {
            None => false,
            Some(disabled) if disabled.until <= now && !disabled.is_tested => {
                disabled.is_tested = true;
                true
            }
            Some(_) => return None,
        };
        if state.reads >= READS_MAX && !is_test {
            return None;
        }
        state.reads += 1;
        Some(Attempt { health: self, is_test })
    }

    /// Records that the SSD responded.
    pub(crate) fn succeeded(&self, now: Duration) {
        let mut state = self.state();
        state.failing_since = None;
        // A read that began before the cache was disabled is no test.
        if state.disabled.take_if(|disabled| disabled.until <= now).is_some() {
            info!("second-level block cache enabled: the SSD responds");
        }
    }

    /// Records an error.
    pub(crate) fn failed(&self, now: Duration) {
        let mut state = self.state();
        let since = *state.failing_since.get_or_insert(now);
        // A failed test shows that the errors continue.
        if state.disabled.is_some() || now.saturating_sub(since) >= self.errors_tolerated {
            state.disable(now, "reads or writes fail");
        }
    }

    /// Records that a call took too long.
    pub(crate) fn timed_out(&self, now: Duration) {
        self.state().disable(now, "the SSD does not respond");
    }

    /// Disables the cache permanently.
    pub(crate) fn give_up(&self) {
        let (until, period) = (Duration::MAX, DISABLED_MAX);
        self.state().disabled = Some(Disabled { until, period, is_tested: false });
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change is complete before anything can panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn disable(&mut self, now: Duration, why: &str) {
        let period = match &self.disabled {
            None => DISABLED_MIN,
            // A read that began before the cache was disabled shows nothing new.
            Some(disabled) if now < disabled.until => return,
            Some(disabled) => (disabled.period * 2).min(DISABLED_MAX),
        };
        warn!(why, seconds = period.as_secs(), "second-level block cache disabled");
        self.disabled = Some(Disabled { until: now + period, period, is_tested: false });
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        let mut state = self.health.state();
        state.reads -= 1;
        // An abandoned test has no result.
        if self.is_test
            && let Some(disabled) = &mut state.disabled
        {
            disabled.is_tested = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_slow_read_disables_the_cache_until_a_test_succeeds() {
        let health = Health::new(seconds(60));
        drop(health.enter(seconds(0)).unwrap());
        health.timed_out(seconds(1));
        health.timed_out(seconds(2));
        assert!(!health.is_enabled() && health.enter(seconds(30)).is_none());
        let test = health.enter(seconds(31)).unwrap();
        assert!(health.enter(seconds(31)).is_none(), "one test at a time");
        health.timed_out(seconds(32));
        drop(test);
        assert!(health.enter(seconds(91)).is_none(), "twice as long");
        let test = health.enter(seconds(92)).unwrap();
        drop(test);
        let test = health.enter(seconds(92)).unwrap();
        health.succeeded(seconds(91));
        assert!(!health.is_enabled(), "a read from before");
        health.succeeded(seconds(92));
        drop(test);
        assert!(health.is_enabled() && health.enter(seconds(92)).is_some());
    }

    #[test]
    fn errors_are_tolerated_for_a_while() {
        let health = Health::new(seconds(60));
        health.failed(seconds(0));
        health.failed(seconds(59));
        health.succeeded(seconds(60));
        health.failed(seconds(70));
        health.failed(seconds(129));
        assert!(health.is_enabled());
        health.failed(seconds(130));
        assert!(!health.is_enabled());
    }

    #[test]
    fn concurrent_reads_are_limited() {
        let health = Health::new(seconds(60));
        let attempts: Vec<_> = (0..READS_MAX).map(|_| health.enter(seconds(0)).unwrap()).collect();
        assert!(health.enter(seconds(0)).is_none());
        drop(attempts);
        assert!(health.enter(seconds(0)).is_some());
    }
}
