//! One connection: reads requests, runs their calls, writes their answers, all on one thread.
//!
//! Each turn reads once, begins every request that is complete, polls the calls that were woken, and writes all the
//! answers there are at once. A call that is ready when first polled never becomes a task. Invariants:
//!
//! * no request is begun while more than the soft bound of answers is unread, and no call polled beyond the hard one;
//! * what is unread is counted in the server's number of bytes for answers, until the socket has it;
//! * a call that has begun runs to its end, its client there or not, for no write is left half done by a lost socket;
//! * the thread is given back after [`TURN`] of computing, and after [`TURNS_PER_POLL`] turns, however much more there is
//!   to do. The runtime then looks for other connections' bytes before this one goes on.

use std::borrow::Cow;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use base::env::{Env, Stream};
use base::metrics::COUNTING;
use base::turns::TURN;
use base::{BoxFuture, spent};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::watch;
use tracing::{debug, error};

use super::calls::{Answer, Begin, Begun, Calls, Done, Next as NextCall, Work, panicked};
use super::compressed::{Compressed, Expanding};
use super::inbox::{Inbox, Next};
use super::instruments::{CallCounts, CallSpan};
use super::observer::{EndedCall, Leaving, Watch, WatchBounds};
use super::outbox::Outbox;
use super::pace::Pace;
use super::{Server, ServerOptions, Shared, overloaded};
use crate::call::{Call, ConnectionInfo, Failure, Service};
use crate::frame::{BadRequest, Request, RequestHeader};
use base::budget::Share;

/// The part of the stall limit that a client has where memory is tight.
const TIGHT_PART: u32 = 12;
/// Turns before other connections of the thread have theirs.
const TURNS_PER_POLL: usize = 8;
/// The shortest time a client can give a call (HBase: `MIN_CALL_TIMEOUT`).
const MIN_TIMEOUT: Duration = Duration::from_millis(20);
/// What a client may still send before the connection is closed on it, and how long it may take; longer if it was
/// refused in the middle of its bytes.
const LINGER_BYTES_MAX: u64 = 16 << 20;
const LINGER_LIMIT: Duration = Duration::from_millis(200);
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
        // An error means that the server is gone, which is a stop too.
        let _ = stop.wait_for(|stop| *stop).await;
    });
    let service = service.of_connection(&info).unwrap_or(service);
    let mut connection = Connection {
        env: &server.env,
        options: &server.options,
        stream,
        service,
        inbox: Inbox::new(server.options.max_request_bytes, server.shared.requests()),
        outbox: Outbox::default(),
        leaving: Leaving::default(),
        bounds: server.options.watch.as_ref().map_or(WatchBounds::NONE, Watch::bounds),
        unread: Share::of(server.shared.answers()),
        shared: &server.shared,
        instruments: &server.instruments,
        running: Calls::default(),
        expanding: info.compressor.map_or_else(Expanding::default, |_| Expanding::possible()),
        turn_began: None,
        phase: Phase::Open,
        read_at: Duration::ZERO,
        now: Duration::ZERO,
        ended: None,
        moved_at: server.env.clock.monotonic(),
        sending: Paces::default(),
        receiving: Paces::default(),
        alarm: None,
        linger: LINGER_LIMIT,
        stopped,
        info,
    };
    let end = poll_fn(|cx| connection.poll(cx)).await;
    debug!(peer = %connection.info.peer, service = connection.info.service, ?end, "connection closed");
    connection.close(end).await;
}

/// How far a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Requests are read.
    Open,
    /// No more are read; what has begun is finished and answered.
    Closing,
}

/// Why a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// All is answered.
    Finished,
    /// The socket failed.
    Lost,
    /// The client sent half a frame, or did not read, for too long.
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
    // Those of its answers that may take long.
    leaving: Leaving,
    // From where on calls are told of.
    bounds: WatchBounds,
    // What is in `outbox`, in the server's number.
    unread: Share,
    running: Calls,
    // Whether a cell block is being expanded elsewhere.
    expanding: Expanding,
    // When the first work of this poll began.
    turn_began: Option<Duration>,
    phase: Phase,
    // When the bytes in `inbox` were read.
    read_at: Duration,
    // The clock, when it was last looked at.
    now: Duration,
    // When a call of this turn ended, the last one, if anything is counted.
    ended: Option<Duration>,
    // When the socket last took or gave anything.
    moved_at: Duration,
    // Whether the client takes its answers, and goes on with a frame.
    sending: Paces,
    receiving: Paces,
    // Wakes this task when the client may have stalled; armed only while it could have.
    alarm: Option<BoxFuture<'static, ()>>,
    // How long to wait at the close for the client's.
    linger: Duration,
    stopped: BoxFuture<'static, ()>,
}

/// What a turn came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moved {
    /// There may be more to do.
    Something,
    /// There is more to do, when others had their turn.
    TurnOver,
    /// All waits.
    Nothing,
}

/// Polls this task again when the runtime has looked for bytes of all others. Waking the task directly would put it behind
/// the tasks that are ready already, and the runtime looks for bytes only once in dozens of tasks.
fn come_back<T>(cx: &mut Context<'_>) -> Poll<T> {
    let _ = pin!(tokio::task::yield_now()).poll(cx);
    Poll::Pending
}

/// One direction, over the time that a client has and over the little it has where memory is tight.
#[derive(Default)]
struct Paces {
    long: Pace,
    short: Pace,
}

impl Paces {
    /// As [`Pace::judge`].
    fn judge(
        &mut self,
        now: Duration,
        limit: Duration,
        tight: bool,
        (moved, left): (u64, u64),
    ) -> Option<Duration> {
        let long = self.long.judge(now, limit, moved, left)?;
        let short_limit = limit / TIGHT_PART;
        let short = match self.short.judge(now, short_limit, moved, left) {
            Some(short) => short,
            None if tight => return None,
            None => {
                self.short.rest();
                self.short.judge(now, short_limit, moved, left)?
            }
        };
        Some(long.min(short))
    }

    fn rest(&mut self) {
        self.long.rest();
        self.short.rest();
    }
}

impl Connection<'_> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        self.running.wake();
        self.turn_began = None;
        for _ in 0..TURNS_PER_POLL {
            match self.turn(cx) {
                Ok(Moved::Something) => {}
                Ok(Moved::TurnOver) => break,
                Ok(Moved::Nothing) => return self.poll_idle(cx),
                Err(end) => return Poll::Ready(end),
            }
        }
        come_back(cx)
    }

    /// When the turn ends that began at `now`, if none had begun.
    fn turn_ends(&mut self, now: impl FnOnce() -> Duration) -> Duration {
        *self.turn_began.get_or_insert_with(now) + TURN
    }

    /// Reads, runs and writes once.
    fn turn(&mut self, cx: &mut Context<'_>) -> Result<Moved, End> {
        let was_expanding = self.expanding.is_under_way();
        let (read, begins_over) = match self.phase {
            Phase::Open => self.read_requests(cx)?,
            Phase::Closing => (false, false),
        };
        let (finished, calls_over) = self.finish_calls(begins_over, cx);
        // Requests that waited for it can be begun.
        let expanded = was_expanding && !self.expanding.is_under_way();
        let sent_before = self.outbox.sent_bytes();
        let sent = self.outbox.poll_send(&mut self.stream, cx).map_err(|_| End::Lost)?;
        if sent {
            self.instruments.sent.add(self.outbox.sent_bytes() - sent_before);
        }
        self.unread.set(self.outbox.unsent());
        let ended = self.ended.take();
        if read || sent {
            // Clients are judged by seconds, so that the end of a call is near enough; the way of a long answer is told of.
            self.moved_at = match ended {
                Some(ended) if self.leaving.is_empty() => ended,
                _ => self.env.clock.monotonic(),
            };
            self.leaving.sent(self.outbox.sent_bytes(), self.moved_at, self.options.watch.as_ref());
        }
        Ok(match read || finished || sent || expanded {
            _ if begins_over || calls_over => Moved::TurnOver,
            true => Moved::Something,
            false => Moved::Nothing,
        })
    }

    /// Nothing moves: waits for the server's stop and for the client's stall, if it may be one.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        if self.phase == Phase::Closing && self.running.is_empty() && self.outbox.unsent() == 0 {
            return Poll::Ready(End::Finished);
        }
        if self.phase == Phase::Open && self.stopped.as_mut().poll(cx).is_ready() {
            self.phase = Phase::Closing;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.poll_stall(cx)
    }

    fn poll_stall(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        loop {
            let wait = match self.judge() {
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

    /// When the client is to be judged again; `None` if nothing needs to move now.
    fn judge(&mut self) -> Result<Option<Duration>, End> {
        let limit = self.options.stall_limit;
        let unsent = self.outbox.unsent() as u64;
        let in_frame = self.phase == Phase::Open && self.inbox.in_frame();
        if unsent > 0 {
            // What it sends meanwhile is not read, perhaps; so that is not judged.
            self.receiving.rest();
            let tight = self.shared.answers().is_tight();
            let moved = (self.outbox.sent_bytes(), unsent);
            return self.in_pace(|it, now| it.sending.judge(now, limit, tight, moved));
        }
        self.sending.rest();
        // While a block is expanded nothing is read.
        if in_frame && !self.expanding.is_under_way() {
            let tight = self.shared.requests().is_tight();
            let moved = (self.inbox.read_bytes(), self.inbox.missing_bytes());
            return self.in_pace(|it, now| it.receiving.judge(now, limit, tight, moved));
        }
        self.receiving.rest();
        if self.phase == Phase::Open {
            return Ok(None);
        }
        let still = self.env.clock.monotonic().saturating_sub(self.moved_at);
        let left = self.options.drain_limit.checked_sub(still).filter(|left| !left.is_zero());
        left.map(Some).ok_or(End::Stalled)
    }

    fn in_pace(
        &mut self,
        judge: impl FnOnce(&mut Self, Duration) -> Option<Duration>,
    ) -> Result<Option<Duration>, End> {
        let now = self.env.clock.monotonic();
        match judge(self, now) {
            Some(wait) => Ok(Some(wait)),
            None => {
                self.shared.count_stalled();
                Err(End::Stalled)
            }
        }
    }

    /// Begins what was read already, then reads once and begins that; whether any of it happened, and whether the turn ended
    /// before all of it was begun.
    fn read_requests(&mut self, cx: &mut Context<'_>) -> Result<(bool, bool), End> {
        // These lay here while the client did not read: it may have given up on them.
        let (begun, is_over) = match self.inbox.in_frame() {
            true => self.begin_requests(self.env.clock.monotonic(), cx),
            false => (false, false),
        };
        if is_over || self.phase == Phase::Closing || self.crowded() {
            return Ok((begun, is_over));
        }
        match self.inbox.poll_read(&mut self.stream, cx) {
            Poll::Pending => Ok((begun, false)),
            Poll::Ready(Err(_)) => Err(End::Lost),
            Poll::Ready(Ok(0)) => {
                // As HBase's server, which gives up on calls whose client has closed its side.
                self.info.presence.leave();
                self.phase = Phase::Closing;
                Ok((true, false))
            }
            Poll::Ready(Ok(read)) => {
                self.instruments.received.add(read as u64);
                self.read_at = self.env.clock.monotonic();
                let (_, is_over) = self.begin_requests(self.read_at, cx);
                Ok((true, is_over))
            }
        }
    }

    /// Whether the client leaves too much unread for more to be begun, or a block of it is being expanded.
    fn crowded(&self) -> bool {
        self.outbox.unsent() > self.options.unsent_bytes_soft_max || self.expanding.is_under_way()
    }

    /// Whether any was begun, and whether the turn ended before all were.
    fn begin_requests(&mut self, now: Duration, cx: &mut Context<'_>) -> (bool, bool) {
        let mut any = false;
        self.now = now;
        let turn_ends = self.turn_ends(|| now);
        while self.phase == Phase::Open && !self.crowded() {
            if any && self.now >= turn_ends {
                return (true, true);
            }
            match self.inbox.next() {
                Next::Request { request: Ok(request), cost } => self.begin(request, cost, cx),
                Next::Request { request: Err(bad), cost } => {
                    self.inbox.done(cost);
                    self.refuse_bad(bad);
                }
                Next::NoRoom(header) => {
                    self.shared.count_refused();
                    self.fail(header.call_id, &overloaded::queue_too_big(&self.info));
                }
                Next::TooBig { header, len } => {
                    self.fail(header.call_id, &self.request_too_big(len));
                    self.break_off();
                }
                Next::Broken => self.break_off(),
                Next::NeedBytes => break,
            }
            any = true;
        }
        (any, false)
    }

    /// The client's bytes cannot be understood from here on.
    fn break_off(&mut self) {
        self.phase = Phase::Closing;
        self.linger = LINGER_LIMIT_REFUSED;
    }

    fn begin(&mut self, request: Request, cost: usize, cx: &mut Context<'_>) {
        let RequestHeader { call_id, method, priority, timeout_ms, trace_info, .. } = request.header;
        let timeout = timeout_ms.map(|ms| Duration::from_millis(u64::from(ms)).max(MIN_TIMEOUT));
        let deadline = timeout.map(|timeout| self.read_at + timeout);
        if deadline.is_some_and(|deadline| self.now > deadline) {
            // Nobody waits for the answer any more.
            return self.inbox.done(cost);
        }
        let place = match self.shared.answers().left() {
            0 => Err(overloaded::queue_too_big(&self.info)),
            _ => {
                let place = self.shared.admit_call(self.options.calls_max);
                place.ok_or_else(|| overloaded::too_many_calls(&self.info))
            }
        };
        let place = match place {
            Ok(place) => place,
            Err(failure) => {
                self.shared.count_refused();
                self.inbox.done(cost);
                return self.fail(call_id, &failure);
            }
        };
        spent::begin(self.now);
        let begun = Begun {
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
        let answer = match catch_unwind(AssertUnwindSafe(|| self.answer(call))) {
            Ok(answer) => answer,
            Err(panic) => Box::pin(std::future::ready(Err(panicked(&begun.method, panic)))),
        };
        let work = Work { call: begun, answer, _place: place };
        match self.running.begin(work, self.env, &self.info, cx) {
            Begin::Done(done) => self.finish(done),
            // The next call of the same bytes begins now, and not when this one did.
            Begin::Waits(now) => self.now = now,
        }
    }

    fn answer(&self, call: Call) -> Answer {
        let Some(compressor) = self.info.compressor else { return self.service.call(call) };
        let compressed = Compressed {
            env: self.env.clone(),
            compressor,
            requests: self.shared.requests().clone(),
            limit: self.options.max_request_bytes as usize,
            expanding: self.expanding.clone(),
        };
        Box::pin(compressed.call(self.service.clone(), call))
    }

    /// Whether any ended or had its turn, and whether the turn ended before all had theirs. If requests took all of the turn,
    /// calls have half a turn more: a client that never stops sending must not keep its own calls from ending.
    fn finish_calls(&mut self, begins_over: bool, cx: &mut Context<'_>) -> (bool, bool) {
        if self.running.is_empty() {
            return (false, false);
        }
        let env = self.env;
        let turn_ends = match begins_over {
            true => self.now + TURN / 2,
            false => self.turn_ends(|| env.clock.monotonic()),
        };
        let mut any = false;
        while self.outbox.unsent() <= self.options.unsent_bytes_hard_max {
            match self.running.poll_next(env, &self.info, turn_ends, cx) {
                NextCall::Done(done) => self.finish(done),
                NextCall::Again => {}
                NextCall::Nothing => break,
                NextCall::TurnOver => return (any, true),
            }
            any = true;
        }
        (any, false)
    }

    fn finish(&mut self, Done { call, outcome, was_ready }: Done) {
        self.inbox.done(call.cost);
        let mut failure = None;
        if let Err(failed) = &outcome {
            self.instruments.count_failure(&failed.class);
            failure = Some(failed.class.clone());
        }
        let unsent_before = self.outbox.unsent();
        self.outbox.push(call.call_id, outcome);
        // At once: the service has given back what it took, and others must not take it too.
        self.unread.set(self.outbox.unsent());
        if !COUNTING {
            return;
        }
        let end = spent::ended();
        // The next call of the same bytes begins now.
        self.now = end.map_or_else(|| self.env.clock.monotonic(), |end| end.at);
        self.ended = Some(self.now);
        let (took, queued_nanos) = match end {
            // What it took since it was begun is all it took.
            Some(end) if call.begun == call.received => (end.took, 0),
            _ => call.took_until(self.now),
        };
        let response_len = self.outbox.unsent() - unsent_before;
        let request_len = call.request_len;
        self.instruments.note(&CallSpan { queued_nanos, took, request_len, response_len });
        if self.bounds.are_passed(took.nanos(), response_len)
            && let Some(watch) = &self.options.watch
        {
            self.tell(watch, call, was_ready, response_len, failure);
        }
    }

    /// Tells of a call that ended just now, and took long or gave much; if it still may have, when its answer has gone.
    #[cold]
    fn tell(
        &mut self,
        watch: &Watch,
        call: Begun,
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
        match EndedCall::is_followed(response_len) {
            true => self.leaving.push(self.outbox.sent_bytes() + self.outbox.unsent() as u64, ended),
            false => watch.observer.ended(&ended),
        }
    }

    /// Answers a call that was not begun.
    fn fail(&mut self, call_id: u32, failure: &Failure) {
        self.instruments.count_failure(&failure.class);
        self.outbox.push_failure(call_id, failure);
    }

    fn refuse_bad(&mut self, bad: BadRequest) {
        match bad {
            BadRequest::Header(_) => self.break_off(),
            BadRequest::Body { header, what } => {
                let (local, peer) = (self.info.local, self.info.peer.ip());
                let message = format!(
                    "{local} is unable to read call parameter from client {peer}; Invalid request header: call_id: {} \
                     method_name: {:?}: {what}",
                    header.call_id, header.method
                );
                self.fail(header.call_id, &Failure::do_not_retry(message));
            }
        }
    }

    fn request_too_big(&self, len: u32) -> Failure {
        let message = format!(
            "RPC data length of {len} received from {} is greater than max allowed {}. Set \
             \"hbase.ipc.max.request.size\" on server to override this limit (not recommended)",
            self.info.peer.ip(),
            self.options.max_request_bytes
        );
        // Older clients do not have the class.
        match self.info.version_at_least(1, 3) {
            true => {
                let class = "org.apache.hadoop.hbase.exceptions.RequestTooBigException";
                Failure { do_not_retry: true, ..Failure::new(class, message) }
            }
            false => Failure::do_not_retry(message),
        }
    }

    /// Ends what has begun, and closes the socket so that the client gets what was written.
    async fn close(mut self, end: End) {
        if end == End::Finished {
            let linger = async {
                self.stream.shutdown().await?;
                // Closing a socket with unread bytes resets it, and the client may lose the last answer.
                let mut leftover = (&mut *self.stream).take(LINGER_BYTES_MAX);
                tokio::io::copy(&mut leftover, &mut tokio::io::sink()).await
            };
            self.env.timeout(self.linger, linger).await;
            return;
        }
        drop(self.stream);
        self.leaving.lost(self.env.clock.monotonic(), self.options.watch.as_ref());
        self.info.presence.leave();
        let (running, env, info) = (&mut self.running, self.env, &self.info);
        let drained = poll_fn(|cx| {
            running.wake();
            let turn_ends = env.clock.monotonic() + TURN;
            loop {
                match running.poll_next(env, info, turn_ends, cx) {
                    NextCall::Done(_) | NextCall::Again => {}
                    NextCall::TurnOver => return come_back(cx),
                    NextCall::Nothing if running.is_empty() => return Poll::Ready(()),
                    NextCall::Nothing => return Poll::Pending,
                }
            }
        });
        if self.env.timeout(self.options.drain_limit, drained).await.is_none() {
            error!(peer = %self.info.peer, calls = self.running.len(), "calls of a lost connection do not end; dropped");
        }
    }
}
