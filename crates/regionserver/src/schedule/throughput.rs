//! How fast compactions go: slowly while stores have few files, as fast as possible once flushes would wait (HBase:
//! `PressureAwareCompactionThroughputController`), and of that a part where others are seen to wait longer by it.
//!
//! All compactions of a server share one allowance. Who used more than its time pauses until the time has caught up.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::env::{Env, TaskClass};
use tracing::debug;

use crate::schedule::harm::{Harm, Phase};

/// Between two tasks of a kind that are put on a connection's thread to see how long they wait.
const PROBE_PERIOD: Duration = Duration::from_millis(5);
/// What compactions may add to the slow ones. A sync of the log takes some tenths of it.
const HARM_MAX: Duration = Duration::from_millis(1);
/// Shares of the speed are counted in hundredths: at least this one, so that a compaction comes to its end.
const SHARE_MIN: u64 = 10;
/// What is taken away at once.
const SHARE_LESS: u64 = 30;
/// What is given back at once.
const SHARE_MORE: u64 = 5;

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
    env: Env,
    options: ThroughputOptions,
    allowance: Arc<Mutex<Allowance>>,
}

struct Allowance {
    // Bytes a second by pressure; `None` without limit.
    limit: Option<u64>,
    // The hundredths of it that are had while others are to be spared.
    share: u64,
    // When all that was allowed so far is used up.
    used_until: Duration,
    // When the next task is put on a connection's thread, while they work and while they pause.
    next_probes: [Duration; 2],
    harm: Harm,
}

impl Throughput {
    /// Of a server without pressure.
    pub fn new(env: Env, options: ThroughputOptions) -> Throughput {
        let allowance = Allowance {
            limit: Some(options.lower_bytes),
            share: 100,
            used_until: Duration::ZERO,
            next_probes: [Duration::ZERO; 2],
            harm: Harm::default(),
        };
        Throughput { env, options, allowance: Arc::new(Mutex::new(allowance)) }
    }

    /// Takes the speed for a pressure: 0 if no store has more files than a compaction takes, 1 where flushes wait.
    pub fn tune(&self, pressure: f64) {
        let (lower, higher) =
            (self.options.lower_bytes, self.options.higher_bytes.max(self.options.lower_bytes));
        let limit = lower.saturating_add(((higher - lower) as f64 * pressure.clamp(0.0, 1.0)) as u64);
        lock(&self.allowance).limit = (pressure <= 1.0).then_some(limit);
    }

    /// Waits as long as it takes until so many bytes more are allowed.
    pub async fn pause_after(&self, bytes: u64) {
        let clock = &self.env.clock;
        let pause = lock(&self.allowance).use_up(bytes, clock.monotonic());
        if !pause.is_zero() {
            self.probe(Phase::Pausing);
            clock.sleep(pause).await;
            self.probe(Phase::Working);
        }
    }

    /// Sees how long a task waits for a connection's thread now.
    fn probe(&self, phase: Phase) {
        let (clock, allowance) = (self.env.clock.clone(), self.allowance.clone());
        let begun = clock.monotonic();
        if !lock(&allowance).wants_probe(phase, begun) {
            return;
        }
        self.env.spawn(TaskClass::Connection, async move {
            let waited = clock.monotonic().saturating_sub(begun);
            lock(&allowance).note(phase, waited);
        });
    }
}

impl Allowance {
    /// How long to pause after so many bytes.
    fn use_up(&mut self, bytes: u64, now: Duration) -> Duration {
        // A limit of nothing is none, as in HBase.
        let Some(limit) = self.limit.filter(|limit| *limit > 0) else { return Duration::ZERO };
        // No whole numbers: who wants no limit configures the greatest there is.
        let bytes_a_second = limit as f64 * self.share as f64 / 100.0;
        self.used_until = self.used_until.max(now) + Duration::from_secs_f64(bytes as f64 / bytes_a_second);
        self.used_until - now
    }

    fn wants_probe(&mut self, phase: Phase, now: Duration) -> bool {
        let next = &mut self.next_probes[phase as usize];
        let is_due = now >= *next;
        if is_due {
            *next = now + PROBE_PERIOD;
        }
        is_due
    }

    /// Takes away much where others wait longer, and gives it back little by little.
    fn note(&mut self, phase: Phase, waited: Duration) {
        let Some(harm) = self.harm.note(phase, waited) else { return };
        let before = self.share;
        self.share = match harm > HARM_MAX {
            true => (before * (100 - SHARE_LESS) / 100).max(SHARE_MIN),
            false => (before + SHARE_MORE).min(100),
        };
        if before != self.share {
            debug!(?harm, percent = self.share, "speed of compactions");
        }
    }
}

fn lock(allowance: &Mutex<Allowance>) -> MutexGuard<'_, Allowance> {
    // Numbers: whole after any panic.
    allowance.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn throughput() -> Throughput {
        let options = ThroughputOptions { lower_bytes: 100, higher_bytes: 200 };
        Throughput::new(base::testing::env(1), options)
    }

    /// Seconds that a pause after so many bytes is long, at second 7.
    fn pause(throughput: &Throughput, bytes: u64) -> f64 {
        lock(&throughput.allowance).use_up(bytes, Duration::from_secs(7)).as_secs_f64()
    }

    #[tokio::test(start_paused = true)]
    async fn speed_follows_pressure_and_is_shared() {
        let throughput = throughput();
        assert_eq!(pause(&throughput, 50), 0.5);
        // Two share the allowance.
        assert_eq!(pause(&throughput, 50), 1.0);
        throughput.tune(1.0);
        assert_eq!(pause(&throughput, 200), 2.0);
        throughput.tune(1.1);
        assert_eq!(pause(&throughput, 1 << 40), 0.0);
    }

    #[tokio::test(start_paused = true)]
    async fn who_went_too_fast_waits() {
        let throughput = throughput();
        let begun = throughput.env.clock.monotonic();
        throughput.pause_after(50).await;
        throughput.pause_after(50).await;
        let took = throughput.env.clock.monotonic() - begun;
        assert!((1.0..1.1).contains(&took.as_secs_f64()), "{took:?}");
    }

    /// As often as both kinds are compared: so long a wait while compactions work, none while they pause.
    fn waits(throughput: &Throughput, waited: Duration, times: usize) {
        let mut allowance = lock(&throughput.allowance);
        for _ in 0..times * 100 {
            allowance.note(Phase::Working, waited);
            allowance.note(Phase::Pausing, Duration::ZERO);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_makes_others_wait_goes_slower_until_they_do_not() {
        let throughput = throughput();
        waits(&throughput, 2 * HARM_MAX, 1);
        assert_eq!(pause(&throughput, 70), 1.0);
        waits(&throughput, 2 * HARM_MAX, 100);
        assert_eq!(pause(&throughput, 10), 2.0, "a tenth is left");
        // Not where flushes would wait.
        throughput.tune(1.1);
        assert_eq!(pause(&throughput, 1 << 40), 0.0);
        throughput.tune(0.0);
        waits(&throughput, HARM_MAX, 18);
        assert_eq!(pause(&throughput, 100), 3.0, "all is given back");
    }

    #[tokio::test(start_paused = true)]
    async fn waits_are_measured_while_it_works_and_while_it_pauses() {
        let throughput = throughput();
        for _ in 0..150 {
            throughput.pause_after(10).await;
            // What it works.
            throughput.env.clock.sleep(2 * PROBE_PERIOD).await;
        }
        // Compared once when there were a hundred of each; those behind are half of what the next comparison takes.
        let mut allowance = lock(&throughput.allowance);
        let waits = |_| [Phase::Working, Phase::Pausing];
        let missing = (0..100).flat_map(waits).position(|phase| {
            let compared = allowance.harm.note(phase, Duration::ZERO);
            compared.is_some()
        });
        assert!(missing.is_some_and(|missing| (90..=110).contains(&missing)), "{missing:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_greatest_and_the_smallest_limit() {
        let options = ThroughputOptions { lower_bytes: 1, higher_bytes: u64::MAX };
        let throughput = Throughput::new(base::testing::env(1), options);
        throughput.tune(1.0);
        assert_eq!(pause(&throughput, 1 << 20), 0.0);
        let none = ThroughputOptions { lower_bytes: 0, higher_bytes: 0 };
        assert_eq!(pause(&Throughput::new(base::testing::env(1), none), 1 << 20), 0.0);
        let least = ThroughputOptions { lower_bytes: 1, higher_bytes: 1 };
        let least = Throughput::new(base::testing::env(1), least);
        waits(&least, 2 * HARM_MAX, 100);
        assert_eq!(pause(&least, 1), 10.0, "little is not without limit");
    }
}
