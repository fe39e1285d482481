//! A histogram of all values, in the form in which HBase prints those of its metrics library.

use std::io::Write;

use crate::Error;

/// Upper bounds of the ranges of `-d`.
const RANGES: [u64; 15] =
    [1, 3, 10, 50, 100, 500, 1_000, 5_000, 10_000, 50_000, 100_000, 500_000, 750_000, 1_000_000, u64::MAX];

/// The values seen. HBase's histogram is a sample of about a thousand; this one keeps the number of
/// each distinct value, so its quantiles are exact.
#[derive(Clone, Debug, Default)]
pub(super) struct Histogram {
    counts: std::collections::BTreeMap<u64, u64>,
}

impl Histogram {
    pub(super) fn add(&mut self, value: u64) {
        *self.counts.entry(value).or_default() += 1;
    }

    fn count(&self) -> u64 {
        self.counts.values().sum()
    }

    fn mean(&self) -> f64 {
        let sum: f64 = self.counts.iter().map(|(value, count)| *value as f64 * *count as f64).sum();
        sum / self.count().max(1) as f64
    }

    /// The standard deviation of a sample.
    fn deviation(&self) -> f64 {
        let mean = self.mean();
        let squares: f64 =
            self.counts.iter().map(|(value, count)| (*value as f64 - mean).powi(2) * *count as f64).sum();
        match self.count() {
            0 | 1 => 0.0,
            count => (squares / (count - 1) as f64).sqrt(),
        }
    }

    /// The value at `rank`, counted from 0.
    fn at(&self, rank: u64) -> f64 {
        let mut before = 0;
        let found = self.counts.iter().find(|(_, count)| {
            before += **count;
            before > rank
        });
        found.or(self.counts.last_key_value()).map_or(0.0, |(value, _)| *value as f64)
    }

    /// A quantile, interpolated between two neighbours as in HBase's metrics library.
    fn quantile(&self, quantile: f64) -> f64 {
        let count = self.count();
        let position = quantile * (count + 1) as f64;
        let rank = position as u64;
        match rank {
            0 => self.at(0),
            rank if rank >= count => self.at(count.saturating_sub(1)),
            rank => {
                let (lower, upper) = (self.at(rank - 1), self.at(rank));
                lower + (position - position.floor()) * (upper - lower)
            }
        }
    }

    /// Prints the histogram under a title; with `ranges`, also the number of values in each range.
    pub(super) fn print(&self, out: &mut dyn Write, title: &str, ranges: bool) -> Result<(), Error> {
        let value = |entry: Option<(&u64, &u64)>| entry.map_or(0, |(value, _)| *value);
        writeln!(out, "   {title}:")?;
        writeln!(out, "               min = {}", value(self.counts.first_key_value()))?;
        writeln!(out, "               max = {}", value(self.counts.last_key_value()))?;
        writeln!(out, "              mean = {:.2}", self.mean())?;
        writeln!(out, "            stddev = {:.2}", self.deviation())?;
        writeln!(out, "            median = {:.2}", self.quantile(0.5))?;
        for (name, quantile) in [("75%", 0.75), ("95%", 0.95), ("98%", 0.98), ("99%", 0.99), ("99.9%", 0.999)]
        {
            writeln!(out, "{name:>17} <= {:.2}", self.quantile(quantile))?;
        }
        writeln!(out, "             count = {}", self.count())?;
        if ranges { self.print_ranges(out) } else { Ok(()) }
    }

    /// Prints the ranges that have values, and the one before the first of them.
    fn print_ranges(&self, out: &mut dyn Write) -> Result<(), Error> {
        writeln!(out, "           (range <= count):")?;
        let mut lower = 0;
        let counts = RANGES.map(|upper| {
            let count: u64 = self.counts.range(lower..=upper).map(|(_, count)| count).sum();
            lower = upper.saturating_add(1);
            (upper, count)
        });
        let first = counts.iter().position(|(_, count)| *count > 0).unwrap_or(counts.len());
        for (at, (upper, count)) in counts.iter().enumerate() {
            if *count > 0 || at + 1 == first {
                writeln!(out, "{upper:>17} <= {count}")?;
            }
        }
        Ok(())
    }
}
