//! Slow calls and calls with large responses. Each call is logged in one line, and the most recent
//! ones are retained for clients and status pages.
//!
//! This is HBase's slow log and large log, with a latency breakdown. A call is measured from its
//! arrival: its time in the queue, its work, and the sending of a long response count. HBase
//! measures only the work.
//!
//! * [`details`]: describes a call's message as text;
//! * [`phases`]: the latency breakdown by phase;
//! * [`responses`]: the responses of `AdminService`.

mod details;
mod phases;
mod responses;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::spent::{Spent, Use};
use rpc::server::{CallObserver, Watch};
use serde_json::{Map, Value, json};

pub use details::Details;
pub(crate) use details::printable;
pub use phases::{CallPhase, PhaseTimes};

/// Thresholds of slow and large calls, and how many calls to retain. By default no call is slow or
/// large.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlowLogOptions {
    /// Calls that take longer are slow (`hbase.ipc.warn.response.time`).
    pub slow: Option<Duration>,
    /// The same for scans (`hbase.ipc.warn.response.time.scan`).
    pub slow_scan: Option<Duration>,
    /// Calls with a longer response are large (`hbase.ipc.warn.response.size`).
    pub large_bytes: Option<usize>,
    /// The same for scans (`hbase.ipc.warn.response.size.scan`).
    pub large_scan_bytes: Option<usize>,
    /// Number of calls to retain (`hbase.regionserver.slowlog.ringbuffer.size`); 0 retains none.
    pub calls_max: usize,
}

/// A slow call, or one with a large response.
#[derive(Debug)]
pub struct SlowCall {
    /// Arrival time, in milliseconds since the Unix epoch.
    pub start_ms: u64,
    /// Total duration.
    pub took: Duration,
    /// Time in the queue.
    pub queued: Duration,
    /// Time from the end of the queue to the end of the work.
    pub processed: Duration,
    /// The latency breakdown.
    pub phases: PhaseTimes,
    /// The resources that it used.
    pub spent: Spent,
    /// Bytes of the request.
    pub request_bytes: usize,
    /// Bytes of the response.
    pub response_bytes: usize,
    /// The address of the client.
    pub client: SocketAddr,
    /// The name of the user.
    pub user: String,
    /// The name of the RPC method.
    pub method: String,
    /// The description of its message.
    pub details: Details,
    /// Whether its duration exceeded the threshold.
    pub is_slow: bool,
    /// Whether the size of its response exceeded the threshold.
    pub is_large: bool,
    /// The Java class of the exception, if the call failed.
    pub failure: Option<String>,
}

/// The most recent slow or large calls.
pub struct SlowLog {
    options: SlowLogOptions,
    calls: Mutex<VecDeque<Arc<SlowCall>>>,
}

impl SlowLog {
    /// Creates an empty log.
    pub fn new(options: SlowLogOptions) -> SlowLog {
        SlowLog { options, calls: Mutex::default() }
    }

    /// The retained calls, newest first.
    pub fn newest_first(&self) -> Vec<Arc<SlowCall>> {
        self.calls().iter().rev().cloned().collect()
    }

    /// Removes all calls. Returns whether the log retains calls at all.
    pub fn clear(&self) -> bool {
        self.calls().clear();
        self.options.calls_max > 0
    }

    pub(crate) fn add(&self, call: SlowCall) {
        if self.options.calls_max == 0 {
            return;
        }
        let mut calls = self.calls();
        if calls.len() >= self.options.calls_max {
            calls.pop_front();
        }
        calls.push_back(Arc::new(call));
    }

    fn calls(&self) -> MutexGuard<'_, VecDeque<Arc<SlowCall>>> {
        // The queue contains only complete calls, so it is usable after any panic.
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a call of `method` is slow, and whether it is large.
    pub(crate) fn classify(&self, method: &str, took: Duration, response_bytes: usize) -> (bool, bool) {
        let SlowLogOptions { slow, slow_scan, large_bytes, large_scan_bytes, .. } = self.options;
        let (slow, large) =
            if method == "Scan" { (slow_scan, large_scan_bytes) } else { (slow, large_bytes) };
        (slow.is_some_and(|slow| took > slow), large.is_some_and(|large| response_bytes > large))
    }
}

impl SlowLogOptions {
    /// The thresholds at which the RPC server reports calls to `observer`.
    pub fn watch(&self, observer: Arc<dyn CallObserver>) -> Watch {
        Watch {
            observer,
            slow: [self.slow, self.slow_scan].into_iter().flatten().min(),
            large_bytes: [self.large_bytes, self.large_scan_bytes].into_iter().flatten().min(),
        }
    }
}

impl SlowCall {
    /// HBase's tag for such a call in the log (`RpcServer.logResponse`).
    pub(crate) fn tag(&self) -> &'static str {
        if self.is_slow { "responseTooSlow" } else { "responseTooLarge" }
    }

    /// One line for the log: HBase's keys, and the latency breakdown.
    pub(crate) fn line(&self) -> Value {
        let details = &self.details;
        let mut line = Map::new();
        let mut put = |key: &str, value: Value| line.insert(key.to_owned(), value);
        put("starttimems", json!(self.start_ms));
        put("processingtimems", json!(self.processed.as_millis() as u64));
        put("queuetimems", json!(self.queued.as_millis() as u64));
        put("requestsize", json!(self.request_bytes));
        put("responsesize", json!(self.response_bytes));
        put("client", json!(self.client.to_string()));
        put("user", json!(self.user));
        put("class", json!(responses::SERVER_CLASS));
        put("method", json!(self.method));
        put("call", json!(details.call(&self.method)));
        put("param", json!(details.param));
        put("region", json!(details.region));
        if self.method == "Multi" {
            put("multi.gets", json!(details.gets));
            put("multi.mutations", json!(details.mutations));
            put("multi.service_calls", json!(details.service_calls));
        }
        put("totaltimems", json!(self.took.as_millis() as u64));
        let phases =
            self.phases.iter().map(|(phase, time)| (phase.name().to_owned(), json!(time.as_millis() as u64)));
        put("timems", Value::Object(phases.collect()));
        put("rows", json!(self.spent.used(Use::Rows)));
        put("blocksfound", json!(self.spent.used(Use::BlockHits)));
        put("blocksread", json!(self.spent.used(Use::BlocksRead)));
        put("blockbytesscanned", json!(self.spent.used(Use::BlockBytes)));
        if let Some(failure) = &self.failure {
            put("failure", json!(failure));
        }
        Value::Object(line)
    }
}
