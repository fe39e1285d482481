//! Connections to the pages: how many there may be, and how long each may take.
//!
//! A browser, or a program that reads metrics, has a header timeout, which is its idle timeout too, and must take what it
//! asked for. Connections beyond the limit are closed immediately, so that pages never use the descriptors that requests
//! and files need.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use base::BoxFuture;
use base::env::{Clock, Env, Incoming, Listener, Stream, TaskClass};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tracing::{debug, warn};

use crate::guard::Guard;

/// Time for the head of a request, from the end of the one before it.
const HEADER_LIMIT: Duration = Duration::from_secs(10);
/// How long a client may take nothing of an answer.
const STALL_LIMIT: Duration = Duration::from_secs(10);
/// How long a connection lasts at most; clients open another one.
const CONNECTION_LIMIT: Duration = Duration::from_secs(300);
/// Bytes of a request's head; browsers send far less.
const HEADER_BYTES_MAX: usize = 16 << 10;
/// The pause after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves `router` on `listener`, to at most `connections_max` clients at a time.
pub(crate) async fn accept_all(
    env: Env,
    listener: Box<dyn Listener>,
    router: Router,
    guard: Guard,
    connections_max: usize,
) {
    let (open, guard) = (Arc::new(AtomicUsize::new(0)), Arc::new(guard));
    loop {
        match listener.accept().await {
            Ok(incoming) => match Place::take(&open, connections_max) {
                Some(place) => attend(&env, incoming, router.clone(), guard.clone(), place),
                None => debug!(peer = %incoming.peer, "too many connections to the pages; closed"),
            },
            Err(error) => {
                // Out of descriptors, most likely: accepting again immediately would only spin.
                warn!(%error, local = %listener.local_addr(), "cannot accept a connection; retrying in 100 ms");
                env.clock.sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn attend(env: &Env, incoming: Incoming, router: Router, guard: Arc<Guard>, place: Place) {
    let (of_task, clock) = (env.clone(), env.clock.clone());
    let task = move || -> BoxFuture<'static, ()> {
        let stream = match (incoming.open)() {
            Ok(stream) => Patient { stream, clock, alarm: None },
            Err(error) => {
                debug!(%error, "cannot open a connection to the pages");
                return Box::pin(std::future::ready(()));
            }
        };
        Box::pin(async move {
            let serving = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEADER_LIMIT)
                .max_buf_size(HEADER_BYTES_MAX)
                .serve_connection(TokioIo::new(stream), guard.before(router));
            // Errors concern this client alone.
            let _ = of_task.timeout(CONNECTION_LIMIT, serving).await;
            drop(place);
        })
    };
    env.spawner.spawn_with(TaskClass::Service, Box::new(task));
}

/// A connection's place among those that are open; left when dropped.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(open: &Arc<AtomicUsize>, max: usize) -> Option<Place> {
        let add = |count: usize| (count < max).then_some(count + 1);
        open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).ok().map(|_| Place(open.clone()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A stream whose writes fail once the client has taken nothing for [`STALL_LIMIT`].
struct Patient {
    stream: Box<dyn Stream>,
    clock: Arc<dyn Clock>,
    alarm: Option<BoxFuture<'static, ()>>,
}

impl Patient {
    fn judge<T>(&mut self, polled: Poll<io::Result<T>>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.alarm = None;
            return polled;
        }
        let alarm = self.alarm.get_or_insert_with(|| self.clock.sleep(STALL_LIMIT));
        alarm.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Patient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Patient {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.judge(polled, cx)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(cx);
        self.judge(polled, cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.judge(polled, cx)
    }
}
