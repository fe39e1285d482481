//! The calls of a connection that were not ready immediately.

use std::any::Any;
use std::cell::Cell;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use base::BoxFuture;
use base::env::{Clock, Env, TaskClass};
use base::metrics::RecordedDuration;
use base::spent::{self, Phase, Spent, nanos};
use base::turns::{self, Request};
use bytes::Bytes;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::sync::oneshot;
use tracing::error;

use super::shared::CallSlot;
use crate::call::{ConnectionInfo, Method, Reply};
use proto::exception::JavaException;

thread_local! {
    // The end of the time slice of the connection whose calls are being polled, on the monotonic
    // clock.
    static SLICE_END: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// The running calls of a connection, usually one at most. A sole call needs no list: it wakes the
/// connection's task, and is polled at each wake-up. Of several calls, only the woken ones are
/// polled.
#[derive(Default)]
pub(super) struct Calls {
    sole: Option<RunningCall>,
    // Whether the connection was woken since the last poll of the sole call.
    woken: bool,
    others: FuturesUnordered<RunningCall>,
}

impl Calls {
    /// Records that the connection was woken, possibly for a call.
    pub(super) fn wake(&mut self) {
        self.woken = true;
    }

    /// Polls a new call for the first time. Returns its outcome if it is ready, otherwise the time
    /// at which it started to wait. The call's account ([`base::spent`]) must be open.
    pub(super) fn begin(
        &mut self,
        mut work: CallWork,
        env: &Env,
        connection: &Arc<ConnectionInfo>,
        cx: &mut Context<'_>,
    ) -> BeginOutcome {
        if let Poll::Ready(outcome) = work.poll(cx) {
            return BeginOutcome::Done(FinishedCall { call: work.call, outcome, was_ready: true });
        }
        let mut spent = spent::close();
        let now = env.clock.monotonic();
        spent.add(Phase::Work, now.saturating_sub(work.call.begun));
        let leaves = turns::take_request() == Some(Request::Leave);
        let mut call = RunningCall { work: Some(work), spent, clock: Arc::clone(&env.clock) };
        if leaves {
            call.move_to_background(env, connection);
        }
        match self.sole {
            // A call that moved to another thread must be polled once more, to register for that
            // thread's result.
            None => (self.sole, self.woken) = (Some(call), leaves),
            Some(_) => self.others.push(call),
        }
        BeginOutcome::Waits(now)
    }

    /// Polls the woken calls until one ends or yields. A call that yields is polled again after all
    /// others. No call is polled after `slice_end`, a time on the monotonic clock.
    pub(super) fn poll_next(
        &mut self,
        env: &Env,
        connection: &Arc<ConnectionInfo>,
        slice_end: Duration,
        cx: &mut Context<'_>,
    ) -> PollOutcome {
        if !self.woken && self.others.is_empty() {
            return PollOutcome::Idle;
        }
        if env.clock.monotonic() >= slice_end {
            return if self.is_empty() { PollOutcome::Idle } else { PollOutcome::SliceOver };
        }
        SLICE_END.set(slice_end);
        turns::set_abandoned(connection.presence.has_left());
        let next = self.poll_woken(env, connection, cx);
        turns::set_abandoned(false);
        next
    }

    fn poll_woken(
        &mut self,
        env: &Env,
        connection: &Arc<ConnectionInfo>,
        cx: &mut Context<'_>,
    ) -> PollOutcome {
        if std::mem::take(&mut self.woken)
            && let Some(call) = &mut self.sole
        {
            match Pin::new(call).poll(cx) {
                Poll::Ready(RunOutcome::Done(done)) => {
                    self.sole = None;
                    return PollOutcome::Done(done);
                }
                Poll::Ready(RunOutcome::Again(mut call, request)) => {
                    if request == Some(Request::Leave) {
                        call.move_to_background(env, connection);
                    }
                    (self.sole, self.woken) = (Some(call), true);
                    return PollOutcome::Continues;
                }
                Poll::Pending => {}
            }
        }
        if self.others.is_empty() {
            return PollOutcome::Idle;
        }
        match self.others.poll_next_unpin(cx) {
            Poll::Ready(Some(RunOutcome::Done(done))) => PollOutcome::Done(done),
            Poll::Ready(Some(RunOutcome::Again(mut call, request))) => {
                if request == Some(Request::Leave) {
                    call.move_to_background(env, connection);
                }
                self.others.push(call);
                PollOutcome::Continues
            }
            Poll::Ready(None) | Poll::Pending => PollOutcome::Idle,
        }
    }

    /// Number of running calls.
    pub(super) fn len(&self) -> usize {
        usize::from(self.sole.is_some()) + self.others.len()
    }

    /// Whether no call is running.
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The result of polling the calls.
#[allow(clippy::large_enum_variant, reason = "handled immediately, and stored nowhere")]
pub(super) enum PollOutcome {
    /// A call is done.
    Done(FinishedCall),
    /// A call ran and will continue later.
    Continues,
    /// No call can continue now.
    Idle,
    /// The time slice has ended, and some calls may still be able to continue.
    SliceOver,
}

/// The result of starting a call.
#[allow(clippy::large_enum_variant, reason = "handled immediately, and stored nowhere")]
pub(super) enum BeginOutcome {
    /// It is done.
    Done(FinishedCall),
    /// It waits, since this time on the monotonic clock.
    Waits(Duration),
}

/// The properties of a call that has started.
pub(super) struct BegunCall {
    pub(super) call_id: u32,
    pub(super) method: Method,
    /// The request message.
    pub(super) param: Bytes,
    /// Bytes reserved from the request budget.
    pub(super) cost: usize,
    /// Size in bytes of the request's message and cells.
    pub(super) request_len: usize,
    /// When it was read, on the monotonic clock.
    pub(super) received: Duration,
    /// When it was started.
    pub(super) begun: Duration,
}

impl BegunCall {
    /// The call's total time until `now`, and its queue time in nanoseconds.
    pub(super) fn took_until(&self, now: Duration) -> (RecordedDuration, u64) {
        let queued = nanos(self.begun).saturating_sub(nanos(self.received));
        (RecordedDuration::between(self.received, now), queued)
    }
}

/// The future of a call's response.
pub(super) type Answer = BoxFuture<'static, Result<Reply, JavaException>>;

/// A call and the future of its response.
pub(super) struct CallWork {
    pub(super) call: BegunCall,
    pub(super) answer: Answer,
    pub(super) _slot: CallSlot,
}

/// A call that was not ready immediately.
struct RunningCall {
    // Taken when the call is done.
    work: Option<CallWork>,
    spent: Spent,
    clock: Arc<dyn Clock>,
}

/// The result of polling a running call.
#[allow(clippy::large_enum_variant, reason = "handled immediately, and stored nowhere")]
enum RunOutcome {
    Done(FinishedCall),
    /// The call continues later, as its scheduling request requires.
    Again(RunningCall, Option<Request>),
}

/// A call that is done. Its account stays the thread's current one until the next call is polled on
/// this thread.
pub(super) struct FinishedCall {
    pub(super) call: BegunCall,
    pub(super) outcome: Result<Reply, JavaException>,
    /// Whether it was done at its first poll. Then all its time is work, which is not in its
    /// account yet.
    pub(super) was_ready: bool,
}

impl CallWork {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Reply, JavaException>> {
        // Discard the scheduling request of another task of this thread, if any.
        turns::take_request();
        poll_caught(&mut self.answer, &self.call.method, cx)
    }
}

fn poll_caught(
    answer: &mut Answer,
    method: &Method,
    cx: &mut Context<'_>,
) -> Poll<Result<Reply, JavaException>> {
    match catch_unwind(AssertUnwindSafe(|| answer.as_mut().poll(cx))) {
        Ok(polled) => polled,
        Err(panic) => Poll::Ready(Err(panicked(method, panic))),
    }
}

impl RunningCall {
    /// Moves the call out of this future into a new one.
    fn take(&mut self) -> RunningCall {
        RunningCall { work: self.work.take(), spent: self.spent, clock: Arc::clone(&self.clock) }
    }

    /// Continues the call on a thread of low priority.
    fn move_to_background(&mut self, env: &Env, connection: &Arc<ConnectionInfo>) {
        let Some(work) = &mut self.work else { return };
        let (send, receive) = oneshot::channel();
        let here: Answer = Box::pin(async move {
            match receive.await {
                Ok((outcome, account)) => {
                    spent::absorb(&account);
                    outcome
                }
                Err(_) => Err(JavaException::do_not_retry("internal server error: the call was lost")),
            }
        });
        let mut there = std::mem::replace(&mut work.answer, here);
        let mut account = std::mem::take(&mut self.spent);
        let (method, connection) = (work.call.method.clone(), connection.clone());
        let clock = Arc::clone(&self.clock);
        env.spawn(TaskClass::Scan, async move {
            let polling = poll_fn(|cx| {
                let begun = clock.monotonic();
                spent::open(&account, begun);
                turns::set_abandoned(connection.presence.has_left());
                let polled = poll_caught(&mut there, &method, cx);
                turns::set_abandoned(false);
                spent::add(Phase::Work, clock.monotonic().saturating_sub(begun));
                account = spent::close();
                polled
            });
            let outcome = polling.await;
            // An error means that the connection was closed.
            let _ = send.send((outcome, account));
        });
    }
}

impl Future for RunningCall {
    type Output = RunOutcome;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<RunOutcome> {
        let RunningCall { work, spent, clock } = &mut *self;
        let Some(ended) = work else { return Poll::Pending };
        let begun = clock.monotonic();
        if begun >= SLICE_END.get() {
            return Poll::Ready(RunOutcome::Again(self.take(), None));
        }
        spent::open(spent, begun);
        let polled = ended.poll(cx);
        // A pending call has not ended, even if it reported the end of a part.
        let ended = spent::reported_end().filter(|_| polled.is_ready());
        let stopped = ended.map_or_else(|| clock.monotonic(), |end| end.at);
        spent::add(Phase::Work, stopped.saturating_sub(begun));
        let request = turns::take_request();
        match polled {
            Poll::Pending => {
                *spent = spent::close();
                match request {
                    None => Poll::Pending,
                    request => Poll::Ready(RunOutcome::Again(self.take(), request)),
                }
            }
            Poll::Ready(outcome) => match work.take() {
                Some(CallWork { call, .. }) => {
                    Poll::Ready(RunOutcome::Done(FinishedCall { call, outcome, was_ready: false }))
                }
                None => Poll::Pending,
            },
        }
    }
}

/// The response to a call whose handler panicked: only this call fails.
pub(super) fn panicked(method: &Method, panic: Box<dyn Any + Send>) -> JavaException {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message");
    error!(%method, panic = text, "call panicked; returning an error to the client");
    JavaException::do_not_retry(format!("{method} failed with an internal server error: {text}"))
}
