//! The series of a region server.

use std::sync::Arc;
use std::time::Duration;

use base::env::Env;
use base::history::{History, Moment, Rate, Unit};
use base::metrics::Registry;
use regionserver::RegionServer;

use super::{Declared, Quantiles, Spread, series};
use crate::log_counts::LOG_COUNTS;

/// What is taken at one moment.
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
pub(crate) const SERIES: &[Declared<Sample>] = &[
    series("reads", Unit::PerSecond, "Rows that clients read.", |of: &Sample| of.reads),
    series("writes", Unit::PerSecond, "Mutations that clients made.", |of| of.writes),
    series("get_p50", Unit::Microseconds, "Half of all Gets took no longer.", |of| of.gets[0]),
    series("get_p99", Unit::Microseconds, "The same of 99 in a hundred.", |of| of.gets[1]),
    series("get_p999", Unit::Microseconds, "The same of 999 in a thousand.", |of| of.gets[2]),
    series("put_p50", Unit::Microseconds, "Half of all puts of one row took no longer.", |of| of.puts[0]),
    series("put_p99", Unit::Microseconds, "The same of 99 in a hundred.", |of| of.puts[1]),
    series("put_p999", Unit::Microseconds, "The same of 999 in a thousand.", |of| of.puts[2]),
    series("put_batch_p50", Unit::Microseconds, "Half of all puts made together took no longer.", |of| {
        of.batches[0]
    }),
    series("put_batch_p99", Unit::Microseconds, "The same of 99 in a hundred.", |of| of.batches[1]),
    series("put_batch_p999", Unit::Microseconds, "The same of 999 in a thousand.", |of| of.batches[2]),
    series("scan_p50", Unit::Microseconds, "Half of all calls of scans took no longer.", |of| of.scans[0]),
    series("scan_p99", Unit::Microseconds, "The same of 99 in a hundred.", |of| of.scans[1]),
    series("scan_p999", Unit::Microseconds, "The same of 999 in a thousand.", |of| of.scans[2]),
    series("bytes_in", Unit::BytesPerSecond, "Bytes read from clients.", |of| of.received),
    series("bytes_out", Unit::BytesPerSecond, "Bytes that clients took.", |of| of.sent),
    series("failed_calls", Unit::PerSecond, "Calls that failed, for whatever reason.", |of| of.failed),
    series("refused_calls", Unit::PerSecond, "Calls refused because there was no room for them.", |of| {
        of.refused_calls
    }),
    series(
        "refused_writes",
        Unit::PerSecond,
        "Mutations refused because their region had no room for them.",
        |of| of.refused_writes,
    ),
    series("connections", Unit::Count, "Connections that are open.", |of| Some(of.connections as f64)),
    series("memstore_bytes", Unit::Bytes, "Memory that memstores take.", |of| Some(of.memstore_bytes as f64)),
    series("cache_bytes", Unit::Bytes, "Memory that cached blocks take.", |of| Some(of.cache_bytes as f64)),
    series("request_bytes", Unit::Bytes, "Bytes of requests that are read or at work.", |of| {
        Some(of.request_bytes as f64)
    }),
    series("answer_bytes", Unit::Bytes, "Bytes of answers that clients have not taken.", |of| {
        Some(of.answer_bytes as f64)
    }),
    series("resident_bytes", Unit::Bytes, "Memory that the process has.", |of| {
        of.resident_bytes.map(|bytes| bytes as f64)
    }),
    series(
        "cache_hit_percent",
        Unit::Percent,
        "Of the blocks that were asked for those that were cached.",
        |of| of.cache_hits,
    ),
    series("flushes", Unit::Count, "Flushes that wait or run.", |of| Some(of.flushes as f64)),
    series("compactions_waiting", Unit::Count, "Compactions that wait.", |of| {
        Some(of.compactions_waiting as f64)
    }),
    series("compactions", Unit::Count, "Compactions that run.", |of| Some(of.compactions as f64)),
    series("sync_p50", Unit::Microseconds, "Half of all groups of edits took no longer to the disk.", |of| {
        of.syncs[0]
    }),
    series("sync_p99", Unit::Microseconds, "The same of 99 in a hundred.", |of| of.syncs[1]),
    series("log_bytes", Unit::BytesPerSecond, "Bytes written to logs.", |of| of.logged),
    series("errors", Unit::Count, "Errors that were logged since the start.", |of| Some(of.errors as f64)),
    series("cpu", Unit::Cores, "Processors that the process kept busy.", |of| of.cpu),
];

/// Keeps the last hour of `server`, whose calls come in at `calls`.
pub(crate) fn keep(
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
        spreads: Spreads::default(),
    };
    super::keep(env, period, metrics, SERIES, move |now| sampler.sample(now))
}

struct Sampler {
    server: Arc<RegionServer>,
    calls: Arc<rpc::Server>,
    rates: Rates,
    spreads: Spreads,
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
struct Spreads {
    gets: Spread,
    puts: Spread,
    batches: Spread,
    scans: Spread,
    syncs: Spread,
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
        self.server.instruments().tell_meters();
        let (of_server, calls) = (self.server.instruments().server(), self.calls.instruments());
        sample.reads = self.rates.reads.at(now, of_server.read_rows.count());
        sample.writes = self.rates.writes.at(now, of_server.written_rows.count());
        sample.gets = self.spreads.gets.of(of_server.get.micros());
        sample.puts = self.spreads.puts.of(of_server.put.micros());
        sample.batches = self.spreads.batches.of(of_server.put_batch.micros());
        sample.scans = self.spreads.scans.of(of_server.scan_time.micros());
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
        sample.request_bytes = shared.requests().used() as u64;
        sample.answer_bytes = shared.answers().used() as u64;
        sample.resident_bytes = base::memory::resident_bytes();
    }

    fn take_work(&mut self, now: Moment, sample: &mut Sample) {
        let (schedule, log) = (self.server.schedule(), &self.server.log_instruments().all);
        sample.flushes = schedule.flushes();
        sample.compactions_waiting = schedule.compactions().waiting();
        sample.compactions = schedule.compactions().running();
        sample.syncs = self.spreads.syncs.of(log.sync_time.micros());
        sample.logged = self.rates.logged.at(now, log.written_bytes.get());
        [sample.errors, ..] = LOG_COUNTS.now();
        sample.cpu = cores(&mut self.rates.cpu_us, now);
    }
}

/// Processors that this process kept busy since the last call.
pub(super) fn cores(cpu_us: &mut Rate, now: Moment) -> Option<f64> {
    let micros = u64::try_from(base::threads::cpu_time()?.as_micros()).ok()?;
    Some(cpu_us.at(now, micros)? / 1e6)
}

/// Nothing of nothing is not known.
fn percent(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part * 100.0 / whole)
}
