//! The series of a master.

use std::sync::Arc;
use std::time::Duration;

use base::env::Env;
use base::history::{History, Moment, Rate, Unit};
use base::metrics::Registry;
use master::Master;
use master::procedure::executor::Progress;

use super::{Declared, Quantiles, Spread, region_server, series};
use crate::log_counts::LOG_COUNTS;

/// What is taken at one moment.
pub(crate) struct Sample {
    reads: Option<f64>,
    writes: Option<f64>,
    calls: Quantiles,
    servers: usize,
    regions: usize,
    in_transition: usize,
    procedures: usize,
    errors: u64,
    resident_bytes: Option<u64>,
    cpu: Option<f64>,
}

/// The series, in the order of the page.
pub(crate) const SERIES: &[Declared<Sample>] = &[
    series(
        "reads",
        Unit::PerSecond,
        "Rows read in all regions that are open, as servers reported.",
        |of: &Sample| of.reads,
    ),
    series("writes", Unit::PerSecond, "Mutations made in them.", |of| of.writes),
    series("call_p50", Unit::Microseconds, "Half of all calls of the master took no longer.", |of| {
        of.calls[0]
    }),
    series("call_p99", Unit::Microseconds, "The same of 99 in a hundred.", |of| of.calls[1]),
    series("servers", Unit::Count, "Region servers that report.", |of| Some(of.servers as f64)),
    series("regions", Unit::Count, "Regions that there are.", |of| Some(of.regions as f64)),
    series("in_transition", Unit::Count, "Regions that are being opened, closed, moved or split.", |of| {
        Some(of.in_transition as f64)
    }),
    series("procedures", Unit::Count, "Procedures that have not ended.", |of| Some(of.procedures as f64)),
    series("resident_bytes", Unit::Bytes, "Memory that the process has.", |of| {
        of.resident_bytes.map(|bytes| bytes as f64)
    }),
    series("errors", Unit::Count, "Errors that were logged since the start.", |of| Some(of.errors as f64)),
    series("cpu", Unit::Cores, "Processors that the process kept busy.", |of| of.cpu),
];

/// Keeps the last hour of `master`, whose calls come in at `calls`.
pub(crate) fn keep(
    env: &Env,
    period: Duration,
    metrics: &Arc<Registry>,
    master: &Arc<Master>,
    calls: &Arc<rpc::Server>,
) -> Arc<History> {
    let (master, calls) = (master.clone(), calls.clone());
    let (mut requests, mut cpu_us, mut times) = (Reported::default(), Rate::default(), Spread::default());
    super::keep(env, period, metrics, SERIES, move |now: Moment| {
        let context = master.context();
        let (reads, writes) = requests.at(context.servers.requests());
        let (regions, in_transition) = context.assignment.counts();
        Sample {
            reads,
            writes,
            calls: times.of(calls.instruments().total_time.micros()),
            servers: context.servers.count(),
            regions,
            in_transition,
            procedures: running(&master),
            errors: LOG_COUNTS.now()[0],
            resident_bytes: base::memory::resident_bytes(),
            cpu: region_server::cores(&mut cpu_us, now),
        }
    })
}

/// How fast counts grow that servers report: from report to report, for samples do not come when they do.
#[derive(Default)]
struct Reported {
    reported_ms: u64,
    reads: Rate,
    writes: Rate,
    last: (Option<f64>, Option<f64>),
}

impl Reported {
    /// Reads and writes in a second, where there were so many of both at the last report.
    fn at(&mut self, (reads, writes, reported_ms): (u64, u64, u64)) -> (Option<f64>, Option<f64>) {
        if reported_ms > self.reported_ms {
            self.reported_ms = reported_ms;
            let at = Moment { wall_ms: reported_ms, monotonic: Duration::from_millis(reported_ms) };
            self.last = (self.reads.at(at, reads), self.writes.at(at, writes));
        }
        self.last
    }
}

fn running(master: &Master) -> usize {
    master.procedures().list().iter().filter(|(_, status)| status.progress == Progress::Running).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_reported_grows_from_report_to_report() {
        let mut requests = Reported::default();
        assert_eq!(requests.at((100, 10, 50_000)), (None, None));
        assert_eq!(requests.at((400, 40, 53_000)), (Some(100.0), Some(10.0)));
        assert_eq!(requests.at((400, 40, 53_000)), (Some(100.0), Some(10.0)), "until the next report");
        assert_eq!(requests.at((10, 70, 56_000)), (None, Some(10.0)), "a region with many was closed");
    }
}
