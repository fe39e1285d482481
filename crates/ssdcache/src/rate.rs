//! The limit of the write rate, which limits the wear of the SSD.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Time for which unused bytes remain available.
const BURST: Duration = Duration::from_secs(10);

/// Bytes that may be written now.
pub(crate) struct WriteRate {
    limit: Option<Mutex<Allowance>>,
}

struct Allowance {
    per_second: f64,
    bytes: f64,
    at: Duration,
}

impl WriteRate {
    /// At most `per_second` bytes per second; `None`: no limit.
    pub(crate) fn new(per_second: Option<u64>, now: Duration) -> WriteRate {
        let limit = per_second.map(|per_second| {
            let per_second = per_second as f64;
            Mutex::new(Allowance { per_second, bytes: per_second * BURST.as_secs_f64(), at: now })
        });
        WriteRate { limit }
    }

    /// Whether `bytes` may be written. If so, counts them.
    pub(crate) fn take(&self, bytes: usize, now: Duration) -> bool {
        let Some(limit) = &self.limit else { return true };
        // Numbers, valid after any panic.
        let mut allowance = limit.lock().unwrap_or_else(PoisonError::into_inner);
        let added = now.saturating_sub(allowance.at).as_secs_f64() * allowance.per_second;
        allowance.at = allowance.at.max(now);
        allowance.bytes = (allowance.bytes + added).min(allowance.per_second * BURST.as_secs_f64());
        let fits = allowance.bytes >= bytes as f64;
        if fits {
            allowance.bytes -= bytes as f64;
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_limited_after_a_burst() {
        let rate = WriteRate::new(Some(1000), Duration::ZERO);
        let taken =
            |seconds: u64| (0..100_000).take_while(|_| rate.take(100, Duration::from_secs(seconds))).count();
        assert_eq!(taken(0), 100, "ten seconds");
        assert_eq!(taken(1), 10);
        assert_eq!(taken(1), 0);
        assert_eq!(taken(1000), 100, "never more than ten seconds");
        assert!(WriteRate::new(None, Duration::ZERO).take(usize::MAX, Duration::ZERO));
    }
}
