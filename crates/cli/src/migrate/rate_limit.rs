//! A limit of bytes per second, shared by all ranges of a copy.

use std::sync::Mutex;
use std::time::Duration;

/// Grants bytes in the order of the requests.
pub(super) struct RateLimit {
    bytes_per_s: Option<u64>,
    // The time, on the monotonic clock, from which the next bytes are granted.
    free_from: Mutex<Duration>,
}

impl RateLimit {
    /// Without `bytes_per_s`, all bytes are granted immediately.
    pub(super) fn new(bytes_per_s: Option<u64>) -> RateLimit {
        RateLimit { bytes_per_s, free_from: Mutex::new(Duration::ZERO) }
    }

    /// How long to wait, from `now` on, before `bytes` are sent.
    pub(super) fn delay(&self, now: Duration, bytes: u64) -> Duration {
        let Some(bytes_per_s) = self.bytes_per_s else { return Duration::ZERO };
        let mut free_from = self.free_from.lock().expect("no holder of this lock panics");
        let begin = now.max(*free_from);
        *free_from = begin + Duration::from_secs_f64(bytes as f64 / bytes_per_s as f64);
        begin - now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_wait_for_earlier_ones() {
        let (limit, second) = (RateLimit::new(Some(1000)), Duration::from_secs(1));
        assert_eq!(limit.delay(second, 2000), Duration::ZERO);
        assert_eq!(limit.delay(second, 500), 2 * second);
        assert_eq!(limit.delay(2 * second, 500), second + second / 2);
        // Unused time is not saved.
        assert_eq!(limit.delay(10 * second, 1000), Duration::ZERO);
        assert_eq!(limit.delay(10 * second, 1000), second);
    }

    #[test]
    fn there_may_be_no_limit() {
        let limit = RateLimit::new(None);
        assert_eq!(limit.delay(Duration::ZERO, u64::MAX), Duration::ZERO);
        assert_eq!(limit.delay(Duration::ZERO, 1), Duration::ZERO);
    }
}
