//! Traces of calls: spans that are named as HBase names them (HBASE-22120), made of calls when these have ended.
//!
//! A call has two spans of a server, as in HBase: `RpcServer.process` from its arrival to its end, and below it one
//! named by service and method (`hbase.pb.ClientService/Get`) from its beginning, with the attributes `rpc.system`,
//! `rpc.service` and `rpc.method`. A call whose client is in a trace goes with its client's choice; of the others a
//! share is chosen. What is not chosen costs a random number. Spans wait in a bounded queue, and are sent from a
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

/// Calls that wait to be sent; more are forgotten. Source: the SDKs' queue of 2048 spans, of which a call has two.
const CALLS_WAITING: usize = 1024;
/// Calls of a request at most.
const CALLS_AT_ONCE: usize = 256;
/// The pause between two sendings, the SDKs' too.
const PERIOD: Duration = Duration::from_secs(5);
const REQUEST_LIMIT: Duration = Duration::from_secs(10);
/// A failure that goes on is told of so often.
const SILENCE: Duration = Duration::from_secs(600);
const PATH: &str = "/v1/traces";
/// Source: HBase's protobuf files.
const PACKAGE: &str = "hbase.pb.";

/// The trace that a call is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    trace_id: [u8; 16],
    // The client's span.
    parent: Option<[u8; 8]>,
}

/// A call that ended; times are of the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub struct TracedCall<'a> {
    /// The service without its package, as `ClientService`.
    pub service: &'static str,
    /// The method.
    pub method: &'a str,
    /// When its request was read.
    pub received: Duration,
    /// When it was begun.
    pub begun: Duration,
    /// The Java class and the message of what went wrong, if anything.
    pub failure: Option<(&'a str, &'a str)>,
}

/// Who hears of calls that ended.
pub trait TraceObserver: Send + Sync + 'static {
    /// Whether the end of a call is to be told, asked at its beginning; `trace_info` is the `RPCTInfo` of its
    /// request's header, or nothing.
    fn wants(&self, trace_info: &[u8]) -> Option<TraceContext>;
    /// A call that was wanted ended just now.
    fn ended(&self, trace: TraceContext, call: TracedCall<'_>);
}

/// Makes spans of calls, and sends them.
pub struct Spans {
    env: Env,
    // Of 2^64 traces so many are chosen.
    share: u64,
    // Nanoseconds since the epoch when the monotonic clock began.
    epoch_nanos: u64,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    spans: Vec<[Span; 2]>,
    forgotten: u64,
}

impl Spans {
    /// Spans of the share `ratio` of traces, which a role on a host sends for as long as the process lives.
    pub fn start(env: &Env, options: OtlpOptions, ratio: f64, role: &'static str, host: &str) -> Arc<Spans> {
        let spans = Arc::new(Spans::new(env, ratio));
        let sender =
            Arc::new(Sender { spans: spans.clone(), resource: options.resource(role, host), options });
        let task = async move {
            let (runtime, mut last_told) = (Handle::current(), None);
            let (env, pool) = (sender.spans.env.clone(), Pool::background("traces", 1));
            loop {
                env.clock.sleep(PERIOD).await;
                let (of_job, of_sockets) = (sender.clone(), runtime.clone());
                let sent = pool.run(move || of_job.send_all(&of_sockets)).await;
                let now = env.clock.monotonic();
                if let Err(error) = sent
                    && last_told.is_none_or(|last| now >= last + SILENCE)
                {
                    warn!(error, "traces cannot be sent; those of this time are forgotten");
                    last_told = Some(now);
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
            // A float that is too large becomes the largest number.
            share: (ratio * 2f64.powi(64)) as u64,
            epoch_nanos: now.saturating_sub(nanos(env.clock.monotonic())),
            waiting: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // Nothing panics while it holds the lock.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn nanos(&self, time: Duration) -> u64 {
        self.epoch_nanos + u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
    }

    /// An id of a span: any number but 0, which is none.
    fn span_id(&self) -> Vec<u8> {
        self.env.random.next_u64().max(1).to_be_bytes().to_vec()
    }
}

impl TraceObserver for Spans {
    fn wants(&self, trace_info: &[u8]) -> Option<TraceContext> {
        match trace_parent(trace_info) {
            Some((trace, true)) => Some(trace),
            Some((_, false)) => None,
            None => {
                // The lower half decides, as for all who choose by a trace's id.
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

    fn ended(&self, trace: TraceContext, call: TracedCall<'_>) {
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
        let mut waiting = self.lock();
        if waiting.spans.len() < CALLS_WAITING {
            waiting.spans.push([outer, inner]);
        } else {
            waiting.forgotten += 1;
        }
    }
}

fn status(code: StatusCode) -> Status {
    Status { code: code.into(), ..Status::default() }
}

/// What sends the spans of a role.
struct Sender {
    spans: Arc<Spans>,
    options: OtlpOptions,
    resource: opentelemetry_proto::tonic::resource::v1::Resource,
}

impl Sender {
    /// Sends all that waits, from a thread that may wait itself.
    fn send_all(&self, runtime: &Handle) -> Result<(), String> {
        let Waiting { spans, forgotten } = std::mem::take(&mut *self.spans.lock());
        if forgotten > 0 {
            tracing::debug!(forgotten, "more calls were to be traced than there was room for");
        }
        for some in spans.chunks(CALLS_AT_ONCE) {
            let spans = some.iter().flatten().cloned().collect();
            let of_scope = ScopeSpans { scope: Some(scope()), spans, ..ScopeSpans::default() };
            let of_role = ResourceSpans {
                resource: Some(self.resource.clone()),
                scope_spans: vec![of_scope],
                ..ResourceSpans::default()
            };
            let message = ExportTraceServiceRequest { resource_spans: vec![of_role] }.encode_to_vec();
            let env = &self.spans.env;
            let posted = post(env, &self.options.endpoint, PATH, message);
            let late = || Err(format!("{}: no answer in time", self.options.endpoint));
            runtime.block_on(env.timeout(REQUEST_LIMIT, posted)).unwrap_or_else(late)?;
        }
        Ok(())
    }
}

/// The trace that a client is in, and whether it is one of those that are sent: `traceparent` among the headers of an
/// `RPCTInfo` (3: headers, a map; of each 1: key, 2: value). What cannot be read is none.
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
    of_traceparent(info.headers.get("traceparent")?)
}

/// Source: W3C Trace Context: `VERSION-TRACE-SPAN-FLAGS`, in small hexadecimal digits.
fn of_traceparent(header: &str) -> Option<(TraceContext, bool)> {
    let mut parts = header.trim().split('-');
    let (version, trace_id, parent, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let [version] = bytes_of::<1>(version)?;
    // Later versions may have more behind it, the first one has not.
    if version == 0xff || version == 0 && parts.next().is_some() {
        return None;
    }
    let (trace_id, parent, [flags]) = (bytes_of(trace_id)?, bytes_of(parent)?, bytes_of::<1>(flags)?);
    if trace_id == [0; 16] || parent == [0; 8] {
        return None;
    }
    Some((TraceContext { trace_id, parent: Some(parent) }, flags & 1 == 1))
}

fn bytes_of<const LEN: usize>(digits: &str) -> Option<[u8; LEN]> {
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

/// Some trace.
#[cfg(test)]
pub(super) fn trace_of_test() -> TraceContext {
    TraceContext { trace_id: [1; 16], parent: None }
}

#[cfg(test)]
mod tests {
    use base::testing::env;

    use super::*;
    use crate::otlp::Endpoint;
    use crate::testing::Collector;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    /// `RPCTInfo` with one header, as HBase's clients send it.
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
        let trace = none.wants(&info(PARENT)).unwrap();
        assert_eq!(trace.trace_id[..2], [0x4b, 0xf9]);
        assert_eq!(trace.parent.unwrap()[..2], [0x00, 0xf0]);
        assert_eq!(all.wants(&info(&PARENT.replace("-01", "-00"))), None, "the client chose not to");
        assert_eq!(none.wants(&[]), None);
        assert!(all.wants(&[]).is_some() && all.wants(b"\xff\xff").is_some(), "what is no header is none");
        let some = Spans::new(&env, 0.25);
        let chosen = (0..4000).filter(|_| some.wants(&[]).is_some()).count();
        assert!((850..1150).contains(&chosen), "{chosen}");
    }

    #[test]
    fn traceparents_are_of_w3c() {
        assert!(of_traceparent(PARENT).unwrap().1);
        assert!(of_traceparent(&PARENT.replace("00-4", "cc-4")).is_some(), "a later version");
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
            assert!(of_traceparent(broken).is_none(), "{broken}");
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
        let trace = spans.wants(&info(PARENT)).unwrap();
        let (received, begun) = (Duration::from_micros(10), Duration::from_micros(30));
        let call = TracedCall { service: "ClientService", method: "Get", received, begun, failure: None };
        spans.ended(trace, call);
        spans.ended(trace, TracedCall { failure: Some(("java.io.IOException", "no")), ..call });
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
        // The clock by which the epoch is known tells milliseconds.
        assert!((outer.start_time_unix_nano / 1_000_000).abs_diff(base::testing::START_MS) <= 1);
        let keys: Vec<_> = inner.attributes.iter().map(|of| of.key.as_str()).collect();
        assert_eq!(keys, ["rpc.system", "rpc.service", "rpc.method"]);
        assert_eq!((inner.status.as_ref().unwrap().code, failed.status.as_ref().unwrap().code), (1, 2));
        assert_eq!(failed.events[0].name, "exception");
    }

    #[tokio::test]
    async fn calls_that_find_no_room_are_forgotten() {
        let env = env(1);
        let spans = Spans::new(&env, 1.0);
        let times = Duration::ZERO;
        for _ in 0..CALLS_WAITING + 3 {
            let trace = spans.wants(&[]).unwrap();
            let (service, method) = ("ClientService", "Get");
            spans.ended(trace, TracedCall { service, method, received: times, begun: times, failure: None });
        }
        let waiting = spans.lock();
        assert_eq!((waiting.spans.len(), waiting.forgotten), (CALLS_WAITING, 3));
    }
}
