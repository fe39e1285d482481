//! The compactions that reduce the number of files of a store: how fast they are, and when a flush
//! that waits for them can begin.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Older measurements count little: about a third after this time, in seconds.
const MEMORY_S: f64 = 10.0;
/// Less time than this, in seconds, is no measurement.
const MEASURED_S_MIN: f64 = 0.5;

/// The compactions of a server that have fewer outputs than inputs, and the flushes that wait for
/// them.
#[derive(Debug, Default)]
pub struct CompactionForecast {
    state: Mutex<State>,
}

/// A store: the encoded name of its region, and the index of its family.
pub(crate) type StoreKey = (Arc<str>, usize);

/// A compaction of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExpectedCompaction {
    pub(crate) store: StoreKey,
    /// Bytes of the inputs without compression.
    pub(crate) bytes: u64,
    /// By how many files it reduces the store.
    pub(crate) files: usize,
}

/// Identifies a running compaction or a waiting flush. Numbers ascend in time.
pub(crate) type ForecastNumber = u64;

#[derive(Debug, Default)]
struct State {
    running: BTreeMap<ForecastNumber, RunningCompaction>,
    /// For each flush that waits: the compactions of its stores that have too many files.
    waiting: BTreeMap<ForecastNumber, Vec<ExpectedCompaction>>,
    last_number: ForecastNumber,
    measured_until: Duration,
    /// Recently merged files, the bytes read for that, and the seconds in which at least one
    /// compaction ran.
    files: f64,
    bytes: f64,
    seconds: f64,
}

#[derive(Debug)]
struct RunningCompaction {
    compaction: ExpectedCompaction,
    begun: Duration,
    read_bytes: u64,
}

impl CompactionForecast {
    /// A compaction begins.
    pub(crate) fn begin(&self, compaction: ExpectedCompaction, now: Duration) -> ForecastNumber {
        let mut state = self.advanced(now);
        let number = state.next_number();
        state.running.insert(number, RunningCompaction { compaction, begun: now, read_bytes: 0 });
        number
    }

    /// A compaction has read `bytes` more bytes.
    pub(crate) fn record_read(&self, number: ForecastNumber, bytes: u64, now: Duration) {
        let mut state = self.advanced(now);
        let Some(running) = state.running.get_mut(&number) else { return };
        // The bytes of the cells differ a little from those of the files.
        let bytes = bytes.min(running.bytes_left());
        running.read_bytes += bytes;
        let files = running.compaction.files as f64 * bytes as f64 / running.compaction.bytes.max(1) as f64;
        state.files += files;
        state.bytes += bytes as f64;
    }

    /// All inputs of a compaction were read.
    pub(crate) fn complete(&self, number: ForecastNumber, now: Duration) {
        self.record_read(number, u64::MAX, now);
    }

    /// A compaction ended or failed.
    pub(crate) fn end(&self, number: ForecastNumber, now: Duration) {
        let ended = self.advanced(now).running.remove(&number);
        debug_assert!(ended.is_some(), "a compaction begins before it ends");
    }

    /// By how many files per second recent compactions reduced the number of files, while at least
    /// one ran; `None` if that is not known yet.
    pub fn files_per_s(&self) -> Option<f64> {
        let state = self.lock();
        state.is_measured().then(|| state.files / state.seconds)
    }

    /// A flush begins to wait.
    pub(crate) fn begin_wait(&self) -> ForecastNumber {
        let mut state = self.lock();
        let number = state.next_number();
        state.waiting.insert(number, Vec::new());
        number
    }

    /// How long a flush is likely to wait for compactions of these stores. `None` if that is not
    /// known.
    pub(crate) fn time_to_wait(
        &self,
        number: ForecastNumber,
        stores: Vec<ExpectedCompaction>,
        now: Duration,
    ) -> Option<Duration> {
        let mut state = self.lock();
        state.waiting.insert(number, stores);
        state.time_to_wait(number, now)
    }

    /// A flush waits no longer.
    pub(crate) fn end_wait(&self, number: ForecastNumber) {
        self.lock().waiting.remove(&number);
    }

    /// The state, with the time up to `now` counted.
    fn advanced(&self, now: Duration) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        let passed = now.saturating_sub(state.measured_until).as_secs_f64();
        state.measured_until = now;
        if !state.running.is_empty() {
            let remembered = (-passed / MEMORY_S).exp();
            state.files *= remembered;
            state.bytes *= remembered;
            state.seconds = state.seconds * remembered + MEMORY_S * (1.0 - remembered);
        }
        state
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Numbers that are valid after any panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunningCompaction {
    fn bytes_left(&self) -> u64 {
        self.compaction.bytes - self.read_bytes
    }
}

impl State {
    fn next_number(&mut self) -> ForecastNumber {
        self.last_number += 1;
        self.last_number
    }

    fn is_measured(&self) -> bool {
        self.seconds >= MEASURED_S_MIN
    }

    /// The mean speed of one compaction, in bytes per second.
    fn bytes_per_s_of_one(&self) -> Option<f64> {
        let all = self.is_measured().then(|| self.bytes / self.seconds)?;
        Some(all / self.running.len().max(1) as f64)
    }

    /// How long a flush is likely to wait: each compaction that ends is followed by one for the
    /// flush that waits longest.
    fn time_to_wait(&self, number: ForecastNumber, now: Duration) -> Option<Duration> {
        let lefts = self.running.values().map(|running| self.time_left(running, now));
        let mut free_after: Vec<Duration> = lefts.collect::<Option<_>>()?;
        if free_after.is_empty() {
            free_after.push(Duration::ZERO);
        }
        let mut last = Duration::ZERO;
        for (waiting, stores) in self.waiting.range(..=number) {
            for store in stores {
                let end = match self.time_left_of_store(&store.store, now) {
                    Some(left) => left,
                    None => {
                        let next = free_after.iter_mut().min().expect("not empty");
                        let time = seconds(store.bytes as f64 / self.bytes_per_s_of_one()?)?;
                        *next = next.saturating_add(time);
                        *next
                    }
                };
                if *waiting == number {
                    last = last.max(end);
                }
            }
        }
        Some(last)
    }

    /// How long the running compactions of a store take until the first one ends. `None` if none
    /// runs.
    fn time_left_of_store(&self, store: &StoreKey, now: Duration) -> Option<Duration> {
        let of_store = self.running.values().filter(|running| running.compaction.store == *store);
        of_store.filter_map(|running| self.time_left(running, now)).min()
    }

    /// How long a compaction is likely to take from now on, at its own speed if that is known.
    fn time_left(&self, running: &RunningCompaction, now: Duration) -> Option<Duration> {
        let took = now.saturating_sub(running.begun).as_secs_f64();
        let is_measured = took >= MEASURED_S_MIN && running.read_bytes > 0;
        let speed = match is_measured {
            true => running.read_bytes as f64 / took,
            false => self.bytes_per_s_of_one()?,
        };
        seconds(running.bytes_left() as f64 / speed)
    }
}

fn seconds(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// A compaction of 10 files with 100 MiB.
    fn compaction(region: &str) -> ExpectedCompaction {
        ExpectedCompaction { store: (region.into(), 0), bytes: 100 * MIB, files: 9 }
    }

    /// Reads `mib_per_s` in each of the compactions, every 100 ms.
    fn read(
        forecast: &CompactionForecast,
        running: &[ForecastNumber],
        mib_per_s: u64,
        from_ms: u64,
        until_ms: u64,
    ) {
        for ms in (from_ms..until_ms).step_by(100) {
            for number in running {
                forecast.record_read(*number, mib_per_s * MIB / 10, at(ms + 100));
            }
        }
    }

    #[test]
    fn concurrent_compactions_add_up_and_idle_time_does_not_count() {
        let forecast = CompactionForecast::default();
        assert_eq!(forecast.files_per_s(), None);
        let running = ["a", "b"].map(|region| forecast.begin(compaction(region), at(60_000)));
        // Each of the two merges 0.9 files per second.
        read(&forecast, &running, 10, 60_000, 70_000);
        let both = forecast.files_per_s().unwrap();
        assert!((1.7..1.9).contains(&both), "{both}");
        for number in running {
            forecast.end(number, at(70_000));
        }
        assert_eq!(forecast.files_per_s(), Some(both));
        let slow = forecast.begin(compaction("a"), at(1_000_000));
        assert_eq!(forecast.files_per_s(), Some(both));
        read(&forecast, &[slow], 1, 1_000_000, 1_060_000);
        let slow = forecast.files_per_s().unwrap();
        assert!((0.08..0.1).contains(&slow), "{slow}");
    }

    #[test]
    fn a_short_time_is_no_measurement() {
        let forecast = CompactionForecast::default();
        let running = forecast.begin(compaction("a"), at(1000));
        forecast.record_read(running, 50 * MIB, at(1100));
        assert_eq!(forecast.files_per_s(), None);
        let flush = forecast.begin_wait();
        assert_eq!(forecast.time_to_wait(flush, vec![compaction("a")], at(1100)), None);
    }

    #[test]
    fn a_flush_waits_for_the_running_compaction_of_its_store() {
        let forecast = CompactionForecast::default();
        let [fast, slow] = ["a", "b"].map(|region| forecast.begin(compaction(region), at(0)));
        read(&forecast, &[fast], 20, 0, 2000);
        read(&forecast, &[slow], 10, 0, 2000);
        let flush = forecast.begin_wait();
        let time_to_wait =
            |region, ms| forecast.time_to_wait(flush, vec![compaction(region)], at(ms)).unwrap();
        assert_eq!(time_to_wait("a", 2000), at(3000));
        assert_eq!(time_to_wait("b", 2000), at(8000));
        // A compaction that stands still takes longer than expected before.
        assert_eq!(time_to_wait("b", 4000), at(16_000));
        forecast.complete(slow, at(4000));
        assert_eq!(time_to_wait("b", 4000), at(0));
    }

    #[test]
    fn flushes_wait_in_turn_for_the_next_compactions() {
        let forecast = CompactionForecast::default();
        let running = ["a", "b"].map(|region| forecast.begin(compaction(region), at(0)));
        read(&forecast, &running, 10, 0, 2000);
        let flushes: Vec<_> = ["c", "d", "e"].map(|region| (forecast.begin_wait(), region)).into();
        let time_to_wait = |(flush, region)| {
            forecast.time_to_wait(flush, vec![compaction(region)], at(2000)).unwrap().as_millis()
        };
        for _ in 0..2 {
            // The two that run take 8 s more, and each one after them about 10 s.
            let waits: Vec<_> = flushes.iter().map(|flush| time_to_wait(*flush)).collect();
            assert!((17_500..18_500).contains(&waits[0]) && waits[0] == waits[1], "{waits:?}");
            assert!((27_500..28_500).contains(&waits[2]), "{waits:?}");
        }
        forecast.end_wait(flushes[0].0);
        let wait = time_to_wait(flushes[2]);
        assert!((17_500..18_500).contains(&wait), "{wait}");
    }
}
