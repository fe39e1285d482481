//! Who is told of calls that took long or gave much.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use base::spent::{Spent, nanos};
use bytes::Bytes;

use crate::call::{ConnectionInfo, Method};

/// Answers from this length on are followed until the client has taken them: shorter ones fit into a socket's buffer.
const FOLLOWED_LEN: usize = 64 << 10;
/// The longest message of a call that is kept while its answer is on its way.
const KEPT_PARAM_LEN: usize = 4 << 10;

/// Is told of calls. It is called on connections' threads and must be quick.
pub trait CallObserver: Send + Sync {
    /// A call has ended that took long or gave much.
    fn ended(&self, call: &EndedCall);
}

/// Which calls are told of, and to whom.
#[derive(Clone)]
pub struct Watch {
    /// Who is told.
    pub observer: Arc<dyn CallObserver>,
    /// Calls that take longer, from being read to the last byte of the answer.
    pub slow: Option<Duration>,
    /// Calls with an answer of more bytes.
    pub large_bytes: Option<usize>,
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Watch { observer: _, slow, large_bytes } = self;
        f.debug_struct("Watch").field("slow", slow).field("large_bytes", large_bytes).finish_non_exhaustive()
    }
}

/// A call that has ended. Times are of the monotonic clock.
#[derive(Debug)]
pub struct EndedCall {
    /// Who asked.
    pub connection: Arc<ConnectionInfo>,
    /// What.
    pub method: Method,
    /// Its message; `None` if it was too long to be kept.
    pub param: Option<Bytes>,
    /// When it was read.
    pub received: Duration,
    /// When it was begun.
    pub begun: Duration,
    /// When it was answered.
    pub ended: Duration,
    /// When the client had taken the answer, or went away; short answers do not wait for that.
    pub sent: Duration,
    /// Bytes of the message and of cells that came with it.
    pub request_len: usize,
    /// Bytes of the answer.
    pub response_len: usize,
    /// Where the time between `begun` and `ended` went, and what was used.
    pub spent: Spent,
    /// The Java class of its failure.
    pub failure: Option<Cow<'static, str>>,
}

impl EndedCall {
    /// How long it took altogether.
    pub fn took(&self) -> Duration {
        self.sent.saturating_sub(self.received)
    }

    /// Whether its answer can be on its way for long.
    pub(super) fn is_followed(response_len: usize) -> bool {
        response_len >= FOLLOWED_LEN
    }
}

impl Watch {
    /// From where on a call may be one to tell of, as a connection looks at it for each.
    pub(super) fn bounds(&self) -> WatchBounds {
        WatchBounds {
            nanos: self.slow.map_or(u64::MAX, nanos),
            response_len: self.large_bytes.unwrap_or(usize::MAX).min(FOLLOWED_LEN - 1),
        }
    }

    /// Whether a call took long, or gave much.
    fn concerns(&self, took: Duration, response_len: usize) -> bool {
        self.slow.is_some_and(|slow| took > slow)
            || self.large_bytes.is_some_and(|large| response_len > large)
    }

    fn tell(&self, call: &EndedCall) {
        if self.concerns(call.took(), call.response_len) {
            self.observer.ended(call);
        }
    }
}

/// Bounds within which a call concerns nobody.
#[derive(Clone, Copy)]
pub(super) struct WatchBounds {
    nanos: u64,
    response_len: usize,
}

impl WatchBounds {
    /// No call is told of.
    pub(super) const NONE: WatchBounds = WatchBounds { nanos: u64::MAX, response_len: usize::MAX };

    /// Whether a call took long or gave much, or may still take long until its answer has gone.
    #[inline]
    pub(super) fn are_passed(self, took_nanos: u64, response_len: usize) -> bool {
        took_nanos > self.nanos || response_len > self.response_len
    }
}

/// Calls whose long answers are on their way.
#[derive(Default)]
pub(super) struct Leaving {
    // With the count of sent bytes at which the answer has gone.
    calls: VecDeque<(u64, EndedCall)>,
}

impl Leaving {
    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// The answer of `call` ends at `end` of all that is sent.
    pub(super) fn push(&mut self, end: u64, mut call: EndedCall) {
        // Copies: slices of the request would keep all of it in memory, and the server thinks that it is gone.
        call.method = Method::from(&*call.method);
        call.param = call.param.filter(|param| param.len() <= KEPT_PARAM_LEN);
        call.param = call.param.map(|param| Bytes::copy_from_slice(&param));
        self.calls.push_back((end, call));
    }

    /// The client has taken `sent_bytes` in all.
    #[inline]
    pub(super) fn sent(&mut self, sent_bytes: u64, now: Duration, watch: Option<&Watch>) {
        while self.calls.front().is_some_and(|(end, _)| *end <= sent_bytes) {
            self.tell_first(now, watch);
        }
    }

    /// The client takes no more.
    pub(super) fn lost(&mut self, now: Duration, watch: Option<&Watch>) {
        while !self.calls.is_empty() {
            self.tell_first(now, watch);
        }
    }

    fn tell_first(&mut self, now: Duration, watch: Option<&Watch>) {
        if let (Some((_, mut call)), Some(watch)) = (self.calls.pop_front(), watch) {
            call.sent = now;
            watch.tell(&call);
        }
    }
}
