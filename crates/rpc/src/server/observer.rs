//! Observation of calls that were slow or had a large response.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use base::spent::{Spent, nanos};
use bytes::Bytes;

use crate::call::{ConnectionInfo, Method};

/// Minimum size of responses that are tracked until they are sent completely. Smaller ones fit into
/// a socket's buffer.
const TRACKED_LEN: usize = 64 << 10;
/// Maximum size of a request message that is kept while its response is sent.
const PARAM_LEN_MAX: usize = 4 << 10;

/// Observes calls. It is called on connections' threads and must be fast.
pub trait CallObserver: Send + Sync {
    /// Called when a call has ended that was slow or had a large response.
    fn ended(&self, call: &EndedCall);
}

/// The calls to report, and their observer.
#[derive(Clone)]
pub struct Watch {
    /// The observer.
    pub observer: Arc<dyn CallObserver>,
    /// Report calls that take longer, from reading the request to sending the last byte of the
    /// response.
    pub slow: Option<Duration>,
    /// Report calls with a response of more bytes.
    pub large_bytes: Option<usize>,
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Watch { observer: _, slow, large_bytes } = self;
        f.debug_struct("Watch").field("slow", slow).field("large_bytes", large_bytes).finish_non_exhaustive()
    }
}

/// A call that has ended. Times are on the monotonic clock.
#[derive(Debug)]
pub struct EndedCall {
    /// The connection of the client.
    pub connection: Arc<ConnectionInfo>,
    /// The method.
    pub method: Method,
    /// The request message; `None` if it was too long to keep.
    pub param: Option<Bytes>,
    /// When it was read.
    pub received: Duration,
    /// When it was started.
    pub begun: Duration,
    /// When its response was ready.
    pub ended: Duration,
    /// When the response was sent completely, or the client disconnected. For small responses,
    /// equal to `ended`.
    pub sent: Duration,
    /// Size in bytes of the request's message and cells.
    pub request_len: usize,
    /// Size in bytes of the response.
    pub response_len: usize,
    /// The phases of the time between `begun` and `ended`, and the resources used.
    pub spent: Spent,
    /// The Java class of the failure, if the call failed.
    pub failure: Option<Cow<'static, str>>,
}

impl EndedCall {
    /// The total time of the call.
    pub fn took(&self) -> Duration {
        self.sent.saturating_sub(self.received)
    }

    /// Whether a response of this size is tracked until it is sent.
    pub(super) fn is_tracked(response_len: usize) -> bool {
        response_len >= TRACKED_LEN
    }
}

impl Watch {
    /// The thresholds that a connection checks for each call to find those that may have to be
    /// reported.
    pub(super) fn bounds(&self) -> WatchBounds {
        WatchBounds {
            nanos: self.slow.map_or(u64::MAX, nanos),
            response_len: self.large_bytes.unwrap_or(usize::MAX).min(TRACKED_LEN - 1),
        }
    }

    /// Whether a call was slow or had a large response.
    fn is_exceeded_by(&self, took: Duration, response_len: usize) -> bool {
        self.slow.is_some_and(|slow| took > slow)
            || self.large_bytes.is_some_and(|large| response_len > large)
    }

    fn report(&self, call: &EndedCall) {
        if self.is_exceeded_by(call.took(), call.response_len) {
            self.observer.ended(call);
        }
    }
}

/// Thresholds at or below which a call need not be reported.
#[derive(Clone, Copy)]
pub(super) struct WatchBounds {
    nanos: u64,
    response_len: usize,
}

impl WatchBounds {
    /// No call is reported.
    pub(super) const NONE: WatchBounds = WatchBounds { nanos: u64::MAX, response_len: usize::MAX };

    /// Whether a call was slow or had a large response, or may become slow while its response is
    /// sent.
    #[inline]
    pub(super) fn are_exceeded(self, took_nanos: u64, response_len: usize) -> bool {
        took_nanos > self.nanos || response_len > self.response_len
    }
}

/// Calls whose large responses are being sent.
#[derive(Default)]
pub(super) struct UnsentLargeResponses {
    // Each call with the total number of sent bytes at which its response is complete.
    calls: VecDeque<(u64, EndedCall)>,
}

impl UnsentLargeResponses {
    /// Whether there are no such calls.
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Adds `call`, whose response is complete when `end` bytes have been sent in total.
    pub(super) fn push(&mut self, end: u64, mut call: EndedCall) {
        debug_assert!(self.calls.back().is_none_or(|(last, _)| *last <= end), "responses are sent in order");
        // Copies: slices would keep the whole request in memory, while the server's budget counts
        // it as released.
        call.method = Method::from(&*call.method);
        call.param = call.param.filter(|param| param.len() <= PARAM_LEN_MAX);
        call.param = call.param.map(|param| Bytes::copy_from_slice(&param));
        self.calls.push_back((end, call));
    }

    /// Reports the calls whose responses are complete. `sent_bytes` is the total number of sent
    /// bytes.
    #[inline]
    pub(super) fn sent(&mut self, sent_bytes: u64, now: Duration, watch: Option<&Watch>) {
        while self.calls.front().is_some_and(|(end, _)| *end <= sent_bytes) {
            self.report_first(now, watch);
        }
    }

    /// Reports the remaining calls, because the client has disconnected.
    pub(super) fn lost(&mut self, now: Duration, watch: Option<&Watch>) {
        while !self.calls.is_empty() {
            self.report_first(now, watch);
        }
    }

    fn report_first(&mut self, now: Duration, watch: Option<&Watch>) {
        if let (Some((_, mut call)), Some(watch)) = (self.calls.pop_front(), watch) {
            call.sent = now;
            watch.report(&call);
        }
    }
}
