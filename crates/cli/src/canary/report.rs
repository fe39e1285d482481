//! Results of probes: a line for each, a progress bar, and a final table of servers.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};
use std::time::Duration;

use comfy_table::{CellAlignment, Table, presets};
use hdrhistogram::Histogram;
use indicatif::{ProgressBar, ProgressStyle};

use super::probe::Probe;

/// Prints a line. Write errors are ignored: without a reader, probing continues, and the exit
/// status still reports failures.
pub(super) fn print_line(text: &str) {
    let _ = writeln!(io::stdout(), "{text}");
}

/// Kind of operation of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum OperationKind {
    Read,
    Write,
}

impl fmt::Display for OperationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OperationKind::Read => "Read",
            OperationKind::Write => "Write",
        })
    }
}

/// A completed probe.
pub(super) struct Outcome {
    pub(super) probe: Probe,
    pub(super) took: Duration,
    pub(super) result: Result<(), String>,
}

/// Results of one server.
struct Tally {
    failures: usize,
    /// Latencies of successful probes, in microseconds.
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

/// Results of a round.
pub(super) struct Report {
    bar: ProgressBar,
    servers: BTreeMap<String, Tally>,
    /// Total time of the successful probes of each table.
    tables: BTreeMap<(String, OperationKind), Duration>,
}

/// Percentiles in the table.
const PERCENTILES: [(f64, &str); 3] = [(0.5, "p50 ms"), (0.95, "p95 ms"), (0.99, "p99 ms")];

impl Report {
    pub(super) fn new() -> Report {
        Report { bar: ProgressBar::hidden(), servers: BTreeMap::new(), tables: BTreeMap::new() }
    }

    /// Shows a progress bar for this many probes on standard error, if that is a terminal.
    pub(super) fn expect(&mut self, probes: usize) {
        let style =
            ProgressStyle::with_template("[{bar:32.green}] {human_pos} of {human_len} probes, {eta} left");
        let style = style.expect("the template is valid").progress_chars("=> ");
        self.bar = ProgressBar::new(probes as u64).with_style(style);
    }

    /// Counts a probe and prints its line.
    pub(super) fn record(&mut self, outcome: Outcome) {
        let Outcome { probe, took, result } = outcome;
        self.bar.inc(1);
        let tally = self.servers.entry(probe.server.clone()).or_insert_with(Tally::new);
        match result {
            Ok(()) => {
                // The histogram resizes itself, so it accepts every value.
                let _ = tally.latencies.record(took.as_micros() as u64);
                if let Some(table) = probe.table() {
                    *self.tables.entry((table, probe.operation())).or_default() += took;
                }
                self.line(&probe.success_line(took));
            }
            Err(why) => {
                tally.failures += 1;
                self.line(&probe.failure_line(&why));
            }
        }
    }

    /// Prints a line above the progress bar.
    pub(super) fn line(&self, text: &str) {
        self.bar.suspend(|| print_line(text));
    }

    /// Removes the progress bar and prints the table, if there were any probes.
    pub(super) fn finish(&mut self) {
        self.bar.finish_and_clear();
        if !self.servers.is_empty() {
            print_line(&format!("\n{}", self.table()));
        }
    }

    pub(super) fn probes(&self) -> usize {
        self.servers.values().map(Tally::probes).sum()
    }

    pub(super) fn failures(&self) -> usize {
        self.servers.values().map(|tally| tally.failures).sum()
    }

    /// Total time of a table's successful probes; `None` if there were none.
    pub(super) fn read_or_write_time(&self, table: &str, operation: OperationKind) -> Option<Duration> {
        self.tables.get(&(table.to_string(), operation)).copied()
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
    use super::super::probe::ProbeKind;
    use super::*;

    fn outcome(server: &str, took_ms: u64, result: Result<(), String>) -> Outcome {
        let probe = Probe { server: server.into(), kind: ProbeKind::Znode("z".into(), 1) };
        Outcome { probe, took: Duration::from_millis(took_ms), result }
    }

    #[test]
    fn the_table_lists_each_server() {
        let mut report = Report::new();
        report.record(outcome("a:1", 2, Ok(())));
        report.record(outcome("a:1", 4, Ok(())));
        report.record(outcome("b:1", 900, Err("away".into())));
        assert_eq!((report.probes(), report.failures()), (3, 1));
        let table = report.table();
        let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[1], ["a:1", "2", "0", "2.0", "4.0", "4.0", "4.0"]);
        assert_eq!(lines[2], ["b:1", "1", "1", "-", "-", "-", "-"]);
    }
}
