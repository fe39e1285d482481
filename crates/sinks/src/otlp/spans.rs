//! Traces of calls. Spans have HBase's names (HBASE-22120) and are built when a call has ended.
//!
//! As in HBase, a call has two server spans. `RpcServer.process` lasts from its arrival to its end.
//! Its child, named by service and method (`hbase.pb.ClientService/Get`), starts when the call
//! starts, and has the attributes `rpc.system`, `rpc.service` and `rpc.method`. If the client is in
//! a trace, its sampling decision applies; otherwise a configured share of calls is sampled. A call
//! that is not sampled costs one random number. Spans wait in a bounded queue and are sent from a
//! thread of low priority.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::env::{Env, TaskClass};
use base::pool::Pool;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::span::{Event, SpanKind};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};
use prost::Message;
use tokio::runtime::Handle;
use tracing::warn;

use super::post::post;
use super::{OtlpOptions, scope, text};

/// Maximum number of calls that wait to be sent; more are dropped. Source: the SDKs' queue of 2048
/// spans, of which a call has two.
const CALLS_PENDING_MAX: usize = 1024;
/// Maximum number of calls in a request.
const CALLS_PER_REQUEST: usize = 256;
/// The pause between two exports, as in the SDKs.
const PERIOD: Duration = Duration::from_secs(5);
const REQUEST_LIMIT: Duration = Duration::from_secs(10);
/// Minimum time between two log lines about a persisting failure.
const SILENCE: Duration = Duration::from_secs(600);
const PATH: &str = "/v1/traces";
/// Source: HBase's protobuf files.
const PACKAGE: &str = "hbase.pb.";

/// The trace of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    trace_id: [u8; 16],
    // The client's span.
    parent: Option<[u8; 8]>,
}

/// A call that ended; times are on the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub struct TracedCall<'a> {
    /// The service name without its package, such as `ClientService`.
    pub service: &'static str,
    /// The method.
    pub method: &'a str,
    /// When its request was read.
    pub received: Duration,
    /// When it was started.
    pub begun: Duration,
    /// The Java class and the message of the error, if the call failed.
    pub failure: Option<(&'a str, &'a str)>,
}

/// Observes calls that ended.
pub trait TraceObserver: Send + Sync + 'static {
    /// Called when a call starts: whether to report its end. `trace_info` is the `RPCTInfo` of its
    /// request's header, or empty.
    fn sample(&self, trace_info: &[u8]) -> Option<TraceContext>;
    /// Called when a sampled call has just ended.
    fn record_end(&self, trace: TraceContext, call: TracedCall<'_>);
}

/// Builds spans of calls, and sends them.
pub struct Spans {
    env: Env,
    // The number of sampled traces out of 2^64.
    share: u64,
    // The time of the monotonic clock's origin, in nanoseconds since the epoch.
    epoch_nanos: u64,
    pending: Mutex<Pending>,
}

#[derive(Default)]
struct Pending {
    spans: Vec<[Span; 2]>,
    dropped: u64,
}

impl Spans {
    /// Starts sampling the share `ratio` of traces, which a role on a host sends until the process
    /// ends.
    pub fn start(env: &Env, options: OtlpOptions, ratio: f64, role: &'static str, host: &str) -> Arc<Spans> {
        let spans = Arc::new(Spans::new(env, ratio));
        let sender =
            Arc::new(Sender { spans: spans.clone(), resource: options.resource(role, host), options });
        let task = async move {
            let (runtime, mut last_logged) = (Handle::current(), None);
            let (env, pool) = (sender.spans.env.clone(), Pool::background("traces", 1));
            loop {
                env.clock.sleep(PERIOD).await;
                let (job_sender, socket_runtime) = (sender.clone(), runtime.clone());
                let sent = pool.run(move || job_sender.send_all(&socket_runtime)).await;
                let now = env.clock.monotonic();
                if let Err(error) = sent
                    && last_logged.is_none_or(|last| now >= last + SILENCE)
                {
                    warn!(error, "cannot send traces; dropping those of this period");
                    last_logged = Some(now);
                }
            }
        };
        env.spawn(TaskClass::Service, task);
        spans
    }

    fn new(env: &Env, ratio: f64) -> Spans {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let now = nanos(Duration::from_millis(env.clock.now_ms()));
        Spans {
            env: env.clone(),
            // The cast saturates: a value that is too large becomes the largest number.
            share: (ratio * 2f64.powi(64)) as u64,
            epoch_nanos: now.saturating_sub(nanos(env.clock.monotonic())),
            pending: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        // No code panics while it holds the lock.
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn nanos(&self, time: Duration) -> u64 {
        self.epoch_nanos + u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
    }

    /// A random span id; never 0, which is the invalid id.
    fn span_id(&self) -> Vec<u8> {
        self.env.random.next_u64().max(1).to_be_bytes().to_vec()
    }
}

impl TraceObserver for Spans {
    fn sample(&self, trace_info: &[u8]) -> Option<TraceContext> {
        match trace_parent(trace_info) {
            Some((trace, true)) => Some(trace),
            Some((_, false)) => None,
            None => {
                // The lower half decides, as in all samplers that use the trace id.
                let low = self.env.random.next_u64();
                if low >= self.share {
                    return None;
                }
                let mut trace_id = [0; 16];
                trace_id[..8].copy_from_slice(&self.env.random.next_u64().to_be_bytes());
                trace_id[8..].copy_from_slice(&low.max(1).to_be_bytes());
                Some(TraceContext { trace_id, parent: None })
            }
        }
    }

    fn record_end(&self, trace: TraceContext, call: TracedCall<'_>) {
        let TracedCall { service, method, received, begun, failure } = call;
        let now = self.env.clock.monotonic();
        let (outer_id, inner_id) = (self.span_id(), self.span_id());
        let service = format!("{PACKAGE}{service}");
        let span = |name: String, id: &[u8], parent: &[u8], begin: Duration| Span {
            trace_id: trace.trace_id.to_vec(),
            span_id: id.to_vec(),
            parent_span_id: parent.to_vec(),
            name,
            kind: SpanKind::Server.into(),
            start_time_unix_nano: self.nanos(begin),
            end_time_unix_nano: self.nanos(now),
            status: Some(status(StatusCode::Ok)),
            ..Span::default()
        };
        let parent = trace.parent.as_ref().map_or(&[][..], |parent| &parent[..]);
        let outer = span("RpcServer.process".to_owned(), &outer_id, parent, received);
        let mut inner = span(format!("{service}/{method}"), &inner_id, &outer_id, begun);
        inner.attributes = vec![
            text("rpc.system", "HBASE_RPC".to_owned()),
            text("rpc.service", service),
            text("rpc.method", method.to_owned()),
        ];
        if let Some((class, message)) = failure {
            inner.status = Some(status(StatusCode::Error));
            let of =
                vec![text("exception.type", class.to_owned()), text("exception.message", message.to_owned())];
            let event =
                Event { time_unix_nano: self.nanos(now), name: "exception".to_owned(), ..Event::default() };
            inner.events = vec![Event { attributes: of, ..event }];
        }
        let mut pending = self.lock();
        if pending.spans.len() < CALLS_PENDING_MAX {
            pending.spans.push([outer, inner]);
        } else {
            pending.dropped += 1;
        }
    }
}

fn status(code: StatusCode) -> Status {
    Status { code: code.into(), ..Status::default() }
}

/// Sends the spans of a role.
struct Sender {
    spans: Arc<Spans>,
    options: OtlpOptions,
    resource: opentelemetry_proto::tonic::resource::v1::Resource,
}

impl Sender {
    /// Sends all waiting spans, on a thread that may block.
    fn send_all(&self, runtime: &Handle) -> Result<(), String> {
        let Pending { spans, dropped } = std::mem::take(&mut *self.spans.lock());
        if dropped > 0 {
            tracing::debug!(dropped, "trace queue was full; dropped calls");
        }
        for some in spans.chunks(CALLS_PER_REQUEST) {
            let spans = some.iter().flatten().cloned().collect();
            let scope_spans = ScopeSpans { scope: Some(scope()), spans, ..ScopeSpans::default() };
            let resource_spans = ResourceSpans {
                resource: Some(self.resource.clone()),
                scope_spans: vec![scope_spans],
                ..ResourceSpans::default()
            };
            let message = ExportTraceServiceRequest { resource_spans: vec![resource_spans] }.encode_to_vec();
            let env = &self.spans.env;
            let posted = post(env, &self.options.endpoint, PATH, message);
            let timed_out = || Err(format!("{}: no response in time", self.options.endpoint));
            runtime.block_on(env.timeout(REQUEST_LIMIT, posted)).unwrap_or_else(timed_out)?;
        }
        Ok(())
    }
}

/// The trace of a client, and whether the client samples it. The `traceparent` is one of the
/// headers of an `RPCTInfo` (3: headers, a map; of each 1: key, 2: value). Invalid data counts as
/// no trace.
fn trace_parent(trace_info: &[u8]) -> Option<(TraceContext, bool)> {
    #[derive(Clone, PartialEq, Message)]
    struct Info {
        #[prost(map = "string, string", tag = "3")]
        headers: std::collections::HashMap<String, String>,
    }
    if trace_info.is_empty() {
        return None;
    }
    let info = Info::decode(trace_info).ok()?;
    parse_traceparent(info.headers.get("traceparent")?)
}

/// Source: W3C Trace Context: `VERSION-TRACE-SPAN-FLAGS`, in lower-case hexadecimal digits.
fn parse_traceparent(header: &str) -> Option<(TraceContext, bool)> {
    let mut parts = header.trim().split('-');
    let (version, trace_id, parent, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let [version] = parse_hex::<1>(version)?;
    // Later versions may have more fields; version 0 may not.
    if version == 0xff || version == 0 && parts.next().is_some() {
        return None;
    }
    let (trace_id, parent, [flags]) = (parse_hex(trace_id)?, parse_hex(parent)?, parse_hex::<1>(flags)?);
    if trace_id == [0; 16] || parent == [0; 8] {
        return None;
    }
    Some((TraceContext { trace_id, parent: Some(parent) }, flags & 1 == 1))
}

fn parse_hex<const LEN: usize>(digits: &str) -> Option<[u8; LEN]> {
    let is_small = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if digits.len() != 2 * LEN || !digits.bytes().all(is_small) {
        return None;
    }
    let mut bytes = [0; LEN];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(bytes)
}

/// An arbitrary trace.
#[cfg(test)]
pub(super) fn test_trace() -> TraceContext {
    TraceContext { trace_id: [1; 16], parent: None }
}

#[cfg(test)]
mod tests {
    use base::testing::env;

    use super::*;
    use crate::otlp::Endpoint;
    use crate::testing::Collector;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    /// An `RPCTInfo` with one header, as HBase's clients send it.
    fn info(traceparent: &str) -> Vec<u8> {
        let entry_len = u8::try_from(2 + "traceparent".len() + 2 + traceparent.len()).unwrap();
        let mut bytes = vec![0x1a, entry_len, 0x0a, 11];
        bytes.extend_from_slice(b"traceparent");
        bytes.extend([0x12, u8::try_from(traceparent.len()).unwrap()]);
        bytes.extend_from_slice(traceparent.as_bytes());
        bytes
    }

    #[tokio::test]
    async fn a_client_s_choice_counts_and_otherwise_a_share() {
        let env = env(1);
        let (none, all) = (Spans::new(&env, 0.0), Spans::new(&env, 1.0));
        let trace = none.sample(&info(PARENT)).unwrap();
        assert_eq!(trace.trace_id[..2], [0x4b, 0xf9]);
        assert_eq!(trace.parent.unwrap()[..2], [0x00, 0xf0]);
        assert_eq!(all.sample(&info(&PARENT.replace("-01", "-00"))), None, "the client chose not to");
        assert_eq!(none.sample(&[]), None);
        assert!(
            all.sample(&[]).is_some() && all.sample(b"\xff\xff").is_some(),
            "an invalid header counts as no trace"
        );
        let some = Spans::new(&env, 0.25);
        let chosen = (0..4000).filter(|_| some.sample(&[]).is_some()).count();
        assert!((850..1150).contains(&chosen), "{chosen}");
    }

    #[test]
    fn traceparents_are_of_w3c() {
        assert!(parse_traceparent(PARENT).unwrap().1);
        assert!(parse_traceparent(&PARENT.replace("00-4", "cc-4")).is_some(), "a later version");
        for broken in [
            "",
            "00",
            &PARENT.replace("00-4", "ff-4"),
            &format!("{PARENT}-more"),
            &PARENT.to_uppercase(),
            &PARENT.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            &PARENT.replace("00f067aa0ba902b7", &"0".repeat(16)),
            &PARENT[..PARENT.len() - 1],
            &PARENT.replace("4b", "é"),
        ] {
            assert!(parse_traceparent(broken).is_none(), "{broken}");
        }
    }

    #[tokio::test]
    async fn a_call_is_two_spans_in_its_clients_trace() {
        let env = env(1);
        let collector = Collector::start(&env, "200 OK").await;
        let endpoint = Endpoint::parse(&format!("http://c:{}", collector.port)).unwrap();
        let options = OtlpOptions { endpoint, service: Some("hbase".into()) };
        let spans = Arc::new(Spans::new(&env, 0.0));
        let sender =
            Sender { spans: spans.clone(), resource: options.resource("RegionServer", "host"), options };
        let trace = spans.sample(&info(PARENT)).unwrap();
        let (received, begun) = (Duration::from_micros(10), Duration::from_micros(30));
        let call = TracedCall { service: "ClientService", method: "Get", received, begun, failure: None };
        spans.record_end(trace, call);
        spans.record_end(trace, TracedCall { failure: Some(("java.io.IOException", "no")), ..call });
        let runtime = Handle::current();
        Pool::new("test", 1).run(move || sender.send_all(&runtime)).await.unwrap();
        let posts = collector.posts();
        assert_eq!((posts.len(), posts[0].0.as_str()), (1, "/v1/traces"));
        let request = ExportTraceServiceRequest::decode(&posts[0].1[..]).unwrap();
        let sent = &request.resource_spans[0].scope_spans[0].spans;
        let [outer, inner, _, failed] = &sent[..] else { panic!("{} spans", sent.len()) };
        assert_eq!((&*outer.name, &*inner.name), ("RpcServer.process", "hbase.pb.ClientService/Get"));
        assert_eq!((&outer.trace_id, &inner.trace_id), (&trace.trace_id.to_vec(), &outer.trace_id));
        assert_eq!(outer.parent_span_id, trace.parent.unwrap());
        assert_eq!(inner.parent_span_id, outer.span_id);
        let waited = inner.start_time_unix_nano - outer.start_time_unix_nano;
        assert_eq!((waited, inner.end_time_unix_nano), (20_000, outer.end_time_unix_nano));
        // The clock that determines the epoch has millisecond resolution.
        assert!((outer.start_time_unix_nano / 1_000_000).abs_diff(base::testing::START_MS) <= 1);
        let keys: Vec<_> = inner.attributes.iter().map(|of| of.key.as_str()).collect();
        assert_eq!(keys, ["rpc.system", "rpc.service", "rpc.method"]);
        assert_eq!((inner.status.as_ref().unwrap().code, failed.status.as_ref().unwrap().code), (1, 2));
        assert_eq!(failed.events[0].name, "exception");
    }

    #[tokio::test]
    async fn calls_are_dropped_if_the_buffer_is_full() {
        let env = env(1);
        let spans = Spans::new(&env, 1.0);
        let times = Duration::ZERO;
        for _ in 0..CALLS_PENDING_MAX + 3 {
            let trace = spans.sample(&[]).unwrap();
            let (service, method) = ("ClientService", "Get");
            spans.record_end(
                trace,
                TracedCall { service, method, received: times, begun: times, failure: None },
            );
        }
        let pending = spans.lock();
        assert_eq!((pending.spans.len(), pending.dropped), (CALLS_PENDING_MAX, 3));
    }
}
