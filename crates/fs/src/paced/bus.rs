//! A connection that several devices share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::model::transfer_time;

/// After this time, a transfer has lost 63 % of its weight in the share of the time in use.
const MEMORY: Duration = Duration::from_secs(10);

/// A controller or bus with a bandwidth of its own, which its devices share.
#[derive(Debug)]
pub struct Bus {
    bytes_per_s: u64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    // When the transfers that it has accepted end.
    free_at: Duration,
    // Seconds in use, of which older ones count less, at `counted`.
    used_s: f64,
    counted: Duration,
}

impl State {
    /// Counts the time until `now`, in which nothing was added.
    fn pass(&mut self, now: Duration) {
        let elapsed = now.saturating_sub(self.counted);
        self.counted = self.counted.max(now);
        self.used_s *= (-elapsed.as_secs_f64() / MEMORY.as_secs_f64()).exp();
    }
}

impl Bus {
    /// A bus that transfers `bytes_per_s`, reads and writes together.
    pub fn new(bytes_per_s: u64) -> Arc<Bus> {
        Arc::new(Bus { bytes_per_s, state: Mutex::default() })
    }

    /// Its bandwidth.
    pub fn bytes_per_s(&self) -> u64 {
        self.bytes_per_s
    }

    /// The share of the time until `now` in which it was in use, from 0 to 1. The last seconds
    /// count most.
    pub fn used_share(&self, now: Duration) -> f64 {
        let mut state = self.state();
        state.pass(now);
        (state.used_s / MEMORY.as_secs_f64()).min(1.0)
    }

    /// Accepts a transfer that can begin at `from`; returns when it ends.
    pub(super) fn transfer(&self, from: Duration, bytes: u64) -> Duration {
        let mut state = self.state();
        let time = transfer_time(bytes, self.bytes_per_s);
        state.free_at = from.max(state.free_at) + time;
        state.pass(from);
        state.used_s += time.as_secs_f64();
        state.free_at
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_used_share_is_that_of_the_last_seconds() {
        let bus = Bus::new(1_000_000);
        assert_eq!(bus.used_share(Duration::ZERO), 0.0);
        // Half of its bandwidth for a minute.
        let mut now = Duration::ZERO;
        for _ in 0..600 {
            bus.transfer(now, 50_000);
            now += Duration::from_millis(100);
        }
        assert!((0.48..0.52).contains(&bus.used_share(now)), "{}", bus.used_share(now));
        // More than it can transfer.
        for _ in 0..600 {
            bus.transfer(now, 200_000);
            now += Duration::from_millis(100);
        }
        assert_eq!(bus.used_share(now), 1.0);
        assert!(bus.used_share(now + Duration::from_secs(60)) < 0.01);
    }
}
