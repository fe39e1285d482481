//! What the servers of a process share: bytes of requests and of answers, connections, calls at work.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::ServerOptions;
use base::budget::Budget;

/// The numbers that all servers of a process keep together, and how often they made somebody go away.
#[derive(Debug)]
pub struct Shared {
    requests: Arc<Budget>,
    answers: Arc<Budget>,
    connections: AtomicUsize,
    calls: AtomicUsize,
    calls_refused: AtomicU64,
    turned_away: AtomicU64,
    stalled: AtomicU64,
}

impl Shared {
    /// Nothing is in use yet; the budgets are those of `options`.
    pub fn new(options: &ServerOptions) -> Arc<Shared> {
        Arc::new(Shared {
            requests: Budget::new(options.queued_bytes_max),
            answers: Budget::new(options.answer_bytes_max),
            connections: AtomicUsize::new(0),
            calls: AtomicUsize::new(0),
            calls_refused: AtomicU64::new(0),
            turned_away: AtomicU64::new(0),
            stalled: AtomicU64::new(0),
        })
    }

    /// Bytes of requests that are read or at work.
    pub fn requests(&self) -> &Arc<Budget> {
        &self.requests
    }

    /// Bytes of answers that are made or not yet taken by their clients.
    pub fn answers(&self) -> &Arc<Budget> {
        &self.answers
    }

    /// Connections now.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Calls that were refused for want of room.
    pub fn calls_refused(&self) -> u64 {
        self.calls_refused.load(Ordering::Relaxed)
    }

    /// Connections that were closed at once for want of room.
    pub fn turned_away(&self) -> u64 {
        self.turned_away.load(Ordering::Relaxed)
    }

    /// Connections that were closed because their clients hardly moved.
    pub fn stalled(&self) -> u64 {
        self.stalled.load(Ordering::Relaxed)
    }

    pub(super) fn admit_connection(&self, max: usize) -> bool {
        let add = |count: usize| (count < max).then_some(count + 1);
        self.connections.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
    }

    pub(super) fn connection_gone(&self) {
        self.connections.fetch_sub(1, Ordering::Relaxed);
    }

    /// A place among at most `max` calls at work; `None` if there is none. Not counted where there is no `max`, for that
    /// costs all cores a write to the same memory.
    pub(super) fn admit_call(self: &Arc<Shared>, max: Option<usize>) -> Option<CallPlace> {
        let Some(max) = max else { return Some(CallPlace(None)) };
        let add = |count: usize| (count < max).then_some(count + 1);
        let admitted = self.calls.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        admitted.ok().map(|_| CallPlace(Some(Arc::clone(self))))
    }

    pub(super) fn count_refused(&self) {
        self.calls_refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_turned_away(&self) {
        self.turned_away.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_stalled(&self) {
        self.stalled.fetch_add(1, Ordering::Relaxed);
    }
}

/// A call's place among those at work; left when dropped.
pub(super) struct CallPlace(Option<Arc<Shared>>);

impl Drop for CallPlace {
    fn drop(&mut self) {
        if let Some(shared) = &self.0 {
            shared.calls.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
