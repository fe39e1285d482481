//! The calls of a connection that were not ready at once.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use base::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tracing::error;

use super::shared::CallPlace;
use crate::call::{Failure, Method, Reply};

/// Calls that run. Most connections have one at a time, which needs no list: it wakes the connection itself, and is polled
/// once each time that happens. Of several, only those that were woken are polled.
#[derive(Default)]
pub(super) struct Calls {
    sole: Option<Running>,
    // Whether the connection was woken since the sole call was polled.
    woken: bool,
    others: FuturesUnordered<Running>,
}

impl Calls {
    /// The connection was woken, perhaps for a call.
    pub(super) fn wake(&mut self) {
        self.woken = true;
    }

    /// Begins a call; what came of it if that is there at once.
    pub(super) fn begin(&mut self, mut call: Running, cx: &mut Context<'_>) -> Option<Done> {
        match Pin::new(&mut call).poll(cx) {
            Poll::Ready(done) => return Some(done),
            Poll::Pending if self.sole.is_none() => (self.sole, self.woken) = (Some(call), false),
            Poll::Pending => self.others.push(call),
        }
        None
    }

    /// A call that has ended; `None` if none runs.
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Done>> {
        if std::mem::take(&mut self.woken)
            && let Some(call) = &mut self.sole
            && let Poll::Ready(done) = Pin::new(call).poll(cx)
        {
            self.sole = None;
            return Poll::Ready(Some(done));
        }
        match self.others.is_empty() {
            false => self.others.poll_next_unpin(cx),
            true if self.sole.is_none() => Poll::Ready(None),
            true => Poll::Pending,
        }
    }

    /// How many run.
    pub(super) fn len(&self) -> usize {
        usize::from(self.sole.is_some()) + self.others.len()
    }

    /// Whether none runs.
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// When a call came and was begun, by the monotonic clock, and the bytes that it came in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Begun {
    pub(super) received: Duration,
    pub(super) begun: Duration,
    pub(super) request_len: usize,
}

/// A call at work.
pub(super) struct Running {
    pub(super) call_id: u32,
    pub(super) method: Method,
    pub(super) cost: usize,
    pub(super) begun: Begun,
    pub(super) answer: BoxFuture<'static, Result<Reply, Failure>>,
    pub(super) _place: CallPlace,
}

/// A call that is done.
pub(super) struct Done {
    pub(super) call_id: u32,
    pub(super) cost: usize,
    pub(super) begun: Begun,
    pub(super) outcome: Result<Reply, Failure>,
}

impl Future for Running {
    type Output = Done;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Done> {
        let outcome = match catch_unwind(AssertUnwindSafe(|| self.answer.as_mut().poll(cx))) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(outcome)) => outcome,
            Err(panic) => Err(panicked(&self.method, panic)),
        };
        Poll::Ready(Done { call_id: self.call_id, cost: self.cost, begun: self.begun, outcome })
    }
}

/// The answer to a call whose handler has a bug: this call fails, the server goes on.
pub(super) fn panicked(method: &Method, panic: Box<dyn Any + Send>) -> Failure {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message");
    error!(%method, panic = text, "a call panicked; it is answered as failed");
    Failure::do_not_retry(format!("{method} failed by an error of the server: {text}"))
}
