//! The memory of all memstores of a server as one number.
//!
//! Every region reports how its memstores grow and shrink. Flushes begin at a low mark. While a
//! flush takes long, writers are slowed down ([`write_pace`](crate::write_pace)). They are refused
//! while the sum exceeds the limit (`hbase.regionserver.global.memstore.size`). The caller chooses
//! which region is flushed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fs::space::Space;

use crate::write_pace::WritePace;

/// Bytes of all memstores of a server, and their limit. Shared by its regions.
#[derive(Debug)]
pub struct MemstoreBudget {
    used: AtomicU64,
    limit_bytes: u64,
    low_mark_bytes: u64,
    space: Arc<Space>,
    pace: WritePace,
}

impl MemstoreBudget {
    /// A budget of `limit_bytes`. Flushes begin at `low_mark`, a fraction of the limit (HBase's
    /// default is 0.95).
    pub fn new(limit_bytes: u64, low_mark: f64) -> MemstoreBudget {
        let low_mark_bytes = (limit_bytes as f64 * low_mark.clamp(0.0, 1.0)) as u64;
        let (used, space, pace) = (AtomicU64::new(0), Arc::default(), WritePace::default());
        MemstoreBudget { used, limit_bytes, low_mark_bytes, space, pace }
    }

    /// A budget without a limit, for regions used without a server.
    pub fn unlimited() -> MemstoreBudget {
        MemstoreBudget::new(u64::MAX, 1.0)
    }

    /// The same budget for memstores that are flushed to the disk of this space.
    #[must_use]
    pub fn on_disk(self, space: Arc<Space>) -> MemstoreBudget {
        MemstoreBudget { space, ..self }
    }

    /// The disk that memstores are flushed to.
    pub fn space(&self) -> &Arc<Space> {
        &self.space
    }

    /// The pace of writers.
    pub fn pace(&self) -> &WritePace {
        &self.pace
    }

    /// Seconds that flushing all memstores takes; `None` before the first flush.
    pub fn flush_seconds(&self) -> Option<f64> {
        self.pace.flush_speed().map(|speed| self.used_bytes() as f64 / speed)
    }

    /// Bytes in memstores now.
    pub fn used_bytes(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// The number of bytes at which writers are refused.
    pub fn limit_bytes(&self) -> u64 {
        self.limit_bytes
    }

    /// Whether writers are refused.
    pub fn is_exhausted(&self) -> bool {
        self.used_bytes() >= self.limit_bytes
    }

    /// Whether regions should be flushed. Flushing stops when this turns false.
    pub fn is_above_low_mark(&self) -> bool {
        self.used_bytes() >= self.low_mark_bytes
    }

    /// Records that a region's memstores went from `before` to `after` bytes.
    pub(crate) fn resized(&self, before: u64, after: u64) {
        // Memstores grow by chunks, so most writes change nothing here and then write no shared
        // memory.
        if after == before {
            return;
        }
        if after > before {
            self.used.fetch_add(after - before, Ordering::Relaxed);
        } else {
            let used = self.used.fetch_sub(before - after, Ordering::Relaxed);
            debug_assert!(used >= before - after, "a region gives back only what it took");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_crossed_in_both_directions() {
        let budget = MemstoreBudget::new(100, 0.5);
        budget.resized(0, 49);
        assert!(!budget.is_above_low_mark());
        budget.resized(10, 11);
        assert!(budget.is_above_low_mark() && !budget.is_exhausted());
        budget.resized(0, 50);
        assert!(budget.is_exhausted());
        budget.resized(60, 0);
        assert_eq!(budget.used_bytes(), 40);
        assert!(!budget.is_above_low_mark());
    }
}
