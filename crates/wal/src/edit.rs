//! Edits to be appended to a log, and the listener that is notified when they are durable.

use std::sync::Arc;

use bytes::Bytes;

use crate::Error;

/// Listener for the outcome of appended edits. For each region it is called in the order of the
/// appends.
///
/// The log's committer waits for each call, so an implementation must be quick and must never
/// block.
pub trait Committed: Send + Sync {
    /// The edit is durable. For an edit that is not logged: all edits before it are durable.
    fn committed(&self, seq_id: u64);
    /// As [`committed`](Committed::committed), for several edits that were appended in sequence. An
    /// implementation may override it to handle them in one step.
    fn committed_together(&self, edits: &[Edit]) {
        edits.iter().for_each(|edit| self.committed(edit.seq_id));
    }
    /// The log could not make the edit durable and will not retry it. The edit may still be in the
    /// log.
    fn failed(&self, seq_id: u64, error: &Error);
}

/// Maximum number of clusters of an edit. An entry's key has a limited length, and an edit that
/// does not fit would end its region, so callers refuse more.
pub const CLUSTER_IDS_MAX: usize = 1000;

/// The replication scope of a family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The family.
    pub family: Bytes,
    /// HBase's code: 1 (`GLOBAL`) or 2 (`SERIAL`, replicated in order). Families of scope 0 are
    /// omitted.
    pub code: u32,
}

/// A change of one region: the content of one log entry.
#[derive(Clone)]
pub struct Edit {
    /// Encoded name of the region.
    pub region: Arc<str>,
    /// `namespace:table`, or `table` in the default namespace.
    pub table: Bytes,
    /// Sequence id, greater than those of all earlier edits of the region.
    pub seq_id: u64,
    /// Time of the change, milliseconds since the epoch.
    pub write_time_ms: u64,
    /// The cells, each `u32 length | KeyValue`.
    pub cells: Bytes,
    /// Number of cells.
    pub cell_count: u32,
    /// Nonce group and nonce of the client's operation; 0 for none.
    pub nonce: (u64, u64),
    /// Families that are replicated; usually none.
    pub scopes: Arc<[Scope]>,
    /// Clusters that already have the edit, each a UUID with its most significant half first. Only
    /// edits that came by replication have some.
    pub cluster_ids: Option<Arc<[(u64, u64)]>>,
    /// False for `SKIP_WAL`: the edit passes through the queue but is not written.
    pub logged: bool,
    /// True for `FSYNC_WAL`: the edit must survive power loss, also if the log guarantees less for
    /// other edits.
    pub forced: bool,
    /// Listener for the outcome.
    pub listener: Arc<dyn Committed>,
}

// Approximate size of an edit without its cells.
const EDIT_OVERHEAD_BYTES: u64 = 256;

impl Edit {
    /// Bytes that the edit occupies in the queue.
    pub fn queued_bytes(&self) -> u64 {
        EDIT_OVERHEAD_BYTES + self.cells.len() as u64
    }
}
