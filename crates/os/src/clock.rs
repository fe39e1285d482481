//! The system's clocks.
#![allow(clippy::disallowed_methods, reason = "implements the clock that all other code gets through Env")]

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base::BoxFuture;
use base::env::Clock;

/// Nanoseconds per second.
const SECOND_NANOS: i64 = 1_000_000_000;

/// Wall clock, monotonic clock and tokio's timers.
pub struct SystemClock {
    start: libc::timespec,
}

impl SystemClock {
    /// A clock whose monotonic time starts now.
    pub fn start() -> SystemClock {
        SystemClock { start: monotonic_now() }
    }
}

impl Clock for SystemClock {
    fn now_ms(&self) -> u64 {
        // A clock before 1970 is broken; 0 keeps the server usable.
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
    }

    fn monotonic(&self) -> Duration {
        // Read several times per call. std's Instant costs twice as much, because it handles clocks
        // that go backwards.
        let (now, start) = (monotonic_now(), self.start);
        let (seconds, nanos) = (now.tv_sec - start.tv_sec, now.tv_nsec - start.tv_nsec);
        let borrowed = nanos < 0;
        Duration::new(
            (seconds - i64::from(borrowed)) as u64,
            (nanos + if borrowed { SECOND_NANOS } else { 0 }) as u32,
        )
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// Monotonic time of the system; only differences are meaningful. It includes the time for which
/// the machine was suspended: leases end meanwhile, so a resumed server must not trust its own.
fn monotonic_now() -> libc::timespec {
    read(libc::CLOCK_BOOTTIME)
}

/// The time of a clock that every Linux has.
fn read(clock: libc::clockid_t) -> libc::timespec {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes only to `now`. It cannot fail, because the clock exists.
    unsafe { libc::clock_gettime(clock, &mut now) };
    now
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On a machine that was suspended, `CLOCK_MONOTONIC` shows an earlier time.
    #[test]
    fn the_monotonic_clock_counts_suspended_time() {
        let (before, now, after) = (read(libc::CLOCK_BOOTTIME), monotonic_now(), read(libc::CLOCK_BOOTTIME));
        let [before, now, after] = [before, now, after].map(|time| (time.tv_sec, time.tv_nsec));
        assert!(before <= now && now <= after, "{before:?} {now:?} {after:?}");
    }
}
