//! The system's clocks.
#![allow(clippy::disallowed_methods, reason = "this is the clock that all others take through Env")]

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use base::BoxFuture;
use base::env::Clock;

/// Wall clock, monotonic clock and tokio's timers.
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// A clock whose monotonic time begins now.
    pub fn start() -> SystemClock {
        SystemClock { start: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now_ms(&self) -> u64 {
        // A clock before 1970 is broken; 0 keeps the server usable.
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
    }

    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}
