//! What came of the probes: a line for each, a bar while they are made, a table of servers at the end.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};
use std::time::Duration;

use comfy_table::{CellAlignment, Table, presets};
use hdrhistogram::Histogram;
use indicatif::{ProgressBar, ProgressStyle};

use super::probe::Probe;

/// Prints a line. Where nobody reads it any more, the probes go on: the status of the process tells of them, too.
pub(super) fn say(text: &str) {
    let _ = writeln!(io::stdout(), "{text}");
}

/// Whether something was read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sort {
    Read,
    Write,
}

impl fmt::Display for Sort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Sort::Read => "Read",
            Sort::Write => "Write",
        })
    }
}

/// A probe that was made.
pub(super) struct Outcome {
    pub(super) probe: Probe,
    pub(super) took: Duration,
    pub(super) answer: Result<(), String>,
}

/// Of one server.
struct Tally {
    failures: usize,
    /// Microseconds of probes that were answered.
    latencies: Histogram<u64>,
}

impl Tally {
    fn new() -> Tally {
        let latencies = Histogram::new(3).expect("three digits are allowed");
        Tally { failures: 0, latencies }
    }

    fn probes(&self) -> usize {
        self.failures + self.latencies.len() as usize
    }
}

/// A round.
pub(super) struct Report {
    bar: ProgressBar,
    servers: BTreeMap<String, Tally>,
    /// All probes of a table together.
    tables: BTreeMap<(String, Sort), Duration>,
}

/// Percentiles in the table.
const PERCENTILES: [(f64, &str); 3] = [(0.5, "p50 ms"), (0.95, "p95 ms"), (0.99, "p99 ms")];

impl Report {
    pub(super) fn new() -> Report {
        Report { bar: ProgressBar::hidden(), servers: BTreeMap::new(), tables: BTreeMap::new() }
    }

    /// So many probes come: a bar on standard error, if that is a terminal.
    pub(super) fn expect(&mut self, probes: usize) {
        let style =
            ProgressStyle::with_template("[{bar:32.green}] {human_pos} of {human_len} probes, {eta} left");
        let style = style.expect("the template is one").progress_chars("=> ");
        self.bar = ProgressBar::new(probes as u64).with_style(style);
    }

    /// Takes a probe in, and tells of it.
    pub(super) fn take(&mut self, outcome: Outcome) {
        let Outcome { probe, took, answer } = outcome;
        self.bar.inc(1);
        let tally = self.servers.entry(probe.server.clone()).or_insert_with(Tally::new);
        match answer {
            Ok(()) => {
                // It grows as it needs to: there is no time that it cannot take.
                let _ = tally.latencies.record(took.as_micros() as u64);
                if let Some(table) = probe.table() {
                    *self.tables.entry((table, probe.sort())).or_default() += took;
                }
                self.line(&probe.answered(took));
            }
            Err(why) => {
                tally.failures += 1;
                self.line(&probe.failed(&why));
            }
        }
    }

    /// Prints a line, above the bar.
    pub(super) fn line(&self, text: &str) {
        self.bar.suspend(|| say(text));
    }

    /// Takes the bar away and prints the table, if there was anything.
    pub(super) fn finish(&mut self) {
        self.bar.finish_and_clear();
        if !self.servers.is_empty() {
            say(&format!("\n{}", self.table()));
        }
    }

    pub(super) fn probes(&self) -> usize {
        self.servers.values().map(Tally::probes).sum()
    }

    pub(super) fn failures(&self) -> usize {
        self.servers.values().map(|tally| tally.failures).sum()
    }

    /// How long all answers of a table took together; `None` if there were none.
    pub(super) fn took(&self, table: &str, sort: Sort) -> Option<Duration> {
        self.tables.get(&(table.to_string(), sort)).copied()
    }

    fn table(&self) -> String {
        let mut header = vec!["server", "probes", "failures"];
        header.extend(PERCENTILES.iter().map(|(_, name)| *name).chain(["max ms"]));
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_header(header);
        for (server, tally) in &self.servers {
            let mut line = vec![server.clone(), tally.probes().to_string(), tally.failures.to_string()];
            let latencies = &tally.latencies;
            let shown = |us: u64| match latencies.is_empty() {
                true => "-".to_string(),
                false => format!("{:.1}", us as f64 / 1000.0),
            };
            line.extend(PERCENTILES.iter().map(|(share, _)| shown(latencies.value_at_quantile(*share))));
            line.push(shown(latencies.max()));
            table.add_row(line);
        }
        table.column_iter_mut().skip(1).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
        table.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::super::probe::What;
    use super::*;

    fn outcome(server: &str, took_ms: u64, answer: Result<(), String>) -> Outcome {
        let probe = Probe { server: server.into(), what: What::Znode("z".into(), 1) };
        Outcome { probe, took: Duration::from_millis(took_ms), answer }
    }

    #[test]
    fn the_table_tells_servers_apart() {
        let mut report = Report::new();
        report.take(outcome("a:1", 2, Ok(())));
        report.take(outcome("a:1", 4, Ok(())));
        report.take(outcome("b:1", 900, Err("away".into())));
        assert_eq!((report.probes(), report.failures()), (3, 1));
        let table = report.table();
        let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[1], ["a:1", "2", "0", "2.0", "4.0", "4.0", "4.0"]);
        assert_eq!(lines[2], ["b:1", "1", "1", "-", "-", "-", "-"]);
    }
}
