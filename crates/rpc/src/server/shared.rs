//! Limits shared by the servers of a process: bytes of requests and of responses, connections,
//! running calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::ServerOptions;
use base::budget::Budget;

/// Calls of a higher priority have their own limit (`HConstants.QOS_THRESHOLD`). HBase's clients
/// and masters request 200 for system tables and 100 for administration, and 0 for user tables.
const QOS_THRESHOLD: u32 = 10;

/// The shared limits of all servers of a process, and counters of rejected calls and closed
/// connections.
#[derive(Debug)]
pub struct Shared {
    request_budget: Arc<Budget>,
    response_budget: Arc<Budget>,
    connections: AtomicUsize,
    calls: Arc<AtomicUsize>,
    system_calls: Arc<AtomicUsize>,
    calls_refused: AtomicU64,
    connections_rejected: AtomicU64,
    stalled: AtomicU64,
}

impl Shared {
    /// Creates unused limits with the budgets of `options`.
    pub fn new(options: &ServerOptions) -> Arc<Shared> {
        Arc::new(Shared {
            request_budget: Budget::new(options.queued_bytes_max),
            response_budget: Budget::new(options.response_bytes_max),
            connections: AtomicUsize::new(0),
            calls: Arc::default(),
            system_calls: Arc::default(),
            calls_refused: AtomicU64::new(0),
            connections_rejected: AtomicU64::new(0),
            stalled: AtomicU64::new(0),
        })
    }

    /// Budget for bytes of requests that have been read or are being processed.
    pub fn request_budget(&self) -> &Arc<Budget> {
        &self.request_budget
    }

    /// Budget for bytes of responses that are being built or have not been sent.
    pub fn response_budget(&self) -> &Arc<Budget> {
        &self.response_budget
    }

    /// Current number of connections.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Number of calls rejected because a limit was reached.
    pub fn calls_refused(&self) -> u64 {
        self.calls_refused.load(Ordering::Relaxed)
    }

    /// Number of connections closed immediately because a limit was reached.
    pub fn connections_rejected(&self) -> u64 {
        self.connections_rejected.load(Ordering::Relaxed)
    }

    /// Number of connections closed because their clients made almost no progress.
    pub fn stalled(&self) -> u64 {
        self.stalled.load(Ordering::Relaxed)
    }

    pub(super) fn admit_connection(&self, max: usize) -> bool {
        let add = |count: usize| (count < max).then_some(count + 1);
        self.connections.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
    }

    pub(super) fn release_connection(&self) {
        let before = self.connections.fetch_sub(1, Ordering::Relaxed);
        debug_assert!(before > 0, "a connection is counted until it has gone");
    }

    /// A slot among at most `max` running calls; `None` if all are in use. Calls of high priority
    /// have `max` slots of their own, as in HBase's priority queue. So calls for user tables cannot
    /// shut out those of masters, or lookups in `hbase:meta`. Without a `max`, calls are not
    /// counted, so that the cores do not all write to the same memory.
    pub(super) fn admit_call(&self, max: Option<usize>, priority: u32) -> Option<CallSlot> {
        let Some(max) = max else { return Some(CallSlot(None)) };
        let calls = if priority > QOS_THRESHOLD { &self.system_calls } else { &self.calls };
        let add = |count: usize| (count < max).then_some(count + 1);
        let admitted = calls.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        admitted.ok().map(|_| CallSlot(Some(Arc::clone(calls))))
    }

    pub(super) fn count_refused(&self) {
        self.calls_refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_connection_rejected(&self) {
        self.connections_rejected.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_stalled(&self) {
        self.stalled.fetch_add(1, Ordering::Relaxed);
    }
}

/// A call's slot among the running calls; released when dropped.
pub(super) struct CallSlot(Option<Arc<AtomicUsize>>);

impl Drop for CallSlot {
    fn drop(&mut self) {
        if let Some(calls) = &self.0 {
            let before = calls.fetch_sub(1, Ordering::Relaxed);
            debug_assert!(before > 0, "a call is counted until it has ended");
        }
    }
}
