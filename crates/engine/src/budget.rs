//! The memory of all memstores of a server as one number, and who is asked to make it smaller.
//!
//! Every region reports how its memstores grow and shrink; writers are refused while the sum is over the limit
//! (`hbase.regionserver.global.memstore.size`), and flushes begin at the low mark before it. Which region is flushed is
//! the caller's choice; a region only says through [`Maintenance`] that it would like to be.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fs::space::Space;

use crate::region::Region;

/// Bytes of all memstores of a server, with their limit. Shared by its regions.
#[derive(Debug)]
pub struct MemstoreBudget {
    used: AtomicU64,
    limit_bytes: u64,
    low_mark_bytes: u64,
    space: Arc<Space>,
}

impl MemstoreBudget {
    /// A budget of `limit_bytes`, where flushes begin at `low_mark` (a share of one, HBase's default 0.95).
    pub fn new(limit_bytes: u64, low_mark: f64) -> MemstoreBudget {
        let low_mark_bytes = (limit_bytes as f64 * low_mark.clamp(0.0, 1.0)) as u64;
        MemstoreBudget { used: AtomicU64::new(0), limit_bytes, low_mark_bytes, space: Arc::default() }
    }

    /// A budget without a limit, for regions used alone.
    pub fn unlimited() -> MemstoreBudget {
        MemstoreBudget::new(u64::MAX, 1.0)
    }

    /// The same for memstores that are flushed to a disk of this space.
    #[must_use]
    pub fn on_disk(self, space: Arc<Space>) -> MemstoreBudget {
        MemstoreBudget { space, ..self }
    }

    /// The disk that memstores are flushed to.
    pub fn space(&self) -> &Arc<Space> {
        &self.space
    }

    /// Bytes in memstores now.
    pub fn used_bytes(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// The bytes at which writers are refused.
    pub fn limit_bytes(&self) -> u64 {
        self.limit_bytes
    }

    /// Whether writers are refused.
    pub fn is_exhausted(&self) -> bool {
        self.used_bytes() >= self.limit_bytes
    }

    /// Whether regions should be flushed until this is no longer so.
    pub fn is_over_low_mark(&self) -> bool {
        self.used_bytes() >= self.low_mark_bytes
    }

    /// Takes note that a region's memstores went from `before` to `after` bytes.
    pub(crate) fn moved(&self, before: u64, after: u64) {
        // Memstores grow by chunks: most writes change nothing here, and then nothing shared is written.
        if after == before {
            return;
        }
        if after > before {
            self.used.fetch_add(after - before, Ordering::Relaxed);
        } else {
            self.used.fetch_sub(before - after, Ordering::Relaxed);
        }
    }
}

/// Why a region wants to be flushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushReason {
    /// Its memstores are over the flush size.
    Size,
    /// All memstores of the server together are over the low mark.
    Pressure,
    /// The disk is full, and the logs can go once their edits are in files.
    Space,
    /// An earlier flush failed and its snapshot still waits.
    Retry,
}

/// Who does a region's chores: the server's scheduler, or [`Chores`](crate::chores::Chores) for a region used alone.
///
/// Calls come from the write path: they only take note. The same wish is uttered many times.
pub trait Maintenance: Send + Sync + 'static {
    /// The region should be flushed soon.
    fn flush_wanted(&self, region: &Arc<Region>, reason: FlushReason);
    /// A store of the region has enough files to be compacted.
    fn compaction_wanted(&self, region: &Arc<Region>, family: &[u8]);
}

/// Takes note of nothing: flushes and compactions happen by call only (tests, offline tools).
#[derive(Debug, Default)]
pub struct ByCallOnly;

impl Maintenance for ByCallOnly {
    fn flush_wanted(&self, _: &Arc<Region>, _: FlushReason) {}
    fn compaction_wanted(&self, _: &Arc<Region>, _: &[u8]) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_passed_in_both_directions() {
        let budget = MemstoreBudget::new(100, 0.5);
        budget.moved(0, 49);
        assert!(!budget.is_over_low_mark());
        budget.moved(10, 11);
        assert!(budget.is_over_low_mark() && !budget.is_exhausted());
        budget.moved(0, 50);
        assert!(budget.is_exhausted());
        budget.moved(60, 0);
        assert_eq!(budget.used_bytes(), 40);
        assert!(!budget.is_over_low_mark());
    }
}
