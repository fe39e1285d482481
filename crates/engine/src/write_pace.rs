//! Slows writers down when they fill memstores faster than flushes empty them.
//!
//! Without this, writers run at full speed until a limit, and then all are refused until a flush
//! ends. With it, the memory that is left is spread over the time that the flush is likely to take:
//! writers that are faster wait a little before each write. This takes effect if the disk of the
//! files is slow and the disk of the logs is fast, and if flushes wait for compactions.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Flushes of fewer bytes say little about the speed: opening and syncing a file takes most of
/// their time.
const MEASURED_BYTES_MIN: u64 = 1 << 20;
/// The weight of what was measured before, at each new measurement.
const MEMORY: f64 = 0.7;
/// A flush that takes longer than estimated is expected to take this share of the time so far.
const OVERDUE_SHARE: f64 = 0.5;
/// The speed of flushes before one was measured, in bytes per second: less than that of most disks.
const ASSUMED_SPEED: f64 = 32.0 * 1024.0 * 1024.0;
/// The shortest time that a flush is expected to take.
const LEFT_MIN: Duration = Duration::from_millis(10);

/// The pace of all writers of a server.
#[derive(Debug, Default)]
pub struct WritePace {
    state: Mutex<State>,
    paused_writes: AtomicU64,
}

/// The memory that writers have until they are refused, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FreeMemory {
    /// Of the region.
    pub(crate) of_region: u64,
    /// Of all regions together.
    pub(crate) of_server: u64,
}

#[derive(Debug, Default)]
struct State {
    /// The active flushes, by the encoded name of the region.
    active: HashMap<Arc<str>, ActiveFlush>,
    /// The end of the last flush, or the begin of the first that is active.
    measured_until: Duration,
    /// Bytes of recent flushes, and the seconds in which at least one was active.
    flushed_bytes: f64,
    flush_seconds: f64,
    /// When the writes accepted so far will have taken the time that the pace allows.
    accepted_until: Duration,
}

#[derive(Debug)]
struct ActiveFlush {
    begun: Duration,
    bytes: u64,
}

impl WritePace {
    /// A flush of about `bytes` bytes begins, or waits for compactions that must come first.
    pub fn flush_begun(&self, region: &Arc<str>, bytes: u64, now: Duration) {
        let mut state = self.lock();
        if state.active.is_empty() {
            state.measured_until = now;
        }
        state.active.insert(region.clone(), ActiveFlush { begun: now, bytes });
    }

    /// A flush ended after it emptied memstores of `bytes` bytes; 0 if it failed.
    pub fn flush_ended(&self, region: &Arc<str>, bytes: u64, now: Duration) {
        let mut state = self.lock();
        let was_active = state.active.remove(region).is_some();
        debug_assert!(was_active, "a flush begins before it ends");
        if bytes < MEASURED_BYTES_MIN {
            return;
        }
        let took = now.saturating_sub(state.measured_until);
        state.flushed_bytes = state.flushed_bytes * MEMORY + bytes as f64;
        state.flush_seconds = state.flush_seconds * MEMORY + took.as_secs_f64();
        state.measured_until = now;
    }

    /// Bytes per second that flushes empty, or `None` if that is not known yet.
    pub fn flush_speed(&self) -> Option<f64> {
        self.lock().flush_speed()
    }

    /// How long a write of `bytes` bytes to `region` must wait at `now`.
    pub(crate) fn pause(&self, region: &str, bytes: u64, free: FreeMemory, now: Duration) -> Duration {
        let mut state = self.lock();
        let Some(allowed) = state.allowed_speed(region, free, now) else { return Duration::ZERO };
        let begin = state.accepted_until.max(now);
        let takes = Duration::from_secs_f64((bytes as f64 / allowed).min(PAUSE_MAX.as_secs_f64()));
        state.accepted_until = (begin + takes).min(now + PAUSE_MAX);
        if begin > now {
            self.paused_writes.fetch_add(1, Relaxed);
        }
        begin - now
    }

    /// Number of writes that had to wait.
    pub fn paused_writes(&self) -> u64 {
        self.paused_writes.load(Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Numbers that are valid after any panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn flush_speed(&self) -> Option<f64> {
        (self.flush_seconds > 0.0).then(|| (self.flushed_bytes / self.flush_seconds).max(1.0))
    }

    /// Bytes per second that writers may write until the next flush ends; `None` without a limit.
    fn allowed_speed(&self, region: &str, free: FreeMemory, now: Duration) -> Option<f64> {
        let of_region = self.active.get(region).map(|flush| self.time_left(flush, now));
        let next = self.active.values().map(|flush| self.time_left(flush, now)).min();
        let speed = |free: u64, left: Duration| free.max(1) as f64 / left.as_secs_f64();
        let of_region = of_region.map(|left| speed(free.of_region, left));
        let of_server = next.map(|left| speed(free.of_server, left));
        of_region.into_iter().chain(of_server).reduce(f64::min)
    }

    /// How long a flush is likely to take from now on.
    fn time_left(&self, flush: &ActiveFlush, now: Duration) -> Duration {
        let since = now.saturating_sub(flush.begun);
        let speed = self.flush_speed().unwrap_or(ASSUMED_SPEED);
        let estimated = Duration::from_secs_f64(flush.bytes as f64 / speed);
        estimated.saturating_sub(since).max(since.mul_f64(OVERDUE_SHARE)).max(LEFT_MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// A pace after a flush of 10 MiB in one second.
    fn measured(region: &Arc<str>) -> WritePace {
        let pace = WritePace::default();
        pace.flush_begun(region, 10 * MIB, at(0));
        pace.flush_ended(region, 10 * MIB, at(1000));
        pace
    }

    /// Writes all the time from `from` to `to`, with memory for `free` bytes. Returns the bytes
    /// written, and the longest pause.
    fn write(pace: &WritePace, region: &str, free: u64, (from, to): (Duration, Duration)) -> (u64, Duration) {
        let (mut now, mut written, mut longest) = (from, 0, Duration::ZERO);
        while now < to && written < 1000 * MIB {
            let left = free.saturating_sub(written);
            let pause =
                pace.pause(region, MIB / 64, FreeMemory { of_region: left, of_server: u64::MAX }, now);
            now += pause;
            longest = longest.max(pause);
            written += MIB / 64;
        }
        (written, longest)
    }

    #[test]
    fn the_speed_is_that_of_flushes_at_the_same_time() {
        let (pace, a, b) = (WritePace::default(), "a".into(), "b".into());
        assert_eq!(pace.flush_speed(), None);
        pace.flush_begun(&a, 0, at(1000));
        pace.flush_begun(&b, 0, at(1000));
        pace.flush_ended(&a, 10 * MIB, at(3000));
        assert_eq!(pace.flush_speed(), Some(5.0 * MIB as f64));
        pace.flush_ended(&b, 20 * MIB, at(4000));
        let expected = (10.0 * MEMORY + 20.0) / (2.0 * MEMORY + 1.0) * MIB as f64;
        assert!((pace.flush_speed().unwrap() - expected).abs() < 1.0);
        // The time without a flush does not count, and neither do small and failed flushes.
        for (begin, bytes) in [(60_000, 0), (70_000, MIB / 2)] {
            pace.flush_begun(&a, 0, at(begin));
            pace.flush_ended(&a, bytes, at(begin + 1000));
        }
        assert!((pace.flush_speed().unwrap() - expected).abs() < 1.0);
    }

    #[test]
    fn the_free_memory_lasts_until_the_end_of_the_flush() {
        let region = "a".into();
        let pace = measured(&region);
        pace.flush_begun(&region, 40 * MIB, at(2000));
        let (written, longest) = write(&pace, &region, 20 * MIB, (at(2000), at(5900)));
        assert!((16 * MIB..=20 * MIB).contains(&written), "{written} of 20 MiB");
        assert!(longest < at(50), "{longest:?}");
        // Without a pace, at 100 MiB/s, the memory is used up after 0.2 s. Then no writer
        // continues.
        let naive = write(&WritePace::default(), &region, 20 * MIB, (at(2000), at(5900)));
        assert_eq!(naive, (1000 * MIB, Duration::ZERO), "nothing makes writers wait");
        let standstill = at(5900) - at(2000 + 20 * 1000 / 100);
        assert!(standstill > 50 * longest, "{standstill:?} and {longest:?}");
    }

    #[test]
    fn the_free_memory_outlasts_a_flush_that_takes_longer_than_estimated() {
        let region = "a".into();
        let pace = measured(&region);
        pace.flush_begun(&region, 10 * MIB, at(2000));
        let (written, longest) = write(&pace, &region, 20 * MIB, (at(2000), at(6000)));
        // In the end, one write per second.
        let expected = 20 * MIB + 4 * MIB / 64;
        assert!(written < expected, "{written} of 20 MiB");
        assert!(longest <= PAUSE_MAX);
        // Also without an estimate.
        let pace = WritePace::default();
        pace.flush_begun(&region, 10 * MIB, at(2000));
        let (written, _) = write(&pace, &region, 20 * MIB, (at(2000), at(6000)));
        assert!(written < expected, "{written} of 20 MiB");
    }

    #[test]
    fn nothing_waits_without_a_flush_or_with_much_memory() {
        let region = "a".into();
        let pace = measured(&region);
        assert_eq!(write(&pace, &region, MIB, (at(2000), at(2001))).1, Duration::ZERO);
        pace.flush_begun(&region, 10 * MIB, at(2000));
        let free = FreeMemory { of_region: 400 * MIB, of_server: 400 * MIB };
        // 100 MiB/s.
        let pauses = (0..1000).map(|ms| pace.pause(&region, MIB / 10, free, at(2000 + ms)));
        assert!(pauses.max().unwrap() < at(1));
    }
}
