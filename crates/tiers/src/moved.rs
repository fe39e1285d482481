//! Counts of the bytes that moves brought to a volume and took from it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counts of moved bytes since the start.
#[derive(Debug, Default)]
pub(crate) struct MovedBytes {
    arrived: AtomicU64,
    departed: AtomicU64,
}

impl MovedBytes {
    /// Counts a file of `bytes` bytes that was moved to the volume.
    pub(crate) fn add_arrived(&self, bytes: u64) {
        self.arrived.fetch_add(bytes, Relaxed);
    }

    /// Counts a file of `bytes` bytes that was moved to another volume.
    pub(crate) fn add_departed(&self, bytes: u64) {
        self.departed.fetch_add(bytes, Relaxed);
    }

    /// Bytes that were moved to the volume, and bytes that were moved from it.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.arrived.load(Relaxed), self.departed.load(Relaxed))
    }
}
