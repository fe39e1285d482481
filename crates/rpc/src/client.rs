//! A connection to one service of one server, with multiplexed calls.
//!
//! One task writes requests and reads responses; each caller waits on its own channel. A lost
//! connection fails all its calls and accepts no more: its owner must open a new one. The late
//! response of a call that timed out is dropped. A connection on which nothing arrived for long
//! ([`ConnectOptions::silence_max`]) while a call waited accepts no more calls after this call has
//! timed out. Calls that still wait then are not affected: the server may be executing them.

mod session;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base::env::{Env, Stream, TaskClass};
use bytes::{Bytes, BytesMut};
use tokio::io::AsyncWriteExt;
use tokio::sync::{mpsc, oneshot};

use crate::call::Method;
use crate::cellblock::CellBlock;
use crate::frame::{RemoteException, RequestHeader};
use crate::header::{ClientVersion, Codec, ConnectionHeader};
use crate::preamble;
use session::{Outgoing, Session};

/// Number of requests that may queue for writing before further callers wait.
const QUEUE_LEN: usize = 1024;
/// The usual [`ConnectOptions::silence_max`]. It is longer than the time after which the kernel
/// discards unacknowledged bytes (`os::network`). So a server that could not be reached does not
/// receive old requests after newer ones on the next connection.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// Why a call has no response.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// No connection could be established: try another server, or retry later.
    #[error("cannot connect to {host}:{port}: {message}")]
    Connect {
        /// The server.
        host: String,
        /// Its port.
        port: u16,
        /// The operating system's message.
        message: String,
    },
    /// The connection was lost; the call may or may not have been executed.
    #[error("connection lost: {0}")]
    Lost(Arc<str>),
    /// No response in time; the call may or may not have been executed.
    #[error("no response to {method} within {timeout:?}")]
    TimedOut {
        /// The method called.
        method: String,
        /// The timeout that expired.
        timeout: Duration,
    },
    /// The response is longer than [`ConnectOptions::max_response_bytes`]. The call was executed.
    #[error("a response of {bytes} bytes exceeds the limit of {max} bytes")]
    TooLong {
        /// Its size.
        bytes: u32,
        /// The limit.
        max: u32,
    },
    /// The server answered with an exception.
    #[error("{}", .0.stack_trace.trim_end())]
    Remote(Arc<RemoteException>),
}

/// Parameters of a connection.
#[derive(Debug, Clone)]
pub struct ConnectOptions {
    /// The user name to send.
    pub user: String,
    /// The client version to send; servers adapt their responses to it.
    pub version: ClientVersion,
    /// Maximum time to establish the connection.
    pub connect_timeout: Duration,
    /// Maximum size in bytes of a response.
    pub max_response_bytes: u32,
    /// The class of threads, one of which serves the connection. The callers' own class is fastest.
    pub class: TaskClass,
    /// The codec of all cell blocks of the connection.
    pub codec: Codec,
    /// Time without a received byte, while a call waits, after which the connection counts as dead:
    /// a firewall may have dropped it. `None` if the server must never execute an old request after
    /// a newer one, which a server that was paused could do with requests of two connections.
    pub silence_max: Option<Duration>,
}

impl ConnectOptions {
    /// The parameters of an HBase 2.5 client.
    pub fn for_user(user: impl Into<String>) -> ConnectOptions {
        ConnectOptions {
            user: user.into(),
            version: ClientVersion { major: 2, minor: 5, text: "2.5.0".into() },
            connect_timeout: Duration::from_secs(10),
            max_response_bytes: 256 << 20,
            class: TaskClass::Service,
            codec: Codec::KeyValue,
            silence_max: Some(SILENCE_MAX),
        }
    }
}

/// A request to send.
#[derive(Debug, Clone)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The request message, protobuf.
    pub param: Bytes,
    /// The request's cells.
    pub cells: CellBlock,
    /// How long to wait for the response; also sent to the server.
    pub timeout: Duration,
    /// The priority of the call: 0 for user tables, 200 for `hbase:meta`.
    pub priority: u32,
}

/// The message and cell block of a successful response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The response message, protobuf.
    pub message: Bytes,
    /// The response's cells.
    pub cells: Bytes,
}

type Outcome = Result<Answer, Error>;

/// A connection. Cheap to clone; closed when the last clone is dropped.
#[derive(Clone)]
pub struct Connection {
    env: Env,
    requests: mpsc::Sender<Outgoing>,
    calls: Arc<Calls>,
}

impl Connection {
    /// Connects to `service` on a server.
    ///
    /// # Errors
    /// [`Error::Connect`]. A server that does not have the service closes the connection, so the
    /// first call fails.
    pub async fn connect(
        env: &Env,
        host: &str,
        port: u16,
        service: &str,
        options: &ConnectOptions,
    ) -> Result<Connection, Error> {
        let (requests, queue) = mpsc::channel(QUEUE_LEN);
        let calls = Arc::new(Calls { silence_max: options.silence_max, ..Calls::default() });
        let (mut opened, outcome) = oneshot::channel();
        let connection = Connection { env: env.clone(), requests, calls: Arc::clone(&calls) };
        let refused = |message| Error::Connect { host: host.to_string(), port, message };
        let (env, to, greeting) = (env.clone(), host.to_string(), opening(service, options));
        let ConnectOptions { connect_timeout, max_response_bytes, class, .. } = *options;
        // The socket registers with the thread that creates it, which must be the thread that reads
        // it.
        env.clone().spawn(class, async move {
            let opening = open(&env, &to, port, &greeting, connect_timeout);
            let stream = tokio::select! {
                biased;
                stream = opening => stream,
                () = opened.closed() => return,
            };
            match stream {
                // The caller may have given up.
                Ok(stream) => {
                    if opened.send(Ok(())).is_ok() {
                        Session::new(stream, queue, calls, max_response_bytes).run().await;
                    }
                }
                Err(message) => _ = opened.send(Err(message)),
            }
        });
        let opened = outcome.await.unwrap_or_else(|_| Err("connection thread ended".into()));
        opened.map(|()| connection).map_err(refused)
    }

    /// Whether the connection was lost.
    pub fn is_lost(&self) -> bool {
        self.calls.lost().is_some()
    }

    /// Calls a method and waits for the response.
    ///
    /// # Errors
    /// All variants except [`Error::Connect`].
    pub async fn call(&self, request: Request) -> Outcome {
        let timeout = request.timeout;
        let method = request.method.clone();
        // Before the timer starts, so that a call which waits for the longest silence ends it.
        let begun = self.env.clock.monotonic();
        match self.env.timeout(timeout, self.send(request, begun)).await {
            Some(outcome) => outcome,
            None => {
                self.calls.end_if_silent(self.env.clock.monotonic());
                Err(Error::TimedOut { method: method.to_string(), timeout })
            }
        }
    }

    async fn send(&self, request: Request, now: Duration) -> Outcome {
        let pending = Pending::register(&self.calls, now)?;
        let header = RequestHeader {
            call_id: pending.call_id,
            method: request.method,
            request_param: true,
            cell_block_len: request.cells.len() as u32,
            priority: request.priority,
            timeout_ms: Some(u32::try_from(request.timeout.as_millis()).unwrap_or(u32::MAX)),
            trace_info: Bytes::new(),
        };
        let outgoing = Outgoing { header, param: request.param, cells: request.cells };
        if self.requests.send(outgoing).await.is_err() {
            return Err(self.calls.lost().unwrap_or_else(|| Error::Lost("closed".into())));
        }
        pending.outcome().await
    }
}

/// Connects, and sends the preamble and the connection header.
async fn open(
    env: &Env,
    host: &str,
    port: u16,
    greeting: &[u8],
    timeout: Duration,
) -> Result<Box<dyn Stream>, String> {
    let opening = async {
        let mut stream = env.net.connect(host, port).await?;
        stream.write_all(greeting).await?;
        stream.flush().await?;
        std::io::Result::Ok(stream)
    };
    match env.timeout(timeout, opening).await {
        Some(stream) => stream.map_err(|error| error.to_string()),
        None => Err(format!("no connection within {timeout:?}")),
    }
}

/// The bytes before the first request: preamble and connection header.
fn opening(service: &str, options: &ConnectOptions) -> BytesMut {
    let header = ConnectionHeader {
        effective_user: Some(options.user.clone()),
        real_user: None,
        service_name: Some(service.to_string()),
        codec_class: Some(options.codec.class().to_string()),
        compressor_class: None,
        version: Some(options.version.clone()),
    };
    let mut out = BytesMut::new();
    preamble::put_opening(&mut out, &header.encode());
    out
}

/// The pending calls of a connection.
#[derive(Default)]
struct Calls {
    silence_max: Option<Duration>,
    state: Mutex<CallsState>,
}

#[derive(Default)]
struct CallsState {
    last_id: u32,
    waiting: HashMap<u32, oneshot::Sender<Outcome>>,
    lost: Option<Error>,
    // The time of the first call since the last received byte.
    silent_since: Option<Duration>,
}

impl Calls {
    fn lost(&self) -> Option<Error> {
        self.lock().lost.clone()
    }

    fn answer(&self, call_id: u32, outcome: Outcome) {
        let waiting = self.lock().waiting.remove(&call_id);
        if let Some(waiting) = waiting {
            // The caller may have given up in the meantime.
            let _ = waiting.send(outcome);
        }
    }

    /// Notes that bytes have arrived.
    fn received(&self) {
        self.lock().silent_since = None;
    }

    /// Accepts no more calls if nothing has arrived for too long.
    fn end_if_silent(&self, now: Duration) {
        let Some(silence_max) = self.silence_max else { return };
        let mut state = self.lock();
        if state.silent_since.is_some_and(|since| now.saturating_sub(since) >= silence_max) {
            let reason = format!("nothing was received for {silence_max:?}");
            state.lost.get_or_insert(Error::Lost(reason.into()));
        }
    }

    /// Fails all pending and future calls.
    fn lose(&self, error: Error) {
        let waiting = {
            let mut state = self.lock();
            let error = state.lost.get_or_insert(error).clone();
            let waiting = std::mem::take(&mut state.waiting);
            waiting.into_values().map(move |waiting| (waiting, error.clone()))
        };
        for (waiting, error) in waiting {
            let _ = waiting.send(Err(error));
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, CallsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A pending call; deregistered when dropped.
struct Pending {
    calls: Arc<Calls>,
    call_id: u32,
    outcome: Option<oneshot::Receiver<Outcome>>,
}

impl Pending {
    fn register(calls: &Arc<Calls>, now: Duration) -> Result<Pending, Error> {
        let (sender, receiver) = oneshot::channel();
        let mut state = calls.lock();
        if let Some(error) = &state.lost {
            return Err(error.clone());
        }
        // Never use the connection's own id, nor the id of a pending call.
        let call_id = loop {
            state.last_id = state.last_id.wrapping_add(1);
            if state.last_id != preamble::CONNECTION_CALL_ID && !state.waiting.contains_key(&state.last_id) {
                break state.last_id;
            }
        };
        state.waiting.insert(call_id, sender);
        state.silent_since.get_or_insert(now);
        drop(state);
        Ok(Pending { calls: Arc::clone(calls), call_id, outcome: Some(receiver) })
    }

    async fn outcome(mut self) -> Outcome {
        let receiver = self.outcome.take().expect("the outcome is awaited only once");
        match receiver.await {
            Ok(outcome) => outcome,
            Err(_) => Err(self.calls.lost().unwrap_or_else(|| Error::Lost("closed".into()))),
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.calls.lock().waiting.remove(&self.call_id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_call_is_removed() {
        let calls = Arc::new(Calls::default());
        let register = || Pending::register(&calls, Duration::ZERO);
        let (first, second) = (register().unwrap(), register().unwrap());
        assert_ne!(first.call_id, second.call_id);
        drop(first);
        assert_eq!(calls.lock().waiting.len(), 1);
        calls.lose(Error::Lost("gone".into()));
        assert!(calls.lock().waiting.is_empty() && register().is_err());
    }

    #[test]
    fn ids_wrap_around_past_the_connections_own() {
        let calls = Arc::new(Calls::default());
        calls.lock().last_id = u32::MAX - 1;
        assert_eq!(Pending::register(&calls, Duration::ZERO).unwrap().call_id, 0);
    }
}
