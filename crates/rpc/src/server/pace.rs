//! Checks whether a client makes progress while it pins memory: a partial frame, or unsent
//! responses.
//!
//! An occasional byte is not enough. In each period the client must transfer all bytes that were
//! pending at the start of the period, or [`ENOUGH_BYTES`] of them. So a client cannot pin memory
//! for long.

use std::time::Duration;

/// Number of bytes in a period that are always enough.
const ENOUGH_BYTES: u64 = 1 << 20;

/// One direction of a connection over one period.
#[derive(Debug, Default)]
pub(super) struct Pace {
    // `None` while nothing is pending.
    period: Option<Period>,
}

#[derive(Debug)]
struct Period {
    began: Duration,
    // Total bytes transferred on the connection when the period began.
    moved: u64,
    // Bytes to transfer in the period.
    due: u64,
}

impl Pace {
    /// How long to wait from `now` until the next check; `None` if the client was too slow.
    ///
    /// `moved` is the total number of bytes transferred on the connection, and `left` the number of
    /// pending bytes.
    pub(super) fn check(
        &mut self,
        now: Duration,
        limit: Duration,
        moved: u64,
        left: u64,
    ) -> Option<Duration> {
        if let Some(period) = &self.period {
            let passed = now.saturating_sub(period.began);
            if passed < limit {
                return Some(limit - passed);
            }
            if moved - period.moved < period.due {
                return None;
            }
        }
        self.period = Some(Period { began: now, moved, due: left.clamp(1, ENOUGH_BYTES) });
        Some(limit)
    }

    /// Records that nothing is pending. The next period starts when bytes are pending again.
    pub(super) fn reset(&mut self) {
        self.period = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_byte_a_second_is_too_slow() {
        let mut pace = Pace::default();
        assert_eq!(pace.check(at(10), LIMIT, 100, 5000), Some(LIMIT));
        assert_eq!(pace.check(at(40), LIMIT, 130, 4970), Some(at(30)));
        assert_eq!(pace.check(at(70), LIMIT, 160, 4940), None);
    }

    #[test]
    fn progress_is_the_pending_bytes_or_enough_bytes() {
        let mut pace = Pace::default();
        assert_eq!(pace.check(at(0), LIMIT, 0, 5000), Some(LIMIT));
        assert_eq!(
            pace.check(at(60), LIMIT, 5000, 9000),
            Some(LIMIT),
            "new responses do not count against the client"
        );
        assert_eq!(pace.check(at(120), LIMIT, 14_000, 1 << 30), Some(LIMIT));
        assert_eq!(pace.check(at(180), LIMIT, 14_000 + ENOUGH_BYTES, 1 << 30), Some(LIMIT));
        pace.reset();
        assert_eq!(pace.check(at(900), LIMIT, 14_000 + ENOUGH_BYTES, 10), Some(LIMIT));
    }
}
