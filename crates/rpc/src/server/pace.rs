//! Whether a client moves fast enough for what it makes the server hold: a frame half sent, or answers unread.
//!
//! A byte now and then is not enough: in each period the client has to move what there was at its beginning, or
//! [`ENOUGH_BYTES`] of it. So what a client can hold, and how long, are bounded together.

use std::time::Duration;

/// Who moves this much in a period does work.
const ENOUGH_BYTES: u64 = 1 << 20;

/// One direction of a connection over one period.
#[derive(Debug, Default)]
pub(super) struct Pace {
    // When the period began and what had been moved then; none while there is nothing to move.
    period: Option<Period>,
}

#[derive(Debug)]
struct Period {
    began: Duration,
    moved: u64,
    due: u64,
}

impl Pace {
    /// How long from `now` until the client is to be judged again; `None` if it was too slow.
    ///
    /// `moved` counts all bytes since the connection began, `left` those that wait to be moved.
    pub(super) fn judge(
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

    /// There is nothing to move: the next period begins when there is.
    pub(super) fn rest(&mut self) {
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
        assert_eq!(pace.judge(at(10), LIMIT, 100, 5000), Some(LIMIT));
        assert_eq!(pace.judge(at(40), LIMIT, 130, 4970), Some(at(30)));
        assert_eq!(pace.judge(at(70), LIMIT, 160, 4940), None);
    }

    #[test]
    fn who_moves_what_there_was_or_much_goes_on() {
        let mut pace = Pace::default();
        assert_eq!(pace.judge(at(0), LIMIT, 0, 5000), Some(LIMIT));
        assert_eq!(pace.judge(at(60), LIMIT, 5000, 9000), Some(LIMIT), "new answers do not count against it");
        assert_eq!(pace.judge(at(120), LIMIT, 14_000, 1 << 30), Some(LIMIT));
        assert_eq!(pace.judge(at(180), LIMIT, 14_000 + ENOUGH_BYTES, 1 << 30), Some(LIMIT));
        pace.rest();
        assert_eq!(pace.judge(at(900), LIMIT, 14_000 + ENOUGH_BYTES, 10), Some(LIMIT));
    }
}
