//! The interface through which regions request flushes and compactions.

use std::sync::Arc;

use crate::region::Region;

/// Why a region requests a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushReason {
    /// Its memstores exceed the flush size.
    Size,
    /// All memstores of the server together exceed the low mark. The region with the largest one
    /// should be flushed, whichever region makes the request.
    Pressure,
    /// Its edits are so old that they keep logs that could be removed otherwise.
    Age,
    /// The disk is full. Logs can be deleted once their edits are in files.
    Space,
    /// An earlier flush failed, and its snapshot is still in memory.
    Retry,
    /// It replayed edits of a dead server, whose logs cannot be removed before the flush.
    Recovery,
}

/// Runs the background work of regions: the server's scheduler, or
/// [`Chores`](crate::chores::Chores) for a region without a server.
///
/// The write path calls these methods, so they only record the request. A request is repeated many
/// times.
pub trait Maintenance: Send + Sync + 'static {
    /// Requests a flush of the region soon.
    fn request_flush(&self, region: &Arc<Region>, reason: FlushReason);
    /// Reports that a store of the region has enough files to compact.
    fn request_compaction(&self, region: &Arc<Region>, family: &[u8]);
}

/// Ignores all requests: flushes and compactions run only by explicit call (tests, offline tools).
#[derive(Debug, Default)]
pub struct NoMaintenance;

impl Maintenance for NoMaintenance {
    fn request_flush(&self, _: &Arc<Region>, _: FlushReason) {}
    fn request_compaction(&self, _: &Arc<Region>, _: &[u8]) {}
}
