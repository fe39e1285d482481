//! Connections, with and without HTTP: their maximum number, and their time limits.
//!
//! A connection has a limit for reading a request header, which is also its idle timeout, a limit
//! for stalled writes, and a maximum duration. Their number is limited, so that pages never use the
//! file descriptors that requests and files need: at the maximum, a new connection replaces the one
//! that has waited longest for its client.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use base::BoxFuture;
use base::env::{Clock, Env, Incoming, Listener, Stream, TaskClass};
use hyper::body::{Body as HttpBody, Incoming as Body};
use hyper::server::conn::http1;
use hyper::service::Service as HttpService;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tracing::{debug, warn};

use crate::open_connections::{ConnectionActivity, OpenConnection, OpenConnections};

/// Time limit for the header of a request, counted from the end of the previous request.
const HEADER_LIMIT: Duration = Duration::from_secs(10);
/// Time limit for a client that reads nothing of a response.
const STALL_LIMIT: Duration = Duration::from_secs(10);
/// Maximum duration of a connection. Clients then open another one.
const CONNECTION_LIMIT: Duration = Duration::from_secs(300);
/// Maximum size of a request header in bytes; browsers send far less.
const HEADER_BYTES_MAX: usize = 16 << 10;
/// The pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Limits of the connections to one port.
#[derive(Clone, Debug)]
pub struct ConnectionLimits {
    /// Maximum number of connections. Another one replaces the one that has waited longest for its
    /// client; it is closed immediately if all execute requests.
    pub connections_max: usize,
    /// Time limit for the header of a request, counted from the end of the previous request.
    pub header_time: Duration,
    /// Time limit for a client that reads nothing of a response.
    pub stall_time: Duration,
    /// Maximum duration of a connection.
    pub connection_time: Duration,
    /// Maximum size of a request header in bytes; at least 8 KiB.
    pub header_bytes_max: usize,
    /// Names of headers in responses are sent like `Content-Type`, not like `content-type`: clients
    /// that compare them exactly expect the form of the server that is replaced.
    pub title_case_headers: bool,
    /// The threads of the connections.
    pub class: TaskClass,
}

impl ConnectionLimits {
    /// The limits of status pages.
    pub(crate) fn of_pages(connections_max: usize) -> ConnectionLimits {
        ConnectionLimits {
            connections_max,
            header_time: HEADER_LIMIT,
            stall_time: STALL_LIMIT,
            connection_time: CONNECTION_LIMIT,
            header_bytes_max: HEADER_BYTES_MAX,
            title_case_headers: false,
            class: TaskClass::Service,
        }
    }
}

/// A client that has connected.
pub struct ConnectedClient {
    /// The client's address.
    pub address: SocketAddr,
    /// Whether the server executes requests of the connection: the code that executes them records
    /// that here.
    pub activity: Arc<ConnectionActivity>,
}

/// Serves HTTP on `listener` until the task is dropped. `service_of` creates the service of a
/// client's connection.
pub async fn accept_all<S, B>(
    env: Env,
    listener: Box<dyn Listener>,
    service_of: impl Fn(ConnectedClient) -> S + Send,
    limits: ConnectionLimits,
) where
    S: HttpService<Request<Body>, Response = Response<B>, Error = Infallible> + Send + 'static,
    S::Future: Send + 'static,
    B: HttpBody + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let http_limits = limits.clone();
    let handler_of = move |client: ConnectedClient| {
        let (service, limits) = (service_of(client), http_limits.clone());
        move |stream: Box<dyn Stream>| -> BoxFuture<'static, ()> {
            Box::pin(async move { serve_http(stream, service, &limits).await })
        }
    };
    accept_streams(env, listener, handler_of, limits).await;
}

/// Accepts connections on `listener` until the task is dropped. `handler_of` creates the handler of
/// a client's connection. Of the limits, those for HTTP headers are not used.
pub async fn accept_streams<H>(
    env: Env,
    listener: Box<dyn Listener>,
    handler_of: impl Fn(ConnectedClient) -> H + Send,
    limits: ConnectionLimits,
) where
    H: FnOnce(Box<dyn Stream>) -> BoxFuture<'static, ()> + Send + 'static,
{
    let connections = OpenConnections::new(env.clock.clone(), limits.connections_max);
    loop {
        match listener.accept().await {
            Ok(incoming) => match connections.add() {
                Some(connection) => {
                    let activity = connection.activity.clone();
                    let handler = handler_of(ConnectedClient { address: incoming.peer, activity });
                    start_connection(&env, incoming, handler, &limits, connection);
                }
                None => debug!(peer = %incoming.peer, "too many connections; closing"),
            },
            Err(error) => {
                // Most likely out of file descriptors. An immediate retry would only spin.
                warn!(%error, local = %listener.local_addr(), "cannot accept a connection; retrying in 100 ms");
                env.clock.sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn start_connection<H>(
    env: &Env,
    incoming: Incoming,
    handler: H,
    limits: &ConnectionLimits,
    connection: OpenConnection,
) where
    H: FnOnce(Box<dyn Stream>) -> BoxFuture<'static, ()> + Send + 'static,
{
    let (task_env, clock, limits) = (env.clone(), env.clock.clone(), limits.clone());
    let class = limits.class;
    let task = move || -> BoxFuture<'static, ()> {
        let stream = match (incoming.open)() {
            Ok(stream) => GuardedStream {
                stream,
                clock,
                stall_time: limits.stall_time,
                alarm: None,
                activity: connection.activity.clone(),
            },
            Err(error) => {
                debug!(%error, "cannot open a connection");
                return Box::pin(std::future::ready(()));
            }
        };
        Box::pin(async move {
            let activity = connection.activity.clone();
            tokio::select! {
                _ = task_env.timeout(limits.connection_time, handler(Box::new(stream))) => {}
                () = activity.closed() => debug!("closing a connection to make room for another one"),
            }
            drop(connection);
        })
    };
    env.spawner.spawn_with(class, Box::new(task));
}

/// Serves HTTP on one connection until it ends.
pub async fn serve_http<S, B>(stream: Box<dyn Stream>, service: S, limits: &ConnectionLimits)
where
    S: HttpService<Request<Body>, Response = Response<B>, Error = Infallible> + Send + 'static,
    S::Future: Send + 'static,
    B: HttpBody + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_time)
        .max_buf_size(limits.header_bytes_max)
        .title_case_headers(limits.title_case_headers)
        .serve_connection(TokioIo::new(stream), service);
    // Errors concern only this client.
    let _ = serving.await;
}

/// A stream that records its transfers, and whose writes fail once the client has taken nothing for
/// `stall_time`.
struct GuardedStream {
    stream: Box<dyn Stream>,
    clock: Arc<dyn Clock>,
    stall_time: Duration,
    alarm: Option<BoxFuture<'static, ()>>,
    activity: Arc<ConnectionActivity>,
}

impl GuardedStream {
    fn check_stall<T>(&mut self, polled: Poll<io::Result<T>>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.alarm = None;
            self.activity.record_transfer();
            return polled;
        }
        let alarm = self.alarm.get_or_insert_with(|| self.clock.sleep(self.stall_time));
        alarm.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for GuardedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if polled.is_ready() {
            self.activity.record_transfer();
        }
        polled
    }
}

impl AsyncWrite for GuardedStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.check_stall(polled, cx)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(cx);
        self.check_stall(polled, cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.check_stall(polled, cx)
    }
}
