//! The most requested rows over the last minute, and the most requested regions over the last hour.
//!
//! Row requests are sampled: one in `STRIDE` is counted, with that weight, in a sketch of bounded
//! memory ([`Hottest`]). The threads share a few sketches. Regions count all of their requests
//! anyway, so their heat is the increase of that counter since the last interval.
//! [`HotSpots::end_interval`] ends each interval; the server calls it every ten seconds by default
//! (`grampus.history.period`).

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::hottest::Hottest;
use base::metrics::COUNTING;
use engine::Region;

use crate::regions::OnlineRegions;

/// Intervals that the list of hot rows covers: one minute of ten-second intervals.
pub const ROW_INTERVALS: usize = 6;
/// Intervals that are retained for regions: one hour.
const REGION_INTERVALS: usize = 360;
/// Average number of row requests per counted request; a power of two.
const STRIDE: u32 = 32;
/// Capacity of a sketch, in rows.
const ROWS_MAX: usize = 512;
/// Maximum number of rows, and of regions, that are retained per interval.
const ROWS_RETAINED: usize = 100;
const REGIONS_RETAINED: usize = 40;
/// Length of the row prefix that is counted; longer rows with the same prefix count as one.
const ROW_LEN_MAX: usize = 256;
/// Number of sketches; several threads may share one.
const SKETCHES: usize = 8;

/// The region number in 8 bytes, followed by the row.
type RowKey = Vec<u8>;

/// The most requested rows and regions of a server.
pub struct HotSpots {
    sketches: [Mutex<Hottest>; SKETCHES],
    intervals: Mutex<Intervals>,
}

struct Intervals {
    // Start of the current interval.
    begun: Duration,
    rows: VecDeque<(Duration, Vec<(RowKey, u64)>)>,
    regions: VecDeque<RegionInterval>,
    // Request counter of each region at the end of the last interval.
    last_requests: HashMap<NonZeroU64, u64>,
}

/// Requests per region in one interval.
struct RegionInterval {
    end_ms: u64,
    length: Duration,
    requests: Vec<(Arc<str>, u64)>,
}

/// A frequently requested row.
#[derive(Clone, Debug, PartialEq)]
pub struct HotRow {
    /// Its table.
    pub table: String,
    /// The full name of its region, printable.
    pub region: Arc<str>,
    /// The row, or its first bytes if it is long.
    pub row: Vec<u8>,
    /// Requests per second.
    pub rate: f64,
}

/// Requests of the hottest regions over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeatMap {
    /// End of each column, in milliseconds since the Unix epoch.
    pub ends_ms: Vec<u64>,
    /// Region names, hottest in total first, each with its requests per second in each column.
    pub rows: Vec<(Arc<str>, Vec<f64>)>,
}

impl HotSpots {
    /// Starts without any counts; `now` is a time of the monotonic clock.
    pub fn new(now: Duration) -> HotSpots {
        HotSpots {
            sketches: std::array::from_fn(|_| Mutex::new(Hottest::new(ROWS_MAX))),
            intervals: Mutex::new(Intervals {
                begun: now,
                rows: VecDeque::new(),
                regions: VecDeque::new(),
                last_requests: HashMap::new(),
            }),
        }
    }

    /// Records a request for a row of a region.
    #[inline]
    pub fn record(&self, region: &Region, row: &[u8]) {
        thread_local! {
            static TO_SKIP: Cell<u32> = const { Cell::new(0) };
        }
        if !COUNTING {
            return;
        }
        let left = TO_SKIP.get();
        if left > 0 {
            return TO_SKIP.set(left - 1);
        }
        TO_SKIP.set(next_stride());
        self.count(region.number(), row);
    }

    #[cold]
    fn count(&self, region: NonZeroU64, row: &[u8]) {
        thread_local! {
            static KEY: RefCell<RowKey> = const { RefCell::new(Vec::new()) };
        }
        KEY.with_borrow_mut(|key| {
            key.clear();
            key.extend_from_slice(&region.get().to_be_bytes());
            key.extend_from_slice(&row[..row.len().min(ROW_LEN_MAX)]);
            lock(&self.sketches[own_sketch()]).add(key, STRIDE.into());
        });
    }

    /// Ends the current interval at `now` on the monotonic clock and `now_ms` on the wall clock.
    pub fn end_interval(&self, regions: &OnlineRegions, now: Duration, now_ms: u64) {
        let mut rows: HashMap<RowKey, u64> = HashMap::new();
        for sketch in &self.sketches {
            let counted = lock(sketch).take();
            counted.into_items().for_each(|(row, count)| *rows.entry(row).or_default() += count);
        }
        let mut intervals = lock(&self.intervals);
        let length = now.saturating_sub(intervals.begun);
        intervals.begun = now;
        let mut last_requests = HashMap::new();
        let mut requests = Vec::new();
        for region in regions.unsorted() {
            let (number, count) = (region.number(), region.requests());
            let before = intervals.last_requests.get(&number).copied().unwrap_or(0);
            last_requests.insert(number, count);
            if count > before {
                requests.push((region.name().clone(), count - before));
            }
        }
        intervals.last_requests = last_requests;
        let requests = top(requests, REGIONS_RETAINED);
        push(&mut intervals.regions, RegionInterval { end_ms: now_ms, length, requests }, REGION_INTERVALS);
        push(&mut intervals.rows, (length, top(rows.into_iter().collect(), ROWS_RETAINED)), ROW_INTERVALS);
    }

    /// The most requested rows of the last minute, hottest first; `now` is a time of the monotonic
    /// clock.
    pub fn hottest_rows(&self, regions: &OnlineRegions, now: Duration, count: usize) -> Vec<HotRow> {
        let mut rows: HashMap<RowKey, u64> = HashMap::new();
        let mut length = Duration::ZERO;
        let intervals = lock(&self.intervals);
        for (of_interval, counted) in &intervals.rows {
            length += *of_interval;
            counted.iter().for_each(|(row, count)| *rows.entry(row.clone()).or_default() += count);
        }
        length += now.saturating_sub(intervals.begun);
        drop(intervals);
        for sketch in &self.sketches {
            let counted = lock(sketch).clone();
            counted.into_items().for_each(|(row, count)| *rows.entry(row).or_default() += count);
        }
        let row = |(key, requests): (RowKey, u64)| {
            let (number, row) = key.split_first_chunk()?;
            let region = regions.by_number(NonZeroU64::new(u64::from_be_bytes(*number))?)?;
            let (table, name) = (region.info().table.to_string(), region.name().clone());
            Some(HotRow { table, region: name, row: row.to_vec(), rate: rate(requests, length) })
        };
        top(rows.into_iter().collect(), count).into_iter().filter_map(row).collect()
    }

    /// The `rows` hottest regions of the last hour, in at most `columns` columns.
    pub fn heat_map(&self, rows: usize, columns: usize) -> HeatMap {
        let intervals = lock(&self.intervals);
        let per_column = intervals.regions.len().div_ceil(columns.max(1)).max(1);
        // Chunks start at the newest interval, so that only the oldest column can be shorter.
        let newest_first: Vec<&RegionInterval> = intervals.regions.iter().rev().collect();
        let columns: Vec<&[&RegionInterval]> = newest_first.chunks(per_column).rev().collect();
        let mut total: HashMap<Arc<str>, u64> = HashMap::new();
        for (name, count) in newest_first.iter().flat_map(|interval| &interval.requests) {
            *total.entry(name.clone()).or_default() += count;
        }
        let in_column = |column: &[&RegionInterval], name: &Arc<str>| {
            let of_region =
                column.iter().flat_map(|interval| &interval.requests).filter(|(of, _)| of == name);
            let length = column.iter().map(|interval| interval.length).sum();
            rate(of_region.map(|(_, count)| count).sum(), length)
        };
        let row = |(name, _)| {
            let rates = columns.iter().map(|column| in_column(column, &name)).collect();
            (name, rates)
        };
        HeatMap {
            ends_ms: columns.iter().map(|column| column[0].end_ms).collect(),
            rows: top(total.into_iter().collect(), rows).into_iter().map(row).collect(),
        }
    }
}

/// The number of requests to skip before the next one is counted. It is random, because a fixed
/// stride would always sample the same row of a periodic access pattern.
fn next_stride() -> u32 {
    thread_local! {
        static STATE: Cell<u32> = const { Cell::new(0x9E37_79B9) };
    }
    // Marsaglia's xorshift.
    let mut state = STATE.get();
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    STATE.set(state);
    // Uniform from 0 to twice the mean number of skipped requests.
    state % (2 * STRIDE - 1)
}

fn own_sketch() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static OWN: usize = NEXT.fetch_add(1, Ordering::Relaxed) % SKETCHES;
    }
    OWN.with(|own| *own)
}

fn rate(requests: u64, length: Duration) -> f64 {
    if length.is_zero() { 0.0 } else { requests as f64 / length.as_secs_f64() }
}

/// The `count` greatest items, greatest first.
fn top<T: Ord>(mut counted: Vec<(T, u64)>, count: usize) -> Vec<(T, u64)> {
    counted.sort_unstable_by(|left, right| right.1.cmp(&left.1).then_with(|| left.0.cmp(&right.0)));
    counted.truncate(count);
    counted
}

fn push<T>(items: &mut VecDeque<T>, item: T, len_max: usize) {
    if items.len() >= len_max {
        items.pop_front();
    }
    items.push_back(item);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The data is only counters, so it is valid after any panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_sampled_at_the_stride_on_average() {
        let strides = 100_000;
        let passed: u64 = (0..strides).map(|_| u64::from(next_stride())).sum();
        let mean = passed as f64 / f64::from(strides) + 1.0;
        assert!((mean - f64::from(STRIDE)).abs() < 0.2, "{mean}");
    }

    const INTERVAL: Duration = Duration::from_secs(10);

    #[test]
    fn columns_except_the_oldest_have_equal_length() {
        let spots = HotSpots::new(Duration::ZERO);
        let mut intervals = lock(&spots.intervals);
        for at in 1..=7u64 {
            let requests = vec![("a".into(), 10 * at), ("b".into(), 200)];
            intervals.regions.push_back(RegionInterval { end_ms: at, length: INTERVAL, requests });
        }
        drop(intervals);
        let map = spots.heat_map(5, 4);
        assert_eq!(map.ends_ms, [1, 3, 5, 7]);
        assert_eq!(map.rows[0], ("b".into(), vec![20.0; 4]));
        assert_eq!(map.rows[1], ("a".into(), vec![1.0, 2.5, 4.5, 6.5]));
        assert_eq!(spots.heat_map(1, 60).rows.len(), 1);
        assert_eq!(HotSpots::new(Duration::ZERO).heat_map(5, 4), HeatMap::default());
    }
}
