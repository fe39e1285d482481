//! Counters of a run: rows, calls, and a histogram of call latencies.

use std::time::Duration;

use hdrhistogram::Histogram;

/// Lower bound of the histogram.
const SHORTEST_NS: u64 = 100;
/// Upper bound of the histogram. Longer calls count as this long.
const LONGEST_NS: u64 = 3_600_000_000_000;
/// Significant digits of a latency.
const DIGITS: u8 = 3;

/// Counters of one client, or of several together.
#[derive(Debug, Clone)]
pub(super) struct Tally {
    rows_by_second: Vec<u64>,
    unreadable: u64,
    latencies_ns: Histogram<u64>,
    /// The longest latency of the calls that ended after the run.
    longest_late_ns: u64,
}

fn nanoseconds(latency: Duration) -> u64 {
    u64::try_from(latency.as_nanos()).unwrap_or(LONGEST_NS)
}

impl Tally {
    pub(super) fn new() -> Tally {
        let latencies_ns = Histogram::new_with_bounds(SHORTEST_NS, LONGEST_NS, DIGITS);
        Tally {
            rows_by_second: Vec::new(),
            unreadable: 0,
            latencies_ns: latencies_ns.expect("the bounds of the histogram are valid"),
            longest_late_ns: 0,
        }
    }

    /// Counts a call that ended at `since_begin`.
    pub(super) fn record(&mut self, rows: u64, latency: Duration, since_begin: Duration) {
        let second = since_begin.as_secs() as usize;
        if self.rows_by_second.len() <= second {
            self.rows_by_second.resize(second + 1, 0);
        }
        self.rows_by_second[second] += rows;
        self.latencies_ns.saturating_record(nanoseconds(latency));
    }

    /// Records the latency of a call that was in flight at the end of the run, for the longest
    /// latency only. Without it, a server that stops responding would seem to have no slow call.
    pub(super) fn record_late(&mut self, latency: Duration) {
        self.longest_late_ns = self.longest_late_ns.max(nanoseconds(latency));
    }

    /// Counts a call whose response was unreadable. Its rows and latency are not counted.
    pub(super) fn record_unreadable(&mut self) {
        self.unreadable += 1;
    }

    /// Calls whose responses were unreadable.
    pub(super) fn unreadable(&self) -> u64 {
        self.unreadable
    }

    /// Adds the counters of another tally.
    pub(super) fn add(&mut self, other: &Tally) {
        let seconds = self.rows_by_second.len().max(other.rows_by_second.len());
        self.rows_by_second.resize(seconds, 0);
        for (sum, rows) in self.rows_by_second.iter_mut().zip(&other.rows_by_second) {
            *sum += rows;
        }
        self.unreadable += other.unreadable;
        self.longest_late_ns = self.longest_late_ns.max(other.longest_late_ns);
        self.latencies_ns.add(&other.latencies_ns).expect("all histograms have the same bounds");
    }

    /// Rows that calls read or wrote.
    pub(super) fn rows(&self) -> u64 {
        self.rows_by_second.iter().sum()
    }

    /// Rows of the calls that ended in each second of the run. They show a standstill, which the
    /// latencies of the few calls in flight hardly do.
    pub(super) fn rows_by_second(&self) -> &[u64] {
        &self.rows_by_second
    }

    /// Completed calls.
    pub(super) fn calls(&self) -> u64 {
        self.latencies_ns.len()
    }

    /// The latency that a share of `share` of all calls (0.5, 0.999) did not exceed.
    pub(super) fn latency_us(&self, share: f64) -> f64 {
        self.latencies_ns.value_at_quantile(share) as f64 / 1e3
    }

    /// The longest latency, also of calls that were in flight at the end.
    pub(super) fn latency_max_us(&self) -> f64 {
        self.latencies_ns.max().max(self.longest_late_ns) as f64 / 1e3
    }

    /// The mean latency.
    pub(super) fn latency_mean_us(&self) -> f64 {
        self.latencies_ns.mean() / 1e3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_all_that_were_added() {
        let (mut all, mut other) = (Tally::new(), Tally::new());
        for call in 1..=900 {
            all.record(2, Duration::from_micros(call), Duration::ZERO);
        }
        all.record_unreadable();
        other.record_unreadable();
        for call in 901..=1_000 {
            other.record(2, Duration::from_micros(call), Duration::from_millis(2_500));
        }
        all.add(&other);
        assert_eq!((all.calls(), all.rows(), all.unreadable()), (1_000, 2_000, 2));
        assert_eq!(all.rows_by_second(), [1_800, 0, 200]);
        let near = |share: f64, wanted: f64| {
            let got = all.latency_us(share);
            assert!((got - wanted).abs() <= wanted * 0.002, "{share}: {got}, not {wanted}");
        };
        near(0.5, 500.0);
        near(0.99, 990.0);
        near(0.999, 999.0);
        near(1.0, 1_000.0);
        assert!((all.latency_mean_us() - 500.5).abs() < 1.0);
    }

    #[test]
    fn a_call_beyond_the_bounds_counts_as_one_at_the_bound() {
        let mut tally = Tally::new();
        tally.record(1, Duration::ZERO, Duration::ZERO);
        tally.record(1, Duration::from_secs(100_000), Duration::ZERO);
        assert_eq!(tally.calls(), 2);
        assert!(tally.latency_max_us() >= 3_600e6 * 0.999);
    }

    #[test]
    fn a_call_in_flight_at_the_end_can_only_be_the_longest() {
        let (mut tally, mut other) = (Tally::new(), Tally::new());
        tally.record(20, Duration::from_millis(80), Duration::ZERO);
        tally.record_late(Duration::from_secs(9));
        other.record_late(Duration::from_secs(28));
        tally.add(&other);
        tally.record_late(Duration::from_millis(1));
        assert_eq!((tally.calls(), tally.rows()), (1, 20));
        assert!(tally.latency_us(1.0) < 81e3);
        assert!((tally.latency_max_us() - 28e6).abs() < 1.0);
    }
}
