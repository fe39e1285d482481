//! Results of runs, as a table for people and as JSON for programs.

use comfy_table::{Cell, CellAlignment, Table, presets};
use serde_json::{Value, json};

use super::load::{Load, Outcome};
use super::workload::Plan;

/// The reported percentiles: share of all calls, and name.
pub(super) const PERCENTILES: [(f64, &str); 5] =
    [(0.5, "p50"), (0.95, "p95"), (0.99, "p99"), (0.999, "p999"), (0.9999, "p9999")];

/// One run: its parameters and its result.
#[derive(Debug, Clone)]
pub(super) struct Measurement {
    pub(super) plan: Plan,
    pub(super) load: Load,
    pub(super) outcome: Outcome,
}

impl Measurement {
    /// Rows per second.
    pub(super) fn rows_per_second(&self) -> f64 {
        self.outcome.tally.rows() as f64 / self.outcome.length.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// CPU time of the server per row, in microseconds.
    pub(super) fn server_us(&self) -> Option<f64> {
        let rows = self.outcome.tally.rows();
        let usage = self.outcome.server.filter(|_| rows > 0)?;
        Some(usage.cpu_seconds * 1e6 / rows as f64)
    }

    /// Parameters and results of the run, for programs.
    pub(super) fn json(&self) -> Value {
        let (plan, load, tally) = (&self.plan, &self.load, &self.outcome.tally);
        let mut latency: serde_json::Map<String, Value> = PERCENTILES
            .iter()
            .map(|(share, name)| (name.to_string(), json!(tally.latency_us(*share))))
            .collect();
        latency.insert("mean".into(), json!(tally.latency_mean_us()));
        latency.insert("max".into(), json!(tally.latency_max_us()));
        json!({
            "workload": plan.workload.to_string(),
            "rows_of_table": plan.rows.count,
            "value_bytes": plan.rows.value_len,
            "batch": plan.batch,
            "clients": load.clients,
            "in_flight": load.in_flight,
            "rate": load.rate,
            "seconds": self.outcome.length.as_secs_f64(),
            "rows": tally.rows(),
            "rows_by_second": tally.rows_by_second(),
            "calls": tally.calls(),
            "unreadable": tally.unreadable(),
            "rows_per_second": self.rows_per_second(),
            "latency_us": latency,
            "server_cpu_us_per_row": self.server_us(),
            "server_resident_mib": self.outcome.server.map(|usage| usage.resident_mib),
        })
    }
}

/// One line per run, without borders, with numbers aligned right.
pub(super) fn table(measurements: &[Measurement]) -> String {
    let with_server = measurements.iter().any(|one| one.outcome.server.is_some());
    let mut header = vec!["workload", "clients", "rows/s", "mean us"];
    header.extend(PERCENTILES.iter().map(|(_, name)| *name).chain(["max us"]));
    if with_server {
        header.extend(["server CPU us/row", "server MiB"]);
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    for measurement in measurements {
        table.add_row(line(measurement, with_server));
    }
    table.column_iter_mut().skip(1).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    table.to_string()
}

fn line(measurement: &Measurement, with_server: bool) -> Vec<Cell> {
    let tally = &measurement.outcome.tally;
    let mut line = vec![
        name(measurement),
        measurement.load.clients.to_string(),
        grouped(measurement.rows_per_second()),
        three_digits(tally.latency_mean_us()),
    ];
    line.extend(PERCENTILES.iter().map(|(share, _)| three_digits(tally.latency_us(*share))));
    line.push(three_digits(tally.latency_max_us()));
    if with_server {
        line.push(measurement.server_us().map_or("-".into(), |us| format!("{us:.3}")));
        line.push(measurement.outcome.server.map_or("-".into(), |usage| three_digits(usage.resident_mib)));
    }
    line.into_iter().map(Cell::new).collect()
}

/// The workload, with the settings that differ from the defaults.
fn name(measurement: &Measurement) -> String {
    let (plan, load) = (&measurement.plan, &measurement.load);
    let mut name = plan.workload.to_string();
    if plan.workload.is_batched() && plan.batch > 1 {
        name += &format!(", {} per call", plan.batch);
    }
    if load.in_flight > 1 {
        name += &format!(", {} in flight", load.in_flight);
    }
    if let Some(rate) = load.rate {
        name += &format!(", {} calls/s", grouped(rate));
    }
    if measurement.outcome.tally.unreadable() > 0 {
        name += &format!(", {} unreadable responses", grouped(measurement.outcome.tally.unreadable() as f64));
    }
    name
}

/// Formats a number with three significant digits.
fn three_digits(value: f64) -> String {
    match value {
        _ if value >= 1_000.0 => grouped(value),
        _ if value >= 100.0 => format!("{value:.0}"),
        _ if value >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Formats a whole number with thousands separators.
pub(super) fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::process::Usage;
    use super::super::rows::Rows;
    use super::super::tally::Tally;
    use super::super::workload::Workload;
    use super::*;

    fn measurement() -> Measurement {
        let mut tally = Tally::new();
        (0..1_000).for_each(|_| tally.record(10, Duration::from_micros(250), Duration::ZERO));
        Measurement {
            plan: Plan {
                workload: Workload::RandomRead,
                rows: Rows { count: 1_000_000, value_len: 100 },
                hot: None,
                cache_blocks: true,
                batch: 10,
                returned: 0,
                caching: 1_000,
            },
            load: Load {
                clients: 4,
                in_flight: 1,
                rate: None,
                warm_up: Duration::ZERO,
                length: Some(Duration::from_secs(2)),
            },
            outcome: Outcome {
                tally,
                length: Duration::from_secs(2),
                server: Some(Usage { cpu_seconds: 0.05, resident_mib: 64.0 }),
            },
        }
    }

    #[test]
    fn rates_and_costs_are_those_of_a_row() {
        let json = measurement().json();
        assert_eq!(json["rows_per_second"], 5_000.0);
        assert_eq!(json["server_cpu_us_per_row"], 5.0);
        assert_eq!(json["calls"], 1_000);
        let p99 = json["latency_us"]["p99"].as_f64().expect("a number");
        assert!((p99 - 250.0).abs() < 1.0, "{p99}");
    }

    #[test]
    fn the_table_lists_the_measurements() {
        let table = table(&[measurement()]);
        let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0][..4], ["workload", "clients", "rows/s", "mean"]);
        assert_eq!(lines[1][..7], ["randomRead,", "10", "per", "call", "4", "5,000", "250"]);
        assert!(table.contains("5.000"), "{table}");
    }

    #[test]
    fn a_server_that_is_not_watched_has_no_columns() {
        let mut unwatched = measurement();
        unwatched.outcome.server = None;
        assert!(!table(&[unwatched.clone()]).contains("server"));
        assert_eq!(unwatched.json()["server_cpu_us_per_row"], Value::Null);
    }

    #[test]
    fn numbers_are_grouped_by_three_digits() {
        let cases = [(0.4, "0"), (999.0, "999"), (1_000.0, "1,000"), (1_234_567.0, "1,234,567")];
        for (value, wanted) in cases {
            assert_eq!(grouped(value), wanted);
        }
    }
}
