//! Selects only files that are completely expired (HBase: `FIFOCompactionPolicy`). Nothing is ever
//! rewritten.

use crate::compaction::facts::{FileFacts, SelectionTime};

/// The files that are expired or empty, and not being compacted.
pub fn select(files: &[FileFacts], compacting: &[usize], time: SelectionTime) -> Vec<usize> {
    let wanted = |at: &usize| !compacting.contains(at) && is_empty_or_expired(&files[*at], time);
    (0..files.len()).filter(wanted).collect()
}

/// Whether there is such a file.
pub fn is_needed(files: &[FileFacts], time: SelectionTime) -> bool {
    files.iter().any(|file| is_empty_or_expired(file, time))
}

fn is_empty_or_expired(file: &FileFacts, time: SelectionTime) -> bool {
    // A file expires at exactly its TTL, unlike in other policies.
    let is_expired = |ttl_ms| file.max_timestamp <= time.now_ms.saturating_sub(ttl_ms);
    file.entries == 0 || time.ttl_ms.is_some_and(is_expired)
}
