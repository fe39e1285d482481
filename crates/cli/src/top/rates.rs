//! Requests per second, as differences of counters between two reports of a server.
//!
//! Invariants:
//!
//! * A counter that decreased belongs to another region or another run. It has no rate until the
//!   next report.
//! * Rates stay the same between two reports: a master that is polled more often than servers
//!   report returns the same counters again.
//! * The counters of a region or client are dropped as soon as a sample lacks it.

use std::collections::HashMap;

/// Counters of a region, or of a user's client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Counters {
    pub(super) reads: u64,
    pub(super) filtered_reads: u64,
    pub(super) writes: u64,
}

impl Counters {
    fn fell_back(&self, before: &Counters) -> bool {
        self.reads < before.reads
            || self.writes < before.writes
            || self.filtered_reads < before.filtered_reads
    }

    fn since(&self, before: &Counters, seconds: f64) -> Rates {
        let rate = |now: u64, before: u64| (now - before) as f64 / seconds;
        Rates {
            reads: rate(self.reads, before.reads),
            filtered_reads: rate(self.filtered_reads, before.filtered_reads),
            writes: rate(self.writes, before.writes),
        }
    }
}

/// Counter differences per second.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Rates {
    pub(super) reads: f64,
    pub(super) filtered_reads: f64,
    pub(super) writes: f64,
}

impl Rates {
    /// All requests. Reads already include the filtered ones.
    pub(super) fn requests(&self) -> f64 {
        self.reads + self.writes
    }
}

#[derive(Debug, Clone, Copy)]
struct LastCounters {
    report_ms: u64,
    counters: Counters,
    rates: Rates,
    sample: u64,
}

/// The counters of the previous sample, by name.
#[derive(Debug, Default)]
pub(super) struct RateTracker {
    last: HashMap<Vec<u8>, LastCounters>,
    sample: u64,
}

impl RateTracker {
    /// The rates of `name`, given its counters as of `report_ms`.
    pub(super) fn rates(&mut self, name: Vec<u8>, report_ms: u64, counters: Counters) -> Rates {
        let sample = self.sample;
        let first = LastCounters { report_ms, counters, rates: Rates::default(), sample };
        let last = self.last.entry(name).or_insert(first);
        last.sample = sample;
        if report_ms == last.report_ms {
            return last.rates;
        }
        // If the clock was set back, no interval is known. The next report has rates again.
        let is_usable = report_ms > last.report_ms && !counters.fell_back(&last.counters);
        let rates = match is_usable {
            true => counters.since(&last.counters, (report_ms - last.report_ms) as f64 / 1000.0),
            false => Rates::default(),
        };
        *last = LastCounters { rates, ..first };
        rates
    }

    /// Ends a sample: drops all counters that it did not contain.
    pub(super) fn end_sample(&mut self) {
        let sample = self.sample;
        self.last.retain(|_, last| last.sample == sample);
        self.sample += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(tracker: &mut RateTracker, report_ms: u64, reads: u64, writes: u64) -> (f64, f64, f64) {
        let counters = Counters { reads, filtered_reads: reads / 2, writes };
        let rates = tracker.rates(b"r".to_vec(), report_ms, counters);
        tracker.end_sample();
        (rates.reads, rates.filtered_reads, rates.writes)
    }

    #[test]
    fn a_rate_is_the_difference_between_two_reports() {
        let mut tracker = RateTracker::default();
        assert_eq!(rates(&mut tracker, 1_000, 100, 10), (0.0, 0.0, 0.0));
        assert_eq!(rates(&mut tracker, 3_000, 300, 11), (100.0, 50.0, 0.5));
        // The same report again leaves the rates unchanged.
        assert_eq!(rates(&mut tracker, 3_000, 300, 11), (100.0, 50.0, 0.5));
        assert_eq!(rates(&mut tracker, 4_000, 300, 11), (0.0, 0.0, 0.0));
    }

    #[test]
    fn a_counter_that_falls_back_restarts() {
        let mut tracker = RateTracker::default();
        rates(&mut tracker, 1_000, 100, 100);
        assert_eq!(rates(&mut tracker, 2_000, 20, 200), (0.0, 0.0, 0.0));
        assert_eq!(rates(&mut tracker, 3_000, 40, 200), (20.0, 10.0, 0.0));
        // The same applies if the clock goes back.
        assert_eq!(rates(&mut tracker, 2_500, 60, 200), (0.0, 0.0, 0.0));
        assert_eq!(rates(&mut tracker, 3_500, 80, 200), (20.0, 10.0, 0.0));
    }

    #[test]
    fn counters_that_are_gone_are_dropped() {
        let mut tracker = RateTracker::default();
        rates(&mut tracker, 1_000, 100, 0);
        tracker.end_sample();
        assert!(tracker.last.is_empty());
        assert_eq!(rates(&mut tracker, 2_000, 200, 0), (0.0, 0.0, 0.0));
    }
}
