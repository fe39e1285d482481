//! The calls of a connection that were not ready at once.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use base::BoxFuture;
use base::env::Clock;
use base::metrics::Took;
use base::spent::{self, Phase, Spent, nanos};
use bytes::Bytes;
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

    /// Begins a call, whose account is open. What came of it if that is there at once, or when it began to wait.
    pub(super) fn begin(&mut self, mut work: Work, clock: &Arc<dyn Clock>, cx: &mut Context<'_>) -> Begin {
        if let Poll::Ready(outcome) = work.poll(cx) {
            return Begin::Done(Done { call: work.call, outcome, was_ready: true });
        }
        let mut spent = spent::close();
        let now = clock.monotonic();
        spent.add(Phase::Work, now.saturating_sub(work.call.begun));
        let call = Running { work: Some(work), spent, clock: Arc::clone(clock) };
        match self.sole {
            None => (self.sole, self.woken) = (Some(call), false),
            Some(_) => self.others.push(call),
        }
        Begin::Waits(now)
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

/// What came of beginning a call.
#[allow(clippy::large_enum_variant, reason = "looked at at once, and kept by nobody")]
pub(super) enum Begin {
    /// It is done.
    Done(Done),
    /// It waits, since this time of the monotonic clock.
    Waits(Duration),
}

/// What is known of a call before it is done.
pub(super) struct Begun {
    pub(super) call_id: u32,
    pub(super) method: Method,
    /// Its message.
    pub(super) param: Bytes,
    /// Bytes that it takes of the number for requests.
    pub(super) cost: usize,
    /// Bytes of message and cells.
    pub(super) request_len: usize,
    /// When it was read, by the monotonic clock.
    pub(super) received: Duration,
    /// When it was begun.
    pub(super) begun: Duration,
}

impl Begun {
    /// How long it took in all until `now`, and for how many nanoseconds of that it waited to be begun.
    pub(super) fn took_until(&self, now: Duration) -> (Took, u64) {
        let queued = nanos(self.begun).saturating_sub(nanos(self.received));
        (Took::between(self.received, now), queued)
    }
}

/// A call and who answers it.
pub(super) struct Work {
    pub(super) call: Begun,
    pub(super) answer: BoxFuture<'static, Result<Reply, Failure>>,
    pub(super) _place: CallPlace,
}

/// A call that was not ready at once.
struct Running {
    // Taken when it is done.
    work: Option<Work>,
    spent: Spent,
    clock: Arc<dyn Clock>,
}

/// A call that is done. Until another one is polled on this thread, its account is the thread's current one.
pub(super) struct Done {
    pub(super) call: Begun,
    pub(super) outcome: Result<Reply, Failure>,
    /// Whether it was done as soon as it was begun: all its time is work then, and not in its account.
    pub(super) was_ready: bool,
}

impl Work {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Reply, Failure>> {
        match catch_unwind(AssertUnwindSafe(|| self.answer.as_mut().poll(cx))) {
            Ok(polled) => polled,
            Err(panic) => Poll::Ready(Err(panicked(&self.call.method, panic))),
        }
    }
}

impl Future for Running {
    type Output = Done;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Done> {
        let Running { work, spent, clock } = &mut *self;
        let Some(ended) = work else { return Poll::Pending };
        let begun = clock.monotonic();
        spent::open(spent, begun);
        let polled = ended.poll(cx);
        // What waits has not ended, whatever it said of a part.
        let ended = spent::ended().filter(|_| polled.is_ready());
        let stopped = ended.map_or_else(|| clock.monotonic(), |end| end.at);
        spent::add(Phase::Work, stopped.saturating_sub(begun));
        match polled {
            Poll::Pending => {
                *spent = spent::close();
                Poll::Pending
            }
            Poll::Ready(outcome) => match work.take() {
                Some(Work { call, .. }) => Poll::Ready(Done { call, outcome, was_ready: false }),
                None => Poll::Pending,
            },
        }
    }
}

/// The answer to a call whose handler has a bug: this call fails, the server goes on.
pub(super) fn panicked(method: &Method, panic: Box<dyn Any + Send>) -> Failure {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message");
    error!(%method, panic = text, "a call panicked; it is answered as failed");
    Failure::do_not_retry(format!("{method} failed by an error of the server: {text}"))
}
