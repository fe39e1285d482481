//! The calls that took long or gave much: one line each in the log, and the last of them kept for clients and pages.
//!
//! As HBase's slow log and large log, with where the time went. What counts here is all that the client's call took: its
//! wait for its turn, its work, and a long answer's way to the client; in HBase it is the work.
//!
//! * [`details`]: what a call's message says, in words;
//! * [`shares`]: where its time went, by phase;
//! * [`answer`]: the answers of `AdminService`.

mod answer;
mod details;
mod shares;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::spent::{Spent, Use};
use rpc::server::{CallObserver, EndedCall, Watch};
use serde_json::{Map, Value, json};
use tracing::warn;

pub use details::Details;
pub use shares::{Share, Shares};

use crate::server::RegionServer;

/// Which calls are slow or large, and how many are kept. By default none is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlowLogOptions {
    /// Calls that take longer are slow (`hbase.ipc.warn.response.time`).
    pub slow: Option<Duration>,
    /// The same for scans (`hbase.ipc.warn.response.time.scan`).
    pub slow_scan: Option<Duration>,
    /// Calls with a longer answer are large (`hbase.ipc.warn.response.size`).
    pub large_bytes: Option<usize>,
    /// The same for scans (`hbase.ipc.warn.response.size.scan`).
    pub large_scan_bytes: Option<usize>,
    /// Calls that are kept (`hbase.regionserver.slowlog.ringbuffer.size`); 0 if none are.
    pub kept: usize,
}

/// A call that took long or gave much.
#[derive(Debug)]
pub struct SlowCall {
    /// When it came: milliseconds since the Unix epoch.
    pub start_ms: u64,
    /// How long it took altogether.
    pub took: Duration,
    /// How long it waited for its turn.
    pub queued: Duration,
    /// How long it was at work.
    pub processed: Duration,
    /// Where all the time went.
    pub shares: Shares,
    /// What it used.
    pub spent: Spent,
    /// Bytes that came.
    pub request_bytes: usize,
    /// Bytes of its answer.
    pub response_bytes: usize,
    /// Who asked.
    pub client: SocketAddr,
    /// The user he is.
    pub user: String,
    /// What was asked, in the words of the service.
    pub method: String,
    /// What its message says.
    pub details: Details,
    /// Whether it took too long.
    pub is_slow: bool,
    /// Whether its answer was too large.
    pub is_large: bool,
    /// The Java class of its failure.
    pub failure: Option<String>,
}

/// The last calls that took long or gave much.
pub struct SlowLog {
    options: SlowLogOptions,
    calls: Mutex<VecDeque<Arc<SlowCall>>>,
}

impl SlowLog {
    /// An empty one.
    pub fn new(options: SlowLogOptions) -> SlowLog {
        SlowLog { options, calls: Mutex::default() }
    }

    /// The calls that are kept, the newest first.
    pub fn newest_first(&self) -> Vec<Arc<SlowCall>> {
        self.calls().iter().rev().cloned().collect()
    }

    /// Forgets all calls; whether any are kept at all.
    pub fn clear(&self) -> bool {
        self.calls().clear();
        self.options.kept > 0
    }

    fn keep(&self, call: SlowCall) {
        if self.options.kept == 0 {
            return;
        }
        let mut calls = self.calls();
        if calls.len() >= self.options.kept {
            calls.pop_front();
        }
        calls.push_back(Arc::new(call));
    }

    fn calls(&self) -> MutexGuard<'_, VecDeque<Arc<SlowCall>>> {
        // Whole calls only: nothing is half done after a panic.
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a call of `method` is slow, and whether it is large.
    fn judge(&self, method: &str, took: Duration, response_bytes: usize) -> (bool, bool) {
        let SlowLogOptions { slow, slow_scan, large_bytes, large_scan_bytes, .. } = self.options;
        let (slow, large) =
            if method == "Scan" { (slow_scan, large_scan_bytes) } else { (slow, large_bytes) };
        (slow.is_some_and(|slow| took > slow), large.is_some_and(|large| response_bytes > large))
    }
}

impl SlowLogOptions {
    /// What the RPC server is to tell to `observer`.
    pub fn watch(&self, observer: Arc<dyn CallObserver>) -> Watch {
        Watch {
            observer,
            slow: [self.slow, self.slow_scan].into_iter().flatten().min(),
            large_bytes: [self.large_bytes, self.large_scan_bytes].into_iter().flatten().min(),
        }
    }
}

/// Keeps the slow calls of a server.
pub struct SlowCalls(pub Arc<RegionServer>);

impl CallObserver for SlowCalls {
    fn ended(&self, call: &EndedCall) {
        let log = self.0.slow_log();
        let (is_slow, is_large) = log.judge(&call.method, call.took(), call.response_len);
        if !is_slow && !is_large {
            return;
        }
        let clock = &self.0.env().clock;
        let age = clock.monotonic().saturating_sub(call.received);
        let mut details = Details::of(&call.method, call.param.as_deref());
        if details.region.is_none()
            && let Some(region) = call.spent.subject().and_then(|number| self.0.regions().numbered(number))
        {
            details.region = Some(details::told(&region.info().name()));
            details.table = Some(region.info().table.to_string());
        }
        let call = SlowCall {
            start_ms: clock.now_ms().saturating_sub(age.as_millis() as u64),
            took: call.took(),
            queued: call.begun.saturating_sub(call.received),
            processed: call.ended.saturating_sub(call.begun),
            shares: Shares::of(call),
            spent: call.spent,
            request_bytes: call.request_len,
            response_bytes: call.response_len,
            client: call.connection.peer,
            user: call.connection.user.clone().unwrap_or_default(),
            method: call.method.to_string(),
            details,
            is_slow,
            is_large,
            failure: call.failure.as_deref().map(str::to_owned),
        };
        warn!("({}): {}", call.tag(), call.line());
        log.keep(call);
    }
}

impl SlowCall {
    /// HBase's word for it in the log (`RpcServer.logResponse`).
    fn tag(&self) -> &'static str {
        if self.is_slow { "responseTooSlow" } else { "responseTooLarge" }
    }

    /// One line for the log: HBase's keys, and where the time went.
    fn line(&self) -> Value {
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
        put("class", json!(answer::SERVER_CLASS));
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
        let shares =
            self.shares.iter().map(|(share, time)| (share.name().to_owned(), json!(time.as_millis() as u64)));
        put("timems", Value::Object(shares.collect()));
        put("rows", json!(self.spent.used(Use::Rows)));
        put("blocksfound", json!(self.spent.used(Use::BlocksFound)));
        put("blocksread", json!(self.spent.used(Use::BlocksRead)));
        put("blockbytesscanned", json!(self.spent.used(Use::BlockBytes)));
        if let Some(failure) = &self.failure {
            put("failure", json!(failure));
        }
        Value::Object(line)
    }
}
