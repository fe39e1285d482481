//! How fast compactions go: slowly while stores have few files, as fast as possible once flushes would wait (HBase:
//! `PressureAwareCompactionThroughputController`).
//!
//! All compactions of a server share one allowance. Who used more than its time gave pauses until the time has caught up.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base::env::Clock;

/// Between these speeds, by pressure.
#[derive(Clone, Debug)]
pub struct ThroughputOptions {
    /// Bytes a second of a server without pressure (`hbase.hstore.compaction.throughput.lower.bound`).
    pub lower_bytes: u64,
    /// Bytes a second under full pressure (`hbase.hstore.compaction.throughput.higher.bound`).
    pub higher_bytes: u64,
}

impl Default for ThroughputOptions {
    fn default() -> ThroughputOptions {
        ThroughputOptions { lower_bytes: 50 << 20, higher_bytes: 100 << 20 }
    }
}

/// The speed of a server's compactions.
pub struct Throughput {
    clock: Arc<dyn Clock>,
    options: ThroughputOptions,
    // Bytes a second; 0 without limit.
    limit: AtomicU64,
    // When all that was allowed so far is used up.
    used_until: Mutex<Duration>,
}

impl Throughput {
    /// Of a server without pressure.
    pub fn new(clock: Arc<dyn Clock>, options: ThroughputOptions) -> Throughput {
        let limit = AtomicU64::new(options.lower_bytes);
        Throughput { clock, options, limit, used_until: Mutex::default() }
    }

    /// Takes the speed for a pressure: 0 if no store has more files than a compaction takes, 1 where flushes wait.
    pub fn tune(&self, pressure: f64) {
        let (lower, higher) =
            (self.options.lower_bytes, self.options.higher_bytes.max(self.options.lower_bytes));
        let limit = match pressure > 1.0 {
            true => 0,
            false => lower + ((higher - lower) as f64 * pressure.max(0.0)) as u64,
        };
        self.limit.store(limit, Relaxed);
    }

    /// How long to pause after so many bytes.
    pub fn pause_after(&self, bytes: u64) -> Duration {
        let limit = self.limit.load(Relaxed);
        if limit == 0 {
            return Duration::ZERO;
        }
        let now = self.clock.monotonic();
        // A time: whole after any panic.
        let mut used_until = self.used_until.lock().unwrap_or_else(PoisonError::into_inner);
        *used_until = (*used_until).max(now) + Duration::from_secs_f64(bytes as f64 / limit as f64);
        *used_until - now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn speed_follows_pressure_and_is_shared() {
        let env = base::testing::env(1);
        let options = ThroughputOptions { lower_bytes: 100, higher_bytes: 200 };
        let throughput = Throughput::new(env.clock.clone(), options);
        // A little time passes from call to call.
        let pauses = |bytes, millis| {
            let pause = throughput.pause_after(bytes);
            let expected = Duration::from_millis(millis);
            assert!(pause <= expected && pause + Duration::from_millis(100) > expected, "{pause:?}");
        };
        pauses(50, 500);
        // Two share the allowance.
        pauses(50, 1000);
        throughput.tune(1.0);
        pauses(200, 2000);
        throughput.tune(1.1);
        assert_eq!(throughput.pause_after(1 << 40), Duration::ZERO);
    }
}
