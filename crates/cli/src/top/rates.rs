//! Requests a second, as differences of counters between two reports of a server.
//!
//! Invariants:
//!
//! * A counter that fell back is another region's or another run's: there is no rate until the next report.
//! * Between two reports the rates stay as they are: a master that is asked more often than servers report to it tells
//!   the same counters again.
//! * What is not reported any more is forgotten.

use std::collections::HashMap;

/// What a region, or a user's client, has counted.
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

/// The same of a second.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Rates {
    pub(super) reads: f64,
    pub(super) filtered_reads: f64,
    pub(super) writes: f64,
}

impl Rates {
    /// All of them; what filters leave out was counted as read already.
    pub(super) fn requests(&self) -> f64 {
        self.reads + self.writes
    }
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    report_ms: u64,
    counters: Counters,
    rates: Rates,
    look: u64,
}

/// What was counted at the last look, by name.
#[derive(Debug, Default)]
pub(super) struct Meter {
    seen: HashMap<Vec<u8>, Seen>,
    look: u64,
}

impl Meter {
    /// The rates of `name`, which had counted `counters` at `report_ms`.
    pub(super) fn rates(&mut self, name: Vec<u8>, report_ms: u64, counters: Counters) -> Rates {
        let look = self.look;
        let first = Seen { report_ms, counters, rates: Rates::default(), look };
        let seen = self.seen.entry(name).or_insert(first);
        seen.look = look;
        if report_ms == seen.report_ms {
            return seen.rates;
        }
        // A clock that was set back leaves no time to divide by: the next report has some again.
        let is_usable = report_ms > seen.report_ms && !counters.fell_back(&seen.counters);
        let rates = match is_usable {
            true => counters.since(&seen.counters, (report_ms - seen.report_ms) as f64 / 1000.0),
            false => Rates::default(),
        };
        *seen = Seen { rates, ..first };
        rates
    }

    /// A look is over: forgets what had no part in it.
    pub(super) fn end_look(&mut self) {
        let look = self.look;
        self.seen.retain(|_, seen| seen.look == look);
        self.look += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(meter: &mut Meter, report_ms: u64, reads: u64, writes: u64) -> (f64, f64, f64) {
        let counters = Counters { reads, filtered_reads: reads / 2, writes };
        let rates = meter.rates(b"r".to_vec(), report_ms, counters);
        meter.end_look();
        (rates.reads, rates.filtered_reads, rates.writes)
    }

    #[test]
    fn a_rate_is_the_difference_between_two_reports() {
        let mut meter = Meter::default();
        assert_eq!(rates(&mut meter, 1_000, 100, 10), (0.0, 0.0, 0.0));
        assert_eq!(rates(&mut meter, 3_000, 300, 11), (100.0, 50.0, 0.5));
        // The same report again, whatever it says.
        assert_eq!(rates(&mut meter, 3_000, 300, 11), (100.0, 50.0, 0.5));
        assert_eq!(rates(&mut meter, 4_000, 300, 11), (0.0, 0.0, 0.0));
    }

    #[test]
    fn a_counter_that_falls_back_begins_anew() {
        let mut meter = Meter::default();
        rates(&mut meter, 1_000, 100, 100);
        assert_eq!(rates(&mut meter, 2_000, 20, 200), (0.0, 0.0, 0.0));
        assert_eq!(rates(&mut meter, 3_000, 40, 200), (20.0, 10.0, 0.0));
        // So does a clock.
        assert_eq!(rates(&mut meter, 2_500, 60, 200), (0.0, 0.0, 0.0));
        assert_eq!(rates(&mut meter, 3_500, 80, 200), (20.0, 10.0, 0.0));
    }

    #[test]
    fn what_is_gone_is_forgotten() {
        let mut meter = Meter::default();
        rates(&mut meter, 1_000, 100, 0);
        meter.end_look();
        assert!(meter.seen.is_empty());
        assert_eq!(rates(&mut meter, 2_000, 200, 0), (0.0, 0.0, 0.0));
    }
}
