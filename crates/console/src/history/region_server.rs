//! The time series of a region server.

use std::sync::Arc;
use std::time::Duration;

use base::env::Env;
use base::history::{History, Moment, Rate, Unit};
use base::metrics::Registry;
use regionserver::RegionServer;

use super::{IntervalPercentiles, Quantiles, SampledSeries, series};
use crate::log_counts::LOG_COUNTS;

/// Values read at one moment.
#[derive(Default)]
pub(crate) struct Sample {
    reads: Option<f64>,
    writes: Option<f64>,
    gets: Quantiles,
    puts: Quantiles,
    batches: Quantiles,
    scans: Quantiles,
    syncs: Quantiles,
    received: Option<f64>,
    sent: Option<f64>,
    logged: Option<f64>,
    failed: Option<f64>,
    refused_calls: Option<f64>,
    refused_writes: Option<f64>,
    errors: u64,
    cache_hits: Option<f64>,
    memstore_bytes: u64,
    cache_bytes: u64,
    request_bytes: u64,
    answer_bytes: u64,
    resident_bytes: Option<u64>,
    flushes: usize,
    compactions_waiting: usize,
    compactions: usize,
    connections: usize,
    cpu: Option<f64>,
}

/// The series, in the order of the page.
pub(crate) const SERIES: &[SampledSeries<Sample>] = &[
    series("reads", Unit::PerSecond, "Rows that clients read.", |of: &Sample| of.reads),
    series("writes", Unit::PerSecond, "Mutations by clients.", |of| of.writes),
    series("get_p50", Unit::Microseconds, "Median time of Gets.", |of| of.gets[0]),
    series("get_p99", Unit::Microseconds, "99th percentile of Get times.", |of| of.gets[1]),
    series("get_p999", Unit::Microseconds, "99.9th percentile of Get times.", |of| of.gets[2]),
    series("put_p50", Unit::Microseconds, "Median time of single-row puts.", |of| of.puts[0]),
    series("put_p99", Unit::Microseconds, "99th percentile of single-row put times.", |of| of.puts[1]),
    series("put_p999", Unit::Microseconds, "99.9th percentile of single-row put times.", |of| of.puts[2]),
    series("put_batch_p50", Unit::Microseconds, "Median time of batches that contain puts.", |of| {
        of.batches[0]
    }),
    series("put_batch_p99", Unit::Microseconds, "99th percentile of put batch times.", |of| of.batches[1]),
    series("put_batch_p999", Unit::Microseconds, "99.9th percentile of put batch times.", |of| of.batches[2]),
    series("scan_p50", Unit::Microseconds, "Median time of scan calls.", |of| of.scans[0]),
    series("scan_p99", Unit::Microseconds, "99th percentile of scan call times.", |of| of.scans[1]),
    series("scan_p999", Unit::Microseconds, "99.9th percentile of scan call times.", |of| of.scans[2]),
    series("bytes_in", Unit::BytesPerSecond, "Bytes received from clients.", |of| of.received),
    series("bytes_out", Unit::BytesPerSecond, "Bytes sent to clients.", |of| of.sent),
    series("failed_calls", Unit::PerSecond, "Failed calls.", |of| of.failed),
    series("refused_calls", Unit::PerSecond, "Calls rejected because a limit was reached.", |of| {
        of.refused_calls
    }),
    series(
        "refused_writes",
        Unit::PerSecond,
        "Mutations rejected because memstores or the queue of the log were full.",
        |of| of.refused_writes,
    ),
    series("connections", Unit::Count, "Open connections.", |of| Some(of.connections as f64)),
    series("memstore_bytes", Unit::Bytes, "Memory used by memstores.", |of| Some(of.memstore_bytes as f64)),
    series("cache_bytes", Unit::Bytes, "Memory used by cached blocks.", |of| Some(of.cache_bytes as f64)),
    series("request_bytes", Unit::Bytes, "Bytes of requests being received or processed.", |of| {
        Some(of.request_bytes as f64)
    }),
    series("answer_bytes", Unit::Bytes, "Bytes of responses being built or not sent yet.", |of| {
        Some(of.answer_bytes as f64)
    }),
    series("resident_bytes", Unit::Bytes, "Resident memory of the process.", |of| {
        of.resident_bytes.map(|bytes| bytes as f64)
    }),
    series(
        "cache_hit_percent",
        Unit::Percent,
        "Percentage of block requests that hit the block cache.",
        |of| of.cache_hits,
    ),
    series("flushes", Unit::Count, "Queued and running flushes.", |of| Some(of.flushes as f64)),
    series("compactions_waiting", Unit::Count, "Queued compactions.", |of| {
        Some(of.compactions_waiting as f64)
    }),
    series("compactions", Unit::Count, "Running compactions.", |of| Some(of.compactions as f64)),
    series("sync_p50", Unit::Microseconds, "Median time to write and sync one commit group.", |of| {
        of.syncs[0]
    }),
    series("sync_p99", Unit::Microseconds, "99th percentile of commit group sync times.", |of| of.syncs[1]),
    series("log_bytes", Unit::BytesPerSecond, "Bytes written to logs.", |of| of.logged),
    series("errors", Unit::Count, "Errors logged since the start.", |of| Some(of.errors as f64)),
    series("cpu", Unit::Cores, "CPU cores used by the process.", |of| of.cpu),
];

/// Keeps the last hour of `server`; `calls` is its RPC server.
pub(crate) fn start_sampling(
    env: &Env,
    period: Duration,
    metrics: &Arc<Registry>,
    server: &Arc<RegionServer>,
    calls: &Arc<rpc::Server>,
) -> Arc<History> {
    let mut sampler = Sampler {
        server: server.clone(),
        calls: calls.clone(),
        rates: Rates::default(),
        latencies: Latencies::default(),
    };
    super::start_sampling(env, period, metrics, SERIES, move |now| sampler.sample(now))
}

struct Sampler {
    server: Arc<RegionServer>,
    calls: Arc<rpc::Server>,
    rates: Rates,
    latencies: Latencies,
}

#[derive(Default)]
struct Rates {
    reads: Rate,
    writes: Rate,
    received: Rate,
    sent: Rate,
    logged: Rate,
    failed: Rate,
    refused_calls: Rate,
    refused_writes: Rate,
    hits: Rate,
    misses: Rate,
    cpu_us: Rate,
}

#[derive(Default)]
struct Latencies {
    gets: IntervalPercentiles,
    puts: IntervalPercentiles,
    batches: IntervalPercentiles,
    scans: IntervalPercentiles,
    syncs: IntervalPercentiles,
}

impl Sampler {
    fn sample(&mut self, now: Moment) -> Sample {
        let mut sample = Sample::default();
        self.take_requests(now, &mut sample);
        self.take_memory(now, &mut sample);
        self.take_work(now, &mut sample);
        sample
    }

    fn take_requests(&mut self, now: Moment, sample: &mut Sample) {
        self.server.instruments().update_meters();
        let (of_server, calls) = (self.server.instruments().server(), self.calls.instruments());
        sample.reads = self.rates.reads.at(now, of_server.read_rows.count());
        sample.writes = self.rates.writes.at(now, of_server.written_rows.count());
        sample.gets = self.latencies.gets.since_last(of_server.get.micros());
        sample.puts = self.latencies.puts.since_last(of_server.put.micros());
        sample.batches = self.latencies.batches.since_last(of_server.put_batch.micros());
        sample.scans = self.latencies.scans.since_last(of_server.scan_time.micros());
        sample.received = self.rates.received.at(now, calls.received.get());
        sample.sent = self.rates.sent.at(now, calls.sent.get());
        sample.failed = self.rates.failed.at(now, calls.exceptions.get());
        sample.refused_calls = self.rates.refused_calls.at(now, self.calls.shared().calls_refused());
        sample.refused_writes = self.rates.refused_writes.at(now, of_server.blocked_requests.get());
        sample.connections = self.calls.connections();
    }

    fn take_memory(&mut self, now: Moment, sample: &mut Sample) {
        let (cache, shared) = (self.server.cache_stats(), self.calls.shared());
        let (hits, misses) = (self.rates.hits.at(now, cache.hits), self.rates.misses.at(now, cache.misses));
        sample.cache_hits = hits.zip(misses).and_then(|(hits, misses)| percent(hits, hits + misses));
        sample.cache_bytes = cache.weight_bytes;
        sample.memstore_bytes = self.server.memstore_bytes();
        sample.request_bytes = shared.request_budget().used() as u64;
        sample.answer_bytes = shared.response_budget().used() as u64;
        sample.resident_bytes = base::memory::resident_bytes();
    }

    fn take_work(&mut self, now: Moment, sample: &mut Sample) {
        let (schedule, log) = (self.server.schedule(), &self.server.shared_log_instruments().all);
        sample.flushes = schedule.flushes();
        sample.compactions_waiting = schedule.compactions().waiting();
        sample.compactions = schedule.compactions().running();
        sample.syncs = self.latencies.syncs.since_last(log.sync_time.micros());
        sample.logged = self.rates.logged.at(now, log.written_bytes.get());
        [sample.errors, ..] = LOG_COUNTS.now();
        sample.cpu = cores(&mut self.rates.cpu_us, now);
    }
}

/// CPU cores used by this process since the last call, on average.
pub(super) fn cores(cpu_us: &mut Rate, now: Moment) -> Option<f64> {
    let micros = u64::try_from(base::threads::cpu_time()?.as_micros()).ok()?;
    Some(cpu_us.at(now, micros)? / 1e6)
}

/// `None` if `whole` is 0.
fn percent(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part * 100.0 / whole)
}
