//! HTTP connections: their maximum number, and their time limits.
//!
//! A connection has a limit for reading a request header, which is also its idle timeout, a limit
//! for stalled writes, and a maximum duration. Connections beyond the maximum number are closed
//! immediately, so that pages never use the file descriptors that requests and files need.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
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
    /// Maximum number of connections; more are closed immediately.
    pub connections_max: usize,
    /// Time limit for the header of a request, counted from the end of the previous request.
    pub header_time: Duration,
    /// Time limit for a client that reads nothing of a response.
    pub stall_time: Duration,
    /// Maximum duration of a connection.
    pub connection_time: Duration,
    /// Maximum size of a request header in bytes; at least 8 KiB.
    pub header_bytes_max: usize,
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
            class: TaskClass::Service,
        }
    }
}

/// Serves HTTP on `listener` until the task is dropped. `service_of` creates the service of a
/// client's connection.
pub async fn accept_all<S, B>(
    env: Env,
    listener: Box<dyn Listener>,
    service_of: impl Fn(SocketAddr) -> S + Send,
    limits: ConnectionLimits,
) where
    S: HttpService<Request<Body>, Response = Response<B>, Error = Infallible> + Send + 'static,
    S::Future: Send + 'static,
    B: HttpBody + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let open = Arc::new(AtomicUsize::new(0));
    loop {
        match listener.accept().await {
            Ok(incoming) => match ConnectionPermit::acquire(&open, limits.connections_max) {
                Some(permit) => {
                    let service = service_of(incoming.peer);
                    serve_connection(&env, incoming, service, &limits, permit);
                }
                None => debug!(peer = %incoming.peer, "too many HTTP connections; closing"),
            },
            Err(error) => {
                // Most likely out of file descriptors. An immediate retry would only spin.
                warn!(%error, local = %listener.local_addr(), "cannot accept a connection; retrying in 100 ms");
                env.clock.sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn serve_connection<S, B>(
    env: &Env,
    incoming: Incoming,
    service: S,
    limits: &ConnectionLimits,
    permit: ConnectionPermit,
) where
    S: HttpService<Request<Body>, Response = Response<B>, Error = Infallible> + Send + 'static,
    S::Future: Send + 'static,
    B: HttpBody + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (task_env, clock, limits) = (env.clone(), env.clock.clone(), limits.clone());
    let class = limits.class;
    let task = move || -> BoxFuture<'static, ()> {
        let stream = match (incoming.open)() {
            Ok(stream) => StallTimeoutStream { stream, clock, stall_time: limits.stall_time, alarm: None },
            Err(error) => {
                debug!(%error, "cannot open an HTTP connection");
                return Box::pin(std::future::ready(()));
            }
        };
        Box::pin(async move {
            let serving = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(limits.header_time)
                .max_buf_size(limits.header_bytes_max)
                .serve_connection(TokioIo::new(stream), service);
            // Errors concern only this client.
            let _ = task_env.timeout(limits.connection_time, serving).await;
            drop(permit);
        })
    };
    env.spawner.spawn_with(class, Box::new(task));
}

/// One of the permitted connections; released when dropped.
struct ConnectionPermit(Arc<AtomicUsize>);

impl ConnectionPermit {
    fn acquire(open: &Arc<AtomicUsize>, max: usize) -> Option<ConnectionPermit> {
        let add = |count: usize| (count < max).then_some(count + 1);
        open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add)
            .ok()
            .map(|_| ConnectionPermit(open.clone()))
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A stream whose writes fail once the client has taken nothing for `stall_time`.
struct StallTimeoutStream {
    stream: Box<dyn Stream>,
    clock: Arc<dyn Clock>,
    stall_time: Duration,
    alarm: Option<BoxFuture<'static, ()>>,
}

impl StallTimeoutStream {
    fn check_stall<T>(&mut self, polled: Poll<io::Result<T>>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.alarm = None;
            return polled;
        }
        let alarm = self.alarm.get_or_insert_with(|| self.clock.sleep(self.stall_time));
        alarm.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for StallTimeoutStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for StallTimeoutStream {
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
