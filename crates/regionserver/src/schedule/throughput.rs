//! The speed limit of compactions. It is low while stores have few files, and there is none once
//! flushes would wait (HBase: `PressureAwareCompactionThroughputController`). It is reduced further
//! while compactions measurably delay client requests.
//!
//! All compactions of a server share one allowance. A compaction that exceeds it pauses until the
//! allowance has caught up.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::env::{Env, TaskClass};
use tracing::debug;

use crate::schedule::probes::{Phase, ProbeComparison};

/// Shortest time between two probes of the same phase on a connection's thread.
const PROBE_PERIOD: Duration = Duration::from_millis(5);
/// Maximum delay of slow probes that compactions may cause. A sync of the log takes a few tenths of
/// it.
const DELAY_MAX: Duration = Duration::from_millis(1);
/// Smallest share of the limit, in percent; it ensures that every compaction finishes.
const SHARE_MIN: u64 = 10;
/// Percentage of the current share by which one comparison reduces it.
const SHARE_DECREASE: u64 = 30;
/// Percentage points by which one comparison raises the share.
const SHARE_INCREASE: u64 = 5;

/// The bounds of the speed limit; the pressure determines the value in between.
#[derive(Clone, Debug)]
pub struct ThroughputOptions {
    /// Bytes per second without pressure (`hbase.hstore.compaction.throughput.lower.bound`).
    pub lower_bytes: u64,
    /// Bytes per second under full pressure (`hbase.hstore.compaction.throughput.higher.bound`).
    pub higher_bytes: u64,
}

impl Default for ThroughputOptions {
    fn default() -> ThroughputOptions {
        ThroughputOptions { lower_bytes: 50 << 20, higher_bytes: 100 << 20 }
    }
}

/// The speed limit of a server's compactions.
pub struct Throughput {
    env: Env,
    options: ThroughputOptions,
    allowance: Arc<Mutex<Allowance>>,
}

struct Allowance {
    // Bytes per second for the current pressure; `None` means unlimited.
    limit: Option<u64>,
    // The percentage of the limit that is in use, to spare client requests.
    share: u64,
    // When the bytes used so far will be within the limit.
    used_until: Duration,
    // When the next probe of each phase is due.
    next_probes: [Duration; 2],
    probes: ProbeComparison,
}

impl Throughput {
    /// Starts with the limit for no pressure.
    pub fn new(env: Env, options: ThroughputOptions) -> Throughput {
        let allowance = Allowance {
            limit: Some(options.lower_bytes),
            share: 100,
            used_until: Duration::ZERO,
            next_probes: [Duration::ZERO; 2],
            probes: ProbeComparison::default(),
        };
        Throughput { env, options, allowance: Arc::new(Mutex::new(allowance)) }
    }

    /// Sets the limit for a pressure: 0 if no store has more files than a compaction takes, 1 where
    /// flushes wait.
    pub fn tune(&self, pressure: f64) {
        let (lower, higher) =
            (self.options.lower_bytes, self.options.higher_bytes.max(self.options.lower_bytes));
        let limit = lower.saturating_add(((higher - lower) as f64 * pressure.clamp(0.0, 1.0)) as u64);
        lock(&self.allowance).limit = (pressure <= 1.0).then_some(limit);
    }

    /// Accounts for `bytes` and waits until the limit allows more.
    pub async fn pause_after(&self, bytes: u64) {
        let clock = &self.env.clock;
        let pause = lock(&self.allowance).use_up(bytes, clock.monotonic());
        if !pause.is_zero() {
            self.probe(Phase::Pausing);
            clock.sleep(pause).await;
            self.probe(Phase::Working);
        }
    }

    /// Measures how long a task waits for a connection's thread, if a probe is due.
    fn probe(&self, phase: Phase) {
        let (clock, allowance) = (self.env.clock.clone(), self.allowance.clone());
        let begun = clock.monotonic();
        if !lock(&allowance).claim_probe(phase, begun) {
            return;
        }
        self.env.spawn(TaskClass::Connection, async move {
            let waited = clock.monotonic().saturating_sub(begun);
            lock(&allowance).record_probe(phase, waited);
        });
    }
}

impl Allowance {
    /// How long to pause after `bytes` bytes.
    fn use_up(&mut self, bytes: u64, now: Duration) -> Duration {
        // A limit of 0 means unlimited, as in HBase.
        let Some(limit) = self.limit.filter(|limit| *limit > 0) else { return Duration::ZERO };
        debug_assert!(self.share >= SHARE_MIN, "compactions are never stopped completely");
        // Floating point, because the greatest integer is configured to mean unlimited.
        let bytes_a_second = limit as f64 * self.share as f64 / 100.0;
        self.used_until = self.used_until.max(now) + Duration::from_secs_f64(bytes as f64 / bytes_a_second);
        self.used_until - now
    }

    fn claim_probe(&mut self, phase: Phase, now: Duration) -> bool {
        let next = &mut self.next_probes[phase as usize];
        let is_due = now >= *next;
        if is_due {
            *next = now + PROBE_PERIOD;
        }
        is_due
    }

    /// Reduces the share quickly while client requests wait longer, and raises it slowly.
    fn record_probe(&mut self, phase: Phase, waited: Duration) {
        let Some(delay) = self.probes.record(phase, waited) else { return };
        let before = self.share;
        self.share = match delay > DELAY_MAX {
            true => (before * (100 - SHARE_DECREASE) / 100).max(SHARE_MIN),
            false => (before + SHARE_INCREASE).min(100),
        };
        if before != self.share {
            debug!(?delay, percent = self.share, "compaction speed changed");
        }
    }
}

fn lock(allowance: &Mutex<Allowance>) -> MutexGuard<'_, Allowance> {
    // Numbers are valid after any panic.
    allowance.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn throughput() -> Throughput {
        let options = ThroughputOptions { lower_bytes: 100, higher_bytes: 200 };
        Throughput::new(base::testing::env(1), options)
    }

    /// Seconds to pause after `bytes` bytes, at second 7.
    fn pause(throughput: &Throughput, bytes: u64) -> f64 {
        lock(&throughput.allowance).use_up(bytes, Duration::from_secs(7)).as_secs_f64()
    }

    #[tokio::test(start_paused = true)]
    async fn speed_follows_pressure_and_is_shared() {
        let throughput = throughput();
        assert_eq!(pause(&throughput, 50), 0.5);
        // Both calls share the allowance.
        assert_eq!(pause(&throughput, 50), 1.0);
        throughput.tune(1.0);
        assert_eq!(pause(&throughput, 200), 2.0);
        throughput.tune(1.1);
        assert_eq!(pause(&throughput, 1 << 40), 0.0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_fast_compaction_pauses() {
        let throughput = throughput();
        let begun = throughput.env.clock.monotonic();
        throughput.pause_after(50).await;
        throughput.pause_after(50).await;
        let took = throughput.env.clock.monotonic() - begun;
        assert!((1.0..1.1).contains(&took.as_secs_f64()), "{took:?}");
    }

    /// Triggers `times` comparisons: probes wait for `waited` while compactions work, and not at
    /// all while they pause.
    fn waits(throughput: &Throughput, waited: Duration, times: usize) {
        let mut allowance = lock(&throughput.allowance);
        for _ in 0..times * 100 {
            allowance.record_probe(Phase::Working, waited);
            allowance.record_probe(Phase::Pausing, Duration::ZERO);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn compactions_slow_down_while_they_delay_requests() {
        let throughput = throughput();
        waits(&throughput, 2 * DELAY_MAX, 1);
        assert_eq!(pause(&throughput, 70), 1.0);
        waits(&throughput, 2 * DELAY_MAX, 100);
        assert_eq!(pause(&throughput, 10), 2.0, "reduced to a tenth");
        // No reduction where flushes would wait.
        throughput.tune(1.1);
        assert_eq!(pause(&throughput, 1 << 40), 0.0);
        throughput.tune(0.0);
        waits(&throughput, DELAY_MAX, 18);
        assert_eq!(pause(&throughput, 100), 3.0, "back at the full share");
    }

    #[tokio::test(start_paused = true)]
    async fn probes_run_while_working_and_pausing() {
        let throughput = throughput();
        for _ in 0..150 {
            throughput.pause_after(10).await;
            // The time for which the compaction works.
            throughput.env.clock.sleep(2 * PROBE_PERIOD).await;
        }
        // One comparison has happened after a hundred probes per phase; the other probes are half
        // of the next comparison.
        let mut allowance = lock(&throughput.allowance);
        let waits = |_| [Phase::Working, Phase::Pausing];
        let missing = (0..100).flat_map(waits).position(|phase| {
            let compared = allowance.probes.record(phase, Duration::ZERO);
            compared.is_some()
        });
        assert!(missing.is_some_and(|missing| (90..=110).contains(&missing)), "{missing:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn extreme_limits_are_supported() {
        let options = ThroughputOptions { lower_bytes: 1, higher_bytes: u64::MAX };
        let throughput = Throughput::new(base::testing::env(1), options);
        throughput.tune(1.0);
        assert_eq!(pause(&throughput, 1 << 20), 0.0);
        let none = ThroughputOptions { lower_bytes: 0, higher_bytes: 0 };
        assert_eq!(pause(&Throughput::new(base::testing::env(1), none), 1 << 20), 0.0);
        let least = ThroughputOptions { lower_bytes: 1, higher_bytes: 1 };
        let least = Throughput::new(base::testing::env(1), least);
        waits(&least, 2 * DELAY_MAX, 100);
        assert_eq!(pause(&least, 1), 10.0, "a small limit is still a limit");
    }
}
