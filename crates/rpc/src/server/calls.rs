//! The calls of a connection that were not ready at once.

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
use base::metrics::Took;
use base::spent::{self, Phase, Spent, nanos};
use base::turns::{self, Request};
use bytes::Bytes;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::sync::oneshot;
use tracing::error;

use super::shared::CallPlace;
use crate::call::{ConnectionInfo, Failure, Method, Reply};

thread_local! {
    // When the turn ends of the connection whose calls are being polled: a time of the monotonic clock.
    static TURN_ENDS: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

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
    pub(super) fn begin(
        &mut self,
        mut work: Work,
        env: &Env,
        connection: &Arc<ConnectionInfo>,
        cx: &mut Context<'_>,
    ) -> Begin {
        if let Poll::Ready(outcome) = work.poll(cx) {
            return Begin::Done(Done { call: work.call, outcome, was_ready: true });
        }
        let mut spent = spent::close();
        let now = env.clock.monotonic();
        spent.add(Phase::Work, now.saturating_sub(work.call.begun));
        let leaves = turns::take_request() == Some(Request::Leave);
        let mut call = Running { work: Some(work), spent, clock: Arc::clone(&env.clock) };
        if leaves {
            call.leave(env, connection);
        }
        match self.sole {
            // What has left is to be polled once more, on behalf of the thread that it went to.
            None => (self.sole, self.woken) = (Some(call), leaves),
            Some(_) => self.others.push(call),
        }
        Begin::Waits(now)
    }

    /// The next call that has ended. Calls that ask for another turn go behind all others; none is polled after the time
    /// `turn_ends` of the monotonic clock.
    pub(super) fn poll_next(
        &mut self,
        env: &Env,
        connection: &Arc<ConnectionInfo>,
        turn_ends: Duration,
        cx: &mut Context<'_>,
    ) -> Next {
        if !self.woken && self.others.is_empty() {
            return Next::Nothing;
        }
        if env.clock.monotonic() >= turn_ends {
            return if self.is_empty() { Next::Nothing } else { Next::TurnOver };
        }
        TURN_ENDS.set(turn_ends);
        turns::set_abandoned(connection.presence.has_left());
        let next = self.poll_woken(env, connection, cx);
        turns::set_abandoned(false);
        next
    }

    fn poll_woken(&mut self, env: &Env, connection: &Arc<ConnectionInfo>, cx: &mut Context<'_>) -> Next {
        if std::mem::take(&mut self.woken)
            && let Some(call) = &mut self.sole
        {
            match Pin::new(call).poll(cx) {
                Poll::Ready(Step::Done(done)) => {
                    self.sole = None;
                    return Next::Done(done);
                }
                Poll::Ready(Step::Again(mut call, request)) => {
                    if request == Some(Request::Leave) {
                        call.leave(env, connection);
                    }
                    (self.sole, self.woken) = (Some(call), true);
                    return Next::Again;
                }
                Poll::Pending => {}
            }
        }
        if self.others.is_empty() {
            return Next::Nothing;
        }
        match self.others.poll_next_unpin(cx) {
            Poll::Ready(Some(Step::Done(done))) => Next::Done(done),
            Poll::Ready(Some(Step::Again(mut call, request))) => {
                if request == Some(Request::Leave) {
                    call.leave(env, connection);
                }
                self.others.push(call);
                Next::Again
            }
            Poll::Ready(None) | Poll::Pending => Next::Nothing,
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

/// What polling the calls came to.
#[allow(clippy::large_enum_variant, reason = "handled immediately, and stored nowhere")]
pub(super) enum Next {
    /// A call is done.
    Done(Done),
    /// A call had its turn and goes on in another one.
    Again,
    /// None can go on now.
    Nothing,
    /// Some may go on, but the turn has ended.
    TurnOver,
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

/// The answer to a call, in the making.
pub(super) type Answer = BoxFuture<'static, Result<Reply, Failure>>;

/// A call and who answers it.
pub(super) struct Work {
    pub(super) call: Begun,
    pub(super) answer: Answer,
    pub(super) _place: CallPlace,
}

/// A call that was not ready at once.
struct Running {
    // Taken when it is done.
    work: Option<Work>,
    spent: Spent,
    clock: Arc<dyn Clock>,
}

/// What polling a call that runs came to.
#[allow(clippy::large_enum_variant, reason = "handled immediately, and stored nowhere")]
enum Step {
    Done(Done),
    /// It goes on in another turn; with what it asks for.
    Again(Running, Option<Request>),
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
        // Nothing is left of what another task of this thread asked for.
        turns::take_request();
        poll_caught(&mut self.answer, &self.call.method, cx)
    }
}

fn poll_caught(answer: &mut Answer, method: &Method, cx: &mut Context<'_>) -> Poll<Result<Reply, Failure>> {
    match catch_unwind(AssertUnwindSafe(|| answer.as_mut().poll(cx))) {
        Ok(polled) => polled,
        Err(panic) => Poll::Ready(Err(panicked(method, panic))),
    }
}

impl Running {
    /// What is left of it, to be polled as another future.
    fn take(&mut self) -> Running {
        Running { work: self.work.take(), spent: self.spent, clock: Arc::clone(&self.clock) }
    }

    /// Moves what is left of the call, and its account, to a thread of low priority.
    fn leave(&mut self, env: &Env, connection: &Arc<ConnectionInfo>) {
        let Some(work) = &mut self.work else { return };
        let (send, receive) = oneshot::channel();
        let here: Answer = Box::pin(async move {
            match receive.await {
                Ok((outcome, account)) => {
                    spent::absorb(&account);
                    outcome
                }
                Err(_) => Err(Failure::do_not_retry("the call was lost by an error of the server")),
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
            // An error means that the connection has closed.
            let _ = send.send((outcome, account));
        });
    }
}

impl Future for Running {
    type Output = Step;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Step> {
        let Running { work, spent, clock } = &mut *self;
        let Some(ended) = work else { return Poll::Pending };
        let begun = clock.monotonic();
        if begun >= TURN_ENDS.get() {
            return Poll::Ready(Step::Again(self.take(), None));
        }
        spent::open(spent, begun);
        let polled = ended.poll(cx);
        // What waits has not ended, whatever it said of a part.
        let ended = spent::ended().filter(|_| polled.is_ready());
        let stopped = ended.map_or_else(|| clock.monotonic(), |end| end.at);
        spent::add(Phase::Work, stopped.saturating_sub(begun));
        let request = turns::take_request();
        match polled {
            Poll::Pending => {
                *spent = spent::close();
                match request {
                    None => Poll::Pending,
                    request => Poll::Ready(Step::Again(self.take(), request)),
                }
            }
            Poll::Ready(outcome) => match work.take() {
                Some(Work { call, .. }) => Poll::Ready(Step::Done(Done { call, outcome, was_ready: false })),
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
