//! One connection: reads requests, runs their calls and writes their responses, all on one thread.
//!
//! Each turn reads once, starts all complete requests, polls the woken calls, and writes all
//! available responses together. A call that is ready at its first poll never becomes a task.
//! Invariants:
//!
//! * no request is started while the unsent responses exceed the soft limit, and no call is polled
//!   while they exceed the hard limit;
//! * the bytes of a response are counted in the server's response budget until they are written to
//!   the socket;
//! * a call that has started is polled until it ends, even if its client disconnects, so a write is
//!   never left half done. After a disconnect, a read ends at its next pause;
//! * the thread yields after [`TIME_SLICE`] of computing and after [`TURNS_PER_POLL`] turns, even
//!   if there is more to do. The runtime then polls the sockets of other connections before this
//!   one continues.

use std::borrow::Cow;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use base::env::{Env, Stream};
use base::metrics::COUNTING;
use base::turns::TIME_SLICE;
use base::{BoxFuture, spent};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::watch;
use tracing::{debug, error};

use super::calls::{
    Answer, BeginOutcome, BegunCall, CallWork, Calls, FinishedCall, PollOutcome as NextCall, panicked,
};
use super::compressed::{Compressed, Expanding};
use super::inbox::{Inbox, InboxEvent};
use super::instruments::{CallCounts, CallSpan};
use super::observer::{EndedCall, UnsentLargeResponses, Watch, WatchBounds};
use super::outbox::Outbox;
use super::pace::Pace;
use super::{Server, ServerOptions, Shared, overloaded};
use crate::call::{Call, ConnectionInfo, Service};
use crate::frame::{BadRequest, Request, RequestHeader};
use base::budget::BudgetShare;
use proto::exception::{JavaException, class};

/// Divisor of the stall limit under memory pressure.
const PRESSURE_DIVISOR: u32 = 12;
/// Maximum number of turns before other connections of the thread run.
const TURNS_PER_POLL: usize = 8;
/// The shortest timeout that a client can set (HBase: `MIN_CALL_TIMEOUT`).
const MIN_TIMEOUT: Duration = Duration::from_millis(20);
/// Maximum number of bytes to drain from a client before its connection is closed.
const LINGER_BYTES_MAX: u64 = 16 << 20;
/// Maximum time to drain them.
const LINGER_LIMIT: Duration = Duration::from_millis(200);
/// The same for a client that was rejected while it was sending.
const LINGER_LIMIT_REFUSED: Duration = Duration::from_secs(2);

/// Serves `stream` until it closes or the server stops.
pub(super) async fn serve(
    server: &Arc<Server>,
    stream: Box<dyn Stream>,
    service: Arc<dyn Service>,
    info: Arc<ConnectionInfo>,
    mut stop: watch::Receiver<bool>,
) {
    let stopped = Box::pin(async move {
        // An error means that the server was dropped, which also stops the connection.
        let _ = stop.wait_for(|stop| *stop).await;
    });
    let service = service.of_connection(&info).unwrap_or(service);
    let mut connection = Connection {
        env: &server.env,
        options: &server.options,
        stream,
        service,
        inbox: Inbox::new(server.options.max_request_bytes, server.shared.request_budget()),
        outbox: Outbox::default(),
        unsent_large_responses: UnsentLargeResponses::default(),
        bounds: server.options.watch.as_ref().map_or(WatchBounds::NONE, Watch::bounds),
        unsent_share: BudgetShare::of(server.shared.response_budget()),
        shared: &server.shared,
        instruments: &server.instruments,
        running: Calls::default(),
        expanding: info.compressor.map_or_else(Expanding::default, |_| Expanding::possible()),
        slice_began: None,
        phase: Phase::Open,
        read_at: Duration::ZERO,
        now: Duration::ZERO,
        ended: None,
        moved_at: server.env.clock.monotonic(),
        sending: PacePair::default(),
        receiving: PacePair::default(),
        alarm: None,
        linger: LINGER_LIMIT,
        stopped,
        info,
    };
    let end = poll_fn(|cx| connection.poll(cx)).await;
    debug!(peer = %connection.info.peer, service = connection.info.service, ?end, "connection closed");
    connection.close(end).await;
}

/// The state of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Requests are read.
    Open,
    /// No more requests are read. Running calls continue until they end, and their responses are
    /// sent.
    Closing,
}

/// Why a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CloseReason {
    /// All responses were sent.
    Finished,
    /// The socket failed.
    Lost,
    /// The client stopped in the middle of a frame, or did not read its responses, for too long.
    Stalled,
}

struct Connection<'a> {
    env: &'a Env,
    options: &'a ServerOptions,
    shared: &'a Arc<Shared>,
    instruments: &'a CallCounts,
    stream: Box<dyn Stream>,
    service: Arc<dyn Service>,
    info: Arc<ConnectionInfo>,
    inbox: Inbox,
    outbox: Outbox,
    // Calls with large responses that have not been sent completely.
    unsent_large_responses: UnsentLargeResponses,
    // Thresholds above which calls are reported.
    bounds: WatchBounds,
    // The size of `outbox`, reserved from the server's response budget.
    unsent_share: BudgetShare,
    running: Calls,
    // Whether a cell block is being decompressed on another thread.
    expanding: Expanding,
    // When the first work of this poll started.
    slice_began: Option<Duration>,
    phase: Phase,
    // When the bytes in `inbox` were read.
    read_at: Duration,
    // The last reading of the clock.
    now: Duration,
    // When the last call of this turn ended, if calls are measured.
    ended: Option<Duration>,
    // When the socket last sent or received anything.
    moved_at: Duration,
    // The pace at which the client reads its responses.
    sending: PacePair,
    // The pace at which the client sends the rest of a partial frame.
    receiving: PacePair,
    // Wakes this task at the next check of the client's pace. `None` if no check is needed.
    alarm: Option<BoxFuture<'static, ()>>,
    // How long to wait for the client when closing.
    linger: Duration,
    stopped: BoxFuture<'static, ()>,
}

/// The result of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TurnOutcome {
    /// There may be more to do.
    Progress,
    /// There is more to do, after other connections have run.
    SliceOver,
    /// Everything waits.
    Idle,
}

/// Polls this task again after the runtime has polled all sockets. If the task only woke itself, it
/// could run dozens of times before that, and requests on other connections would wait.
fn yield_to_io<T>(cx: &mut Context<'_>) -> Poll<T> {
    let _ = pin!(tokio::task::yield_now()).poll(cx);
    Poll::Pending
}

/// The pace of one direction, measured over the full time limit and over the short one that applies
/// under memory pressure.
#[derive(Default)]
struct PacePair {
    long: Pace,
    short: Pace,
}

impl PacePair {
    /// See [`Pace::check`].
    fn check(
        &mut self,
        now: Duration,
        limit: Duration,
        under_pressure: bool,
        (moved, left): (u64, u64),
    ) -> Option<Duration> {
        let long = self.long.check(now, limit, moved, left)?;
        let short_limit = limit / PRESSURE_DIVISOR;
        let short = match self.short.check(now, short_limit, moved, left) {
            Some(short) => short,
            None if under_pressure => return None,
            None => {
                self.short.reset();
                self.short.check(now, short_limit, moved, left)?
            }
        };
        Some(long.min(short))
    }

    fn reset(&mut self) {
        self.long.reset();
        self.short.reset();
    }
}

impl Connection<'_> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<CloseReason> {
        self.running.wake();
        self.slice_began = None;
        for _ in 0..TURNS_PER_POLL {
            match self.turn(cx) {
                Ok(TurnOutcome::Progress) => {}
                Ok(TurnOutcome::SliceOver) => break,
                Ok(TurnOutcome::Idle) => return self.poll_idle(cx),
                Err(end) => return Poll::Ready(end),
            }
        }
        yield_to_io(cx)
    }

    /// The end of the time slice, which starts at `now` if it has not started yet.
    fn slice_end(&mut self, now: impl FnOnce() -> Duration) -> Duration {
        *self.slice_began.get_or_insert_with(now) + TIME_SLICE
    }

    /// Runs one turn: reads, runs calls, and writes once.
    fn turn(&mut self, cx: &mut Context<'_>) -> Result<TurnOutcome, CloseReason> {
        let was_expanding = self.expanding.is_active();
        let (read, has_more_requests) = match self.phase {
            Phase::Open => self.read_requests(cx)?,
            Phase::Closing => (false, false),
        };
        let (finished, has_more_calls) = self.poll_calls(has_more_requests, cx);
        // The end of a decompression counts as progress: requests may have waited for it.
        let expanded = was_expanding && !self.expanding.is_active();
        let sent_before = self.outbox.sent_bytes();
        let sent = self.outbox.poll_send(&mut self.stream, cx).map_err(|_| CloseReason::Lost)?;
        if sent {
            self.instruments.sent.add(self.outbox.sent_bytes() - sent_before);
        }
        self.unsent_share.set(self.outbox.unsent());
        let ended = self.ended.take();
        if read || sent {
            // The end time of the last call is precise enough for the checks of the client's pace.
            // The send time of a large response is reported, so it is read from the clock.
            self.moved_at = match ended {
                Some(ended) if self.unsent_large_responses.is_empty() => ended,
                _ => self.env.clock.monotonic(),
            };
            self.unsent_large_responses.sent(
                self.outbox.sent_bytes(),
                self.moved_at,
                self.options.watch.as_ref(),
            );
        }
        Ok(match read || finished || sent || expanded {
            _ if has_more_requests || has_more_calls => TurnOutcome::SliceOver,
            true => TurnOutcome::Progress,
            false => TurnOutcome::Idle,
        })
    }

    /// Handles a turn without progress: closes the connection if it is done, otherwise waits for
    /// the server to stop and for the next check of the client's pace.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<CloseReason> {
        if self.phase == Phase::Closing && self.running.is_empty() && self.outbox.unsent() == 0 {
            return Poll::Ready(CloseReason::Finished);
        }
        if self.phase == Phase::Open && self.stopped.as_mut().poll(cx).is_ready() {
            self.phase = Phase::Closing;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.poll_stall(cx)
    }

    fn poll_stall(&mut self, cx: &mut Context<'_>) -> Poll<CloseReason> {
        loop {
            let wait = match self.check_pace() {
                Err(end) => return Poll::Ready(end),
                Ok(None) => {
                    self.alarm = None;
                    return Poll::Pending;
                }
                Ok(Some(wait)) => wait,
            };
            let alarm = self.alarm.get_or_insert_with(|| self.env.clock.sleep(wait));
            if alarm.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.alarm = None;
        }
    }

    /// Time until the next check of the client's pace; `None` if nothing is to be transferred now.
    fn check_pace(&mut self) -> Result<Option<Duration>, CloseReason> {
        let limit = self.options.stall_limit;
        let unsent = self.outbox.unsent() as u64;
        let in_frame = self.phase == Phase::Open && self.inbox.in_frame();
        if unsent > 0 {
            // While responses are unsent, the server may have stopped reading. So the pace at which
            // the client sends is not checked.
            self.receiving.reset();
            let under_pressure = self.shared.response_budget().is_short();
            let moved = (self.outbox.sent_bytes(), unsent);
            return self.check_pace_now(|it, now| it.sending.check(now, limit, under_pressure, moved));
        }
        self.sending.reset();
        // Nothing is read while a block is decompressed.
        if in_frame && !self.expanding.is_active() {
            let under_pressure = self.shared.request_budget().is_short();
            let moved = (self.inbox.read_bytes(), self.inbox.missing_bytes());
            return self.check_pace_now(|it, now| it.receiving.check(now, limit, under_pressure, moved));
        }
        self.receiving.reset();
        if self.phase == Phase::Open {
            return Ok(None);
        }
        let still = self.env.clock.monotonic().saturating_sub(self.moved_at);
        let left = self.options.drain_limit.checked_sub(still).filter(|left| !left.is_zero());
        left.map(Some).ok_or(CloseReason::Stalled)
    }

    fn check_pace_now(
        &mut self,
        check: impl FnOnce(&mut Self, Duration) -> Option<Duration>,
    ) -> Result<Option<Duration>, CloseReason> {
        let now = self.env.clock.monotonic();
        match check(self, now) {
            Some(wait) => Ok(Some(wait)),
            None => {
                self.shared.count_stalled();
                Err(CloseReason::Stalled)
            }
        }
    }

    /// Starts the requests that are in memory, then reads once and starts the requests that
    /// arrived. Returns whether there was any progress, and whether the time slice ended before all
    /// requests were started.
    fn read_requests(&mut self, cx: &mut Context<'_>) -> Result<(bool, bool), CloseReason> {
        // Read the clock, because these requests may have waited long. A request whose client has
        // stopped waiting is not started.
        let (begun, has_more) = match self.inbox.in_frame() {
            true => self.begin_requests(self.env.clock.monotonic(), cx),
            false => (false, false),
        };
        if has_more || self.phase == Phase::Closing || self.is_congested() {
            return Ok((begun, has_more));
        }
        match self.inbox.poll_read(&mut self.stream, cx) {
            Poll::Pending => Ok((begun, false)),
            Poll::Ready(Err(_)) => Err(CloseReason::Lost),
            Poll::Ready(Ok(0)) => {
                // The client has closed its side. As in HBase, running reads may end early.
                self.info.presence.leave();
                self.phase = Phase::Closing;
                Ok((true, false))
            }
            Poll::Ready(Ok(read)) => {
                self.instruments.received.add(read as u64);
                self.read_at = self.env.clock.monotonic();
                let (_, has_more) = self.begin_requests(self.read_at, cx);
                Ok((true, has_more))
            }
        }
    }

    /// Whether no more requests may be started, because too many bytes of responses are unsent or a
    /// cell block is being decompressed.
    fn is_congested(&self) -> bool {
        self.outbox.unsent() > self.options.unsent_bytes_soft_max || self.expanding.is_active()
    }

    /// Starts the complete requests. Returns whether any was started, and whether the time slice
    /// ended before all were started.
    fn begin_requests(&mut self, now: Duration, cx: &mut Context<'_>) -> (bool, bool) {
        let mut any = false;
        self.now = now;
        let slice_end = self.slice_end(|| now);
        while self.phase == Phase::Open && !self.is_congested() {
            if any && self.now >= slice_end {
                return (true, true);
            }
            match self.inbox.next() {
                InboxEvent::Request { request: Ok(request), cost } => self.begin(request, cost, cx),
                InboxEvent::Request { request: Err(bad), cost } => {
                    self.inbox.done(cost);
                    self.refuse_bad(bad);
                }
                InboxEvent::OverBudget(header) => {
                    self.shared.count_refused();
                    self.fail(header.call_id, &overloaded::queue_too_big(&self.info));
                }
                InboxEvent::TooBig { header, len } => {
                    self.fail(header.call_id, &self.request_too_big(len));
                    self.stop_reading();
                }
                InboxEvent::Invalid => self.stop_reading(),
                InboxEvent::NeedBytes => break,
            }
            any = true;
        }
        (any, false)
    }

    /// Stops reading, because the client's further bytes cannot be parsed.
    fn stop_reading(&mut self) {
        self.phase = Phase::Closing;
        self.linger = LINGER_LIMIT_REFUSED;
    }

    fn begin(&mut self, request: Request, cost: usize, cx: &mut Context<'_>) {
        let RequestHeader { call_id, method, priority, timeout_ms, trace_info, .. } = request.header;
        let timeout = timeout_ms.map(|ms| Duration::from_millis(u64::from(ms)).max(MIN_TIMEOUT));
        let deadline = timeout.map(|timeout| self.read_at + timeout);
        if deadline.is_some_and(|deadline| self.now > deadline) {
            // The client no longer waits for the response.
            return self.inbox.done(cost);
        }
        let slot = match self.shared.response_budget().available() {
            0 => Err(overloaded::queue_too_big(&self.info)),
            _ => {
                let slot = self.shared.admit_call(self.options.calls_max, priority);
                slot.ok_or_else(|| overloaded::too_many_calls(&self.info))
            }
        };
        let slot = match slot {
            Ok(slot) => slot,
            Err(failure) => {
                self.shared.count_refused();
                self.inbox.done(cost);
                return self.fail(call_id, &failure);
            }
        };
        spent::begin(self.now);
        let begun = BegunCall {
            call_id,
            method: method.clone(),
            param: request.param.clone(),
            cost,
            request_len: request.param.len() + request.cells.len(),
            received: self.read_at,
            begun: self.now,
        };
        let call = Call {
            method,
            param: request.param,
            cells: request.cells,
            connection: Arc::clone(&self.info),
            trace_info,
            priority,
            received: self.read_at,
            deadline,
            begun: self.now,
        };
        if let Err(denied) = self.options.authorizer.authorize(&call) {
            self.inbox.done(cost);
            return self.fail(call_id, &denied);
        }
        let answer = match catch_unwind(AssertUnwindSafe(|| self.answer(call))) {
            Ok(answer) => answer,
            Err(panic) => Box::pin(std::future::ready(Err(panicked(&begun.method, panic)))),
        };
        let work = CallWork { call: begun, answer, _slot: slot };
        match self.running.begin(work, self.env, &self.info, cx) {
            BeginOutcome::Done(done) => self.finish(done),
            // The next request starts now, not when this call started.
            BeginOutcome::Waits(now) => self.now = now,
        }
    }

    fn answer(&self, call: Call) -> Answer {
        let Some(compressor) = self.info.compressor else { return self.service.call(call) };
        let compressed = Compressed {
            env: self.env.clone(),
            compressor,
            requests: self.shared.request_budget().clone(),
            limit: self.options.max_request_bytes as usize,
            expanding: self.expanding.clone(),
        };
        Box::pin(compressed.call(self.service.clone(), call))
    }

    /// Polls the running calls. Returns whether any of them ran, and whether the time slice ended
    /// before all of them ran. If starting requests used up the slice, calls get half a slice more,
    /// so that they end even if their client never stops sending requests.
    fn poll_calls(&mut self, has_more_requests: bool, cx: &mut Context<'_>) -> (bool, bool) {
        if self.running.is_empty() {
            return (false, false);
        }
        let env = self.env;
        let slice_end = match has_more_requests {
            true => self.now + TIME_SLICE / 2,
            false => self.slice_end(|| env.clock.monotonic()),
        };
        let mut any = false;
        while self.outbox.unsent() <= self.options.unsent_bytes_hard_max {
            match self.running.poll_next(env, &self.info, slice_end, cx) {
                NextCall::Done(done) => self.finish(done),
                NextCall::Continues => {}
                NextCall::Idle => break,
                NextCall::SliceOver => return (any, true),
            }
            any = true;
        }
        (any, false)
    }

    fn finish(&mut self, FinishedCall { call, outcome, was_ready }: FinishedCall) {
        self.inbox.done(call.cost);
        let mut failure = None;
        if let Err(failed) = &outcome {
            self.instruments.count_failure(&failed.class);
            failure = Some(failed.class.clone());
        }
        let unsent_before = self.outbox.unsent();
        self.outbox.push(call.call_id, outcome);
        // Reserve the bytes now: the service has released its reservation, and another call could
        // take them.
        self.unsent_share.set(self.outbox.unsent());
        if !COUNTING {
            return;
        }
        let end = spent::reported_end();
        // The next request starts now.
        self.now = end.map_or_else(|| self.env.clock.monotonic(), |end| end.at);
        self.ended = Some(self.now);
        let (took, queued_nanos) = match end {
            // The call was not queued, so its total time is the time since its start.
            Some(end) if call.begun == call.received => (end.took, 0),
            _ => call.took_until(self.now),
        };
        let response_len = self.outbox.unsent() - unsent_before;
        let request_len = call.request_len;
        self.instruments.record(&CallSpan { queued_nanos, took, request_len, response_len });
        if self.bounds.are_exceeded(took.nanos(), response_len)
            && let Some(watch) = &self.options.watch
        {
            self.report(watch, call, was_ready, response_len, failure);
        }
    }

    /// Reports a call that just ended and was slow or had a large response. If the response is
    /// large, the report waits until it has been sent.
    #[cold]
    fn report(
        &mut self,
        watch: &Watch,
        call: BegunCall,
        was_ready: bool,
        response_len: usize,
        failure: Option<Cow<'static, str>>,
    ) {
        let mut spent = spent::close();
        if was_ready {
            spent.add(spent::Phase::Work, self.now.saturating_sub(call.begun));
        }
        let ended = EndedCall {
            connection: Arc::clone(&self.info),
            method: call.method,
            param: Some(call.param),
            received: call.received,
            begun: call.begun,
            ended: self.now,
            sent: self.now,
            request_len: call.request_len,
            response_len,
            spent,
            failure,
        };
        match EndedCall::is_tracked(response_len) {
            true => self
                .unsent_large_responses
                .push(self.outbox.sent_bytes() + self.outbox.unsent() as u64, ended),
            false => watch.observer.ended(&ended),
        }
    }

    /// Fails a call that was not started.
    fn fail(&mut self, call_id: u32, failure: &JavaException) {
        self.instruments.count_failure(&failure.class);
        self.outbox.push_failure(call_id, failure);
    }

    fn refuse_bad(&mut self, bad: BadRequest) {
        match bad {
            BadRequest::Header(_) => self.stop_reading(),
            BadRequest::Body { header, what } => {
                let (local, peer) = (self.info.local, self.info.peer.ip());
                let message = format!(
                    "{local} is unable to read call parameter from client {peer}; Invalid request header: call_id: {} \
                     method_name: {:?}: {what}",
                    header.call_id, header.method
                );
                self.fail(header.call_id, &JavaException::do_not_retry(message));
            }
        }
    }

    fn request_too_big(&self, len: u32) -> JavaException {
        let message = format!(
            "RPC data length of {len} received from {} is greater than max allowed {}. Set \
             \"hbase.ipc.max.request.size\" on server to override this limit (not recommended)",
            self.info.peer.ip(),
            self.options.max_request_bytes
        );
        // Older clients do not know the exception class.
        match self.info.version_at_least(1, 3) {
            true => JavaException::new(class::REQUEST_TOO_BIG, message),
            false => JavaException::do_not_retry(message),
        }
    }

    /// Closes the socket. After [`CloseReason::Finished`], first drains the client's bytes, so that
    /// the client receives the last response. Otherwise polls the running calls until they end.
    async fn close(mut self, end: CloseReason) {
        if end == CloseReason::Finished {
            let linger = async {
                self.stream.shutdown().await?;
                // Closing a socket with unread bytes resets it, and the client could lose the last
                // response.
                let mut leftover = (&mut *self.stream).take(LINGER_BYTES_MAX);
                tokio::io::copy(&mut leftover, &mut tokio::io::sink()).await
            };
            self.env.timeout(self.linger, linger).await;
            return;
        }
        drop(self.stream);
        self.unsent_large_responses.lost(self.env.clock.monotonic(), self.options.watch.as_ref());
        self.info.presence.leave();
        let (running, env, info) = (&mut self.running, self.env, &self.info);
        let drained = poll_fn(|cx| {
            running.wake();
            let slice_end = env.clock.monotonic() + TIME_SLICE;
            loop {
                match running.poll_next(env, info, slice_end, cx) {
                    NextCall::Done(_) | NextCall::Continues => {}
                    NextCall::SliceOver => return yield_to_io(cx),
                    NextCall::Idle if running.is_empty() => return Poll::Ready(()),
                    NextCall::Idle => return Poll::Pending,
                }
            }
        });
        if self.env.timeout(self.options.drain_limit, drained).await.is_none() {
            error!(peer = %self.info.peer, calls = self.running.len(), "connection closed; dropping calls that did not end in time");
        }
    }
}
