//! What is appended to a log, and who is told when it is safe.

use std::sync::Arc;

use bytes::Bytes;

use crate::Error;

/// Is told what became of the edits appended for it, for each region in the order of the appends.
///
/// Called from the log's committer, which waits: an implementation does little and never blocks.
pub trait Committed: Send + Sync {
    /// The edit survives a power cut (one that is not logged: all before it does).
    fn committed(&self, seq_id: u64);
    /// The same of several edits that were appended one behind the other. Who need not know of each makes it one step.
    fn committed_together(&self, edits: &[Edit]) {
        edits.iter().for_each(|edit| self.committed(edit.seq_id));
    }
    /// The edit is not known to be safe and nothing more will be done for it; it may be in the log or not.
    fn failed(&self, seq_id: u64, error: &Error);
}

/// Where a family's changes are replicated to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The family.
    pub family: Bytes,
    /// HBase's code: 1 to peers (`GLOBAL`), 2 in order (`SERIAL`); families of scope 0 are left out.
    pub code: u32,
}

/// A change of one region: what one log entry holds.
#[derive(Clone)]
pub struct Edit {
    /// Encoded name of the region.
    pub region: Arc<str>,
    /// `namespace:table`, or `table` in the default namespace.
    pub table: Bytes,
    /// Orders the edits of the region: greater than those of all edits appended before.
    pub seq_id: u64,
    /// When it was made, milliseconds since the epoch.
    pub write_time_ms: u64,
    /// The cells, each `u32 length | KeyValue`.
    pub cells: Bytes,
    /// How many cells there are.
    pub cell_count: u32,
    /// Nonce group and nonce of the client's operation; 0 for none.
    pub nonce: (u64, u64),
    /// Families that are replicated; usually none.
    pub scopes: Arc<[Scope]>,
    /// False for `SKIP_WAL`: the edit takes its turn in the queue but leaves no bytes.
    pub logged: bool,
    /// Who is told.
    pub committed: Arc<dyn Committed>,
}

// What an edit takes beside its cells, about.
const EDIT_OVERHEAD_BYTES: u64 = 256;

impl Edit {
    /// Bytes that the edit takes in the queue.
    pub fn queued_bytes(&self) -> u64 {
        EDIT_OVERHEAD_BYTES + self.cells.len() as u64
    }
}
