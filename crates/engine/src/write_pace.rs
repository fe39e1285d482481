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

/// The longest pause. A client writes once per pause, so a slow pace of many clients needs long
/// ones.
const PAUSE_MAX: Duration = Duration::from_secs(5);
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
    /// The end of the last flush, or the begin of the first that runs.
    measured_until: Duration,
    /// Bytes of recent flushes, and the seconds in which at least one ran.
    flushed_bytes: f64,
    flush_seconds: f64,
    /// The writes to all regions.
    accepted: AcceptedBytes,
}

#[derive(Debug)]
struct ActiveFlush {
    phase: FlushPhase,
    /// The writes to the region.
    accepted: AcceptedBytes,
}

#[derive(Debug)]
enum FlushPhase {
    /// It waits for compactions, probably until this time.
    Waits(Duration),
    /// It runs.
    Runs { begun: Duration, bytes: u64 },
}

/// The bytes of accepted writes that exceed what the pace allowed so far.
///
/// They are kept as bytes and not as a time, so that a moment of low speed does not delay the
/// writes after it.
#[derive(Debug, Default)]
struct AcceptedBytes {
    ahead: f64,
    at: Duration,
}

impl WritePace {
    /// A flush waits for compactions that must come first, probably until `end`. Called again when
    /// `end` changes.
    pub(crate) fn flush_waits(&self, region: &Arc<str>, end: Duration) {
        self.lock().flush(region, FlushPhase::Waits(end));
    }

    /// A flush waits no longer: it begins next, or is given up.
    pub(crate) fn flush_waits_no_longer(&self, region: &Arc<str>) {
        self.lock().active.remove(region);
    }

    /// A flush of about `bytes` bytes begins.
    pub fn flush_begun(&self, region: &Arc<str>, bytes: u64, now: Duration) {
        let mut state = self.lock();
        if !state.active.values().any(ActiveFlush::runs) {
            state.measured_until = now;
        }
        state.flush(region, FlushPhase::Runs { begun: now, bytes });
    }

    /// A flush ended after it emptied memstores of `bytes` bytes; 0 if it failed.
    pub fn flush_ended(&self, region: &Arc<str>, bytes: u64, now: Duration) {
        let mut state = self.lock();
        let ended = state.active.remove(region);
        debug_assert!(ended.is_some_and(|flush| flush.runs()), "a flush begins before it ends");
        if bytes < MEASURED_BYTES_MIN {
            return;
        }
        let took = now.saturating_sub(state.measured_until);
        state.flushed_bytes = state.flushed_bytes * MEMORY + bytes as f64;
        state.flush_seconds = state.flush_seconds * MEMORY + took.as_secs_f64();
        state.measured_until = now;
    }

    /// Whether a flush runs, or waits for compactions. If none does, no writer has to wait.
    pub fn has_active_flushes(&self) -> bool {
        !self.lock().active.is_empty()
    }

    /// Bytes per second that flushes empty, or `None` if that is not known yet.
    pub fn flush_speed(&self) -> Option<f64> {
        self.lock().flush_speed()
    }

    /// How long a write of `bytes` bytes to `region` must wait at `now`. A caller that only needs
    /// the time passes 0 bytes.
    pub(crate) fn pause(&self, region: &str, bytes: u64, free: FreeMemory, now: Duration) -> Duration {
        let pause = self.lock().pause(region, bytes, free, now);
        if bytes > 0 && !pause.is_zero() {
            self.paused_writes.fetch_add(1, Relaxed);
        }
        pause
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
    fn flush(&mut self, region: &Arc<str>, phase: FlushPhase) {
        match self.active.get_mut(region) {
            Some(flush) => flush.phase = phase,
            None => {
                let flush = ActiveFlush { phase, accepted: AcceptedBytes::default() };
                self.active.insert(region.clone(), flush);
            }
        }
    }

    fn flush_speed(&self) -> Option<f64> {
        (self.flush_seconds > 0.0).then(|| (self.flushed_bytes / self.flush_seconds).max(1.0))
    }

    /// Writers may fill the memory of a region until its flush ends, and that of the server until
    /// the next flush ends.
    fn pause(&mut self, region: &str, bytes: u64, free: FreeMemory, now: Duration) -> Duration {
        let flush_speed = self.flush_speed().unwrap_or(ASSUMED_SPEED);
        let time_left = |flush: &ActiveFlush| flush.time_left(flush_speed, now);
        let Some(next) = self.active.values().map(time_left).min() else { return Duration::ZERO };
        let of_server = self.accepted.pause(bytes, speed(free.of_server, next), now);
        let of_region = self.active.get_mut(region).map(|flush| {
            let allowed = speed(free.of_region, flush.time_left(flush_speed, now));
            flush.accepted.pause(bytes, allowed, now)
        });
        of_server.max(of_region.unwrap_or_default())
    }
}

/// The speed, in bytes per second, at which the free memory lasts for a time.
fn speed(free: u64, time: Duration) -> f64 {
    free.max(1) as f64 / time.as_secs_f64()
}

impl ActiveFlush {
    fn runs(&self) -> bool {
        matches!(self.phase, FlushPhase::Runs { .. })
    }

    /// How long the flush is likely to take from now on. It empties `flush_speed` bytes per second.
    fn time_left(&self, flush_speed: f64, now: Duration) -> Duration {
        let left = match self.phase {
            // The flush itself follows, but it frees memory at once.
            FlushPhase::Waits(end) => end.saturating_sub(now),
            FlushPhase::Runs { begun, bytes } => {
                let since = now.saturating_sub(begun);
                let estimated = Duration::from_secs_f64(bytes as f64 / flush_speed);
                estimated.saturating_sub(since).max(since.mul_f64(OVERDUE_SHARE))
            }
        };
        left.max(LEFT_MIN)
    }
}

impl AcceptedBytes {
    /// How long a write of `bytes` bytes must wait at `now`, at a speed of `allowed` bytes per
    /// second.
    fn pause(&mut self, bytes: u64, allowed: f64, now: Duration) -> Duration {
        let passed = now.saturating_sub(self.at).as_secs_f64();
        let ahead = (self.ahead - allowed * passed).max(0.0);
        self.ahead = (ahead + bytes as f64).min(allowed * PAUSE_MAX.as_secs_f64());
        self.at = now;
        Duration::from_secs_f64((ahead / allowed).min(PAUSE_MAX.as_secs_f64()))
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
        // In the end, one write per longest pause.
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
    fn the_free_memory_lasts_until_compactions_make_room() {
        let region = "a".into();
        let pace = measured(&region);
        pace.flush_waits(&region, at(5000));
        let (written, longest) = write(&pace, &region, 20 * MIB, (at(2000), at(4900)));
        assert!((16 * MIB..=20 * MIB).contains(&written), "{written} of 20 MiB");
        assert!(longest < at(50), "{longest:?}");
        // The wait does not count as a flush.
        pace.flush_waits_no_longer(&region);
        assert_eq!(pace.flush_speed(), Some(10.0 * MIB as f64));
        assert_eq!(write(&pace, &region, MIB, (at(5000), at(5001))).1, Duration::ZERO);
    }

    #[test]
    fn writes_have_the_present_pace_and_not_an_earlier_one() {
        let region: Arc<str> = "a".into();
        let pace = WritePace::default();
        pace.flush_waits(&region, at(100_000));
        let free = FreeMemory { of_region: 100 * MIB, of_server: u64::MAX };
        let pauses: Vec<_> = (0..10).map(|_| pace.pause(&region, MIB / 10, free, at(0))).collect();
        assert!(pauses[0].is_zero() && pauses[9] > at(800), "{pauses:?}");
        // The compaction is faster than expected.
        pace.flush_waits(&region, at(1000));
        let pause = pace.pause(&region, MIB / 10, free, at(0));
        assert!(pause < at(20), "{pause:?}");
    }

    #[test]
    fn writes_to_one_region_do_not_delay_those_to_another() {
        let (slow, fast) = ("a".into(), "b".into());
        let pace = WritePace::default();
        pace.flush_waits(&slow, at(100_000));
        pace.flush_waits(&fast, at(1000));
        let free = FreeMemory { of_region: 100 * MIB, of_server: 1000 * MIB };
        for _ in 0..10 {
            pace.pause(&slow, MIB / 10, free, at(0));
        }
        assert!(pace.pause(&slow, MIB / 10, free, at(0)) > at(500));
        assert!(pace.pause(&fast, MIB / 10, free, at(0)) < at(20));
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
