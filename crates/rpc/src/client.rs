//! A connection to one service of one server, calls multiplexed on it.
//!
//! One task writes requests and reads answers; callers wait on their own channel. A connection that is lost fails all
//! its calls and takes no more: whoever holds it makes another one. A call that times out leaves the connection be;
//! its late answer is dropped.

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

/// Requests that may wait to be written before further callers wait too.
const QUEUE_LEN: usize = 1024;

/// Why a call gave no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// There was no connection to be had: try another server, or later.
    #[error("cannot connect to {host}:{port}: {message}")]
    Connect {
        /// The server.
        host: String,
        /// Its port.
        port: u16,
        /// The system's words.
        message: String,
    },
    /// The connection was lost; the call may or may not have been carried out.
    #[error("the connection was lost: {0}")]
    Lost(Arc<str>),
    /// No answer in time; the call may or may not have been carried out.
    #[error("no answer to {method} within {timeout:?}")]
    TimedOut {
        /// The method called.
        method: String,
        /// How long it was waited for.
        timeout: Duration,
    },
    /// The server answered with an exception.
    #[error("{}", .0.stack_trace.trim_end())]
    Remote(Arc<RemoteException>),
}

/// How to connect.
#[derive(Debug, Clone)]
pub struct ConnectOptions {
    /// The user to be.
    pub user: String,
    /// The version to say; servers choose by it how to answer.
    pub version: ClientVersion,
    /// Time for the connection to be made.
    pub connect_timeout: Duration,
    /// Bytes of the longest answer taken.
    pub max_response_bytes: u32,
    /// The threads, one of which serves the connection. Quickest is the one that its callers are on.
    pub class: TaskClass,
}

impl ConnectOptions {
    /// As a client of HBase 2.5 connects.
    pub fn for_user(user: impl Into<String>) -> ConnectOptions {
        ConnectOptions {
            user: user.into(),
            version: ClientVersion { major: 2, minor: 5, text: "2.5.0".into() },
            connect_timeout: Duration::from_secs(10),
            max_response_bytes: 256 << 20,
            class: TaskClass::Service,
        }
    }
}

/// A request to be made.
#[derive(Debug, Clone)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The request message, protobuf.
    pub param: Bytes,
    /// Cells behind it.
    pub cells: CellBlock,
    /// How long to wait for the answer; the server is told, too.
    pub timeout: Duration,
    /// How urgent it is: 0 for user tables, 200 for `hbase:meta`.
    pub priority: u32,
}

/// Message and cell block of a good answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The response message, protobuf.
    pub message: Bytes,
    /// Cells behind it.
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
    /// Connects to `service` at a server.
    ///
    /// # Errors
    /// [`Error::Connect`]. A server that does not know the service closes the connection: the first call then fails.
    pub async fn connect(
        env: &Env,
        host: &str,
        port: u16,
        service: &str,
        options: &ConnectOptions,
    ) -> Result<Connection, Error> {
        let (requests, queue) = mpsc::channel(QUEUE_LEN);
        let calls = Arc::new(Calls::default());
        let (mut opened, outcome) = oneshot::channel();
        let connection = Connection { env: env.clone(), requests, calls: Arc::clone(&calls) };
        let refused = |message| Error::Connect { host: host.to_string(), port, message };
        let (env, to, greeting) = (env.clone(), host.to_string(), opening(service, options));
        let ConnectOptions { connect_timeout, max_response_bytes, class, .. } = *options;
        // The socket registers with the thread that makes it, which is to be the one that reads it.
        env.clone().spawn(class, async move {
            let opening = open(&env, &to, port, &greeting, connect_timeout);
            let stream = tokio::select! {
                stream = opening => stream,
                () = opened.closed() => return,
            };
            match stream {
                // Who waited for it may be gone.
                Ok(stream) => {
                    if opened.send(Ok(())).is_ok() {
                        Session::new(stream, queue, calls, max_response_bytes).run().await;
                    }
                }
                Err(message) => _ = opened.send(Err(message)),
            }
        });
        let opened = outcome.await.unwrap_or_else(|_| Err("its thread ended".into()));
        opened.map(|()| connection).map_err(refused)
    }

    /// Whether the connection was lost.
    pub fn is_lost(&self) -> bool {
        self.calls.lost().is_some()
    }

    /// Calls a method and waits for its answer.
    ///
    /// # Errors
    /// All but [`Error::Connect`].
    pub async fn call(&self, request: Request) -> Outcome {
        let timeout = request.timeout;
        let method = request.method.clone();
        match self.env.timeout(timeout, self.send(request)).await {
            Some(outcome) => outcome,
            None => Err(Error::TimedOut { method: method.to_string(), timeout }),
        }
    }

    async fn send(&self, request: Request) -> Outcome {
        let pending = Pending::register(&self.calls)?;
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

/// Connects, and sends what comes before the first request.
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

/// What is sent before the first request.
fn opening(service: &str, options: &ConnectOptions) -> BytesMut {
    let header = ConnectionHeader {
        effective_user: Some(options.user.clone()),
        real_user: None,
        service_name: Some(service.to_string()),
        codec_class: Some(Codec::KeyValue.class().to_string()),
        compressor_class: None,
        version: Some(options.version.clone()),
    };
    let mut out = BytesMut::new();
    preamble::put_opening(&mut out, &header.encode());
    out
}

/// The calls of a connection that wait for answers.
#[derive(Default)]
struct Calls {
    state: Mutex<CallsState>,
}

#[derive(Default)]
struct CallsState {
    last_id: u32,
    waiting: HashMap<u32, oneshot::Sender<Outcome>>,
    lost: Option<Error>,
}

impl Calls {
    fn lost(&self) -> Option<Error> {
        self.lock().lost.clone()
    }

    fn answer(&self, call_id: u32, outcome: Outcome) {
        let waiting = self.lock().waiting.remove(&call_id);
        if let Some(waiting) = waiting {
            // The caller may have given up this moment.
            let _ = waiting.send(outcome);
        }
    }

    /// Fails all calls, now and from now on.
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

/// A call that waits; forgotten when dropped.
struct Pending {
    calls: Arc<Calls>,
    call_id: u32,
    outcome: Option<oneshot::Receiver<Outcome>>,
}

impl Pending {
    fn register(calls: &Arc<Calls>) -> Result<Pending, Error> {
        let (sender, receiver) = oneshot::channel();
        let mut state = calls.lock();
        if let Some(error) = &state.lost {
            return Err(error.clone());
        }
        // The id of the connection itself is never a call's, nor is one still waited for.
        let call_id = loop {
            state.last_id = state.last_id.wrapping_add(1);
            if state.last_id != preamble::CONNECTION_CALL_ID && !state.waiting.contains_key(&state.last_id) {
                break state.last_id;
            }
        };
        state.waiting.insert(call_id, sender);
        drop(state);
        Ok(Pending { calls: Arc::clone(calls), call_id, outcome: Some(receiver) })
    }

    async fn outcome(mut self) -> Outcome {
        let receiver = self.outcome.take().expect("waited for once");
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
    fn a_call_that_is_given_up_is_forgotten() {
        let calls = Arc::new(Calls::default());
        let (first, second) = (Pending::register(&calls).unwrap(), Pending::register(&calls).unwrap());
        assert_ne!(first.call_id, second.call_id);
        drop(first);
        assert_eq!(calls.lock().waiting.len(), 1);
        calls.lose(Error::Lost("gone".into()));
        assert!(calls.lock().waiting.is_empty() && Pending::register(&calls).is_err());
    }

    #[test]
    fn ids_go_round_past_the_connections_own() {
        let calls = Arc::new(Calls::default());
        calls.lock().last_id = u32::MAX - 1;
        assert_eq!(Pending::register(&calls).unwrap().call_id, 0);
    }
}
