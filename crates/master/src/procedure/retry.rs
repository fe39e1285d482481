//! Retries of failed procedure steps: the pauses between attempts, and how often failures are
//! logged.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use proto::exception::JavaException;
use tokio::sync::Notify;

/// The pause after the first failure; each further failure doubles it.
const PAUSE_MIN: Duration = Duration::from_millis(200);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// The shortest time between two logged failures of a procedure.
const LOG_PERIOD: Duration = Duration::from_secs(60);

/// The attempts of one procedure.
#[derive(Debug, Default)]
pub(super) struct Retry {
    failures: u32,
    logged_at: Option<Duration>,
}

impl Retry {
    /// Counts a failure and returns the pause before the next attempt. If `is_final`, the step
    /// cannot succeed until an operator acts.
    pub(super) fn next_pause(&mut self, is_final: bool) -> Duration {
        let pause = match is_final {
            true => PAUSE_MAX,
            // Fifteen doublings exceed the longest pause.
            false => PAUSE_MIN.saturating_mul(1 << self.failures.min(15)).min(PAUSE_MAX),
        };
        self.failures = self.failures.saturating_add(1);
        pause
    }

    /// Number of failures so far.
    pub(super) fn failures(&self) -> u32 {
        self.failures
    }

    /// Whether the failure at `now` is to be logged.
    pub(super) fn should_log(&mut self, now: Duration) -> bool {
        let is_due = self.logged_at.is_none_or(|logged| now.saturating_sub(logged) >= LOG_PERIOD);
        if is_due {
            self.logged_at = Some(now);
        }
        is_due
    }
}

/// Why a procedure waits.
#[derive(Clone, Debug, PartialEq)]
pub struct Waiting {
    /// The exception of the last attempt.
    pub reason: JavaException,
    /// Number of failed attempts.
    pub failures: u32,
    /// When the next attempt begins, in milliseconds since the Unix epoch.
    pub next_attempt_ms: u64,
    /// The pause before it, in milliseconds.
    pub pause_ms: u64,
}

/// A request to abort a procedure. The procedure's task takes it between steps.
#[derive(Debug, Default)]
pub(super) struct AbortRequest {
    requested: AtomicBool,
    changed: Notify,
}

impl AbortRequest {
    /// Makes the request.
    pub(super) fn set(&self) {
        self.requested.store(true, Ordering::Release);
        // `notify_one` stores a permit for a task that does not wait yet.
        self.changed.notify_one();
    }

    /// Takes the request. Returns whether there was one.
    pub(super) fn take(&self) -> bool {
        self.requested.swap(false, Ordering::AcqRel)
    }

    /// Waits until the request is made.
    pub(super) async fn requested(&self) {
        while !self.requested.load(Ordering::Acquire) {
            self.changed.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_minute() {
        let mut retry = Retry::default();
        let pauses: Vec<u64> = (0..10).map(|_| retry.next_pause(false).as_millis() as u64).collect();
        assert_eq!(pauses, [200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 51_200, 60_000]);
        for _ in 0..100 {
            assert_eq!(retry.next_pause(false), PAUSE_MAX);
        }
        assert_eq!(Retry::default().next_pause(true), PAUSE_MAX);
    }

    #[test]
    fn failures_are_logged_once_a_minute() {
        let mut retry = Retry::default();
        let logged = (0..300).filter(|second| retry.should_log(Duration::from_secs(*second))).count();
        assert_eq!(logged, 5);
    }
}
