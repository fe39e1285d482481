//! How fast compactions reduce the number of files.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Older measurements count little: about a third after this time, in seconds.
const MEMORY_S: f64 = 10.0;
/// Less time than this, in seconds, is no measurement.
const MEASURED_S_MIN: f64 = 0.5;

/// The recent speed of all compactions of a server together.
#[derive(Debug, Default)]
pub struct MergeSpeed {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    running: usize,
    measured_until: Duration,
    /// Recently merged files, and the seconds in which at least one compaction ran.
    files: f64,
    seconds: f64,
}

impl MergeSpeed {
    /// A compaction begins that has fewer outputs than inputs.
    pub(crate) fn begin(&self, now: Duration) {
        self.advanced(now).running += 1;
    }

    /// Such compactions have come nearer to their ends. Together they reduce the number of files by
    /// `files` more, counted in proportion to what they have read.
    pub(crate) fn add(&self, files: f64, now: Duration) {
        self.advanced(now).files += files;
    }

    /// Such a compaction ended or failed.
    pub(crate) fn end(&self, now: Duration) {
        let mut state = self.advanced(now);
        debug_assert!(state.running > 0, "a compaction begins before it ends");
        state.running -= 1;
    }

    /// By how many files per second recent compactions reduced the number of files, while at least
    /// one ran; `None` if that is not known yet.
    pub fn files_per_s(&self) -> Option<f64> {
        let state = self.lock();
        (state.seconds >= MEASURED_S_MIN).then(|| state.files / state.seconds)
    }

    /// The state, with the time up to `now` counted.
    fn advanced(&self, now: Duration) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        let passed = now.saturating_sub(state.measured_until).as_secs_f64();
        state.measured_until = now;
        if state.running > 0 {
            let remembered = (-passed / MEMORY_S).exp();
            state.files *= remembered;
            state.seconds = state.seconds * remembered + MEMORY_S * (1.0 - remembered);
        }
        state
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Numbers that are valid after any panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn concurrent_compactions_add_up_and_idle_time_does_not_count() {
        let speed = MergeSpeed::default();
        assert_eq!(speed.files_per_s(), None);
        speed.begin(at(60_000));
        speed.begin(at(60_000));
        for tick in 1..=100 {
            // Each of the two merges a file per second.
            speed.add(0.1, at(60_000 + 100 * tick));
            speed.add(0.1, at(60_000 + 100 * tick));
        }
        let both = speed.files_per_s().unwrap();
        assert!((1.9..2.1).contains(&both), "{both}");
        speed.end(at(70_000));
        speed.end(at(70_000));
        assert_eq!(speed.files_per_s(), Some(both));
        speed.begin(at(1_000_000));
        assert_eq!(speed.files_per_s(), Some(both));
        // One of 0.1 files per second.
        for tick in 1..=600 {
            speed.add(0.01, at(1_000_000 + 100 * tick));
        }
        let slow = speed.files_per_s().unwrap();
        assert!((0.09..0.12).contains(&slow), "{slow}");
    }

    #[test]
    fn a_short_time_is_no_measurement() {
        let speed = MergeSpeed::default();
        speed.begin(at(1000));
        speed.add(3.0, at(1100));
        assert_eq!(speed.files_per_s(), None);
    }
}
