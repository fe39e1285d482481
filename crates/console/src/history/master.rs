//! The time series of a master.

use std::sync::Arc;
use std::time::Duration;

use base::env::Env;
use base::history::{History, Moment, Rate, Unit};
use base::metrics::Registry;
use master::Master;
use master::procedure::executor::Progress;

use super::{IntervalPercentiles, Quantiles, SampledSeries, region_server, series};
use crate::log_counts::LOG_COUNTS;

/// Values read at one moment.
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
pub(crate) const SERIES: &[SampledSeries<Sample>] = &[
    series(
        "reads",
        Unit::PerSecond,
        "Rows read in all open regions, as reported by the region servers.",
        |of: &Sample| of.reads,
    ),
    series(
        "writes",
        Unit::PerSecond,
        "Mutations in all open regions, as reported by the region servers.",
        |of| of.writes,
    ),
    series("call_p50", Unit::Microseconds, "Median time of calls to the master, with queue time.", |of| {
        of.calls[0]
    }),
    series("call_p99", Unit::Microseconds, "99th percentile of the time of master calls.", |of| of.calls[1]),
    series("servers", Unit::Count, "Live region servers.", |of| Some(of.servers as f64)),
    series("regions", Unit::Count, "Regions of the cluster.", |of| Some(of.regions as f64)),
    series("in_transition", Unit::Count, "Regions that are being opened, closed, moved or split.", |of| {
        Some(of.in_transition as f64)
    }),
    series("procedures", Unit::Count, "Procedures that have not ended.", |of| Some(of.procedures as f64)),
    series("resident_bytes", Unit::Bytes, "Resident memory of the process.", |of| {
        of.resident_bytes.map(|bytes| bytes as f64)
    }),
    series("errors", Unit::Count, "Errors logged since the start.", |of| Some(of.errors as f64)),
    series("cpu", Unit::Cores, "CPU cores used by the process.", |of| of.cpu),
];

/// Keeps the last hour of `master`; `calls` is its RPC server.
pub(crate) fn start_sampling(
    env: &Env,
    period: Duration,
    metrics: &Arc<Registry>,
    master: &Arc<Master>,
    calls: &Arc<rpc::Server>,
) -> Arc<History> {
    let (master, calls) = (master.clone(), calls.clone());
    let (mut requests, mut cpu_us, mut times) =
        (ReportedRates::default(), Rate::default(), IntervalPercentiles::default());
    super::start_sampling(env, period, metrics, SERIES, move |now: Moment| {
        let context = master.context();
        let (reads, writes) = requests.update(context.servers.requests());
        let (regions, in_transition) = context.assignment.counts();
        Sample {
            reads,
            writes,
            calls: times.since_last(calls.instruments().total_time.micros()),
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

/// Rates of counts that region servers report, computed from report to report, because reports and
/// samples come at different times.
#[derive(Default)]
struct ReportedRates {
    reported: Option<Duration>,
    reads: Rate,
    writes: Rate,
    last: (Option<f64>, Option<f64>),
}

impl ReportedRates {
    /// Reads and writes per second; the arguments are the counts at the last report, and when it
    /// was received, by the monotonic clock.
    fn update(
        &mut self,
        (reads, writes, reported): (u64, u64, Option<Duration>),
    ) -> (Option<f64>, Option<f64>) {
        if let Some(monotonic) = reported.filter(|_| reported > self.reported) {
            self.reported = reported;
            // Rates depend only on the monotonic clock.
            let at = Moment { wall_ms: 0, monotonic };
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
    fn rates_are_computed_from_report_to_report() {
        let mut requests = ReportedRates::default();
        let at = |second| Some(Duration::from_secs(second));
        assert_eq!(requests.update((0, 0, None)), (None, None), "no report yet");
        assert_eq!(requests.update((100, 10, at(50))), (None, None));
        assert_eq!(requests.update((400, 40, at(53))), (Some(100.0), Some(10.0)));
        assert_eq!(requests.update((400, 40, at(53))), (Some(100.0), Some(10.0)), "until the next report");
        assert_eq!(requests.update((10, 70, at(56))), (None, Some(10.0)), "a region with many was closed");
    }
}
