//! Files that are over as a whole, and no others (HBase: `FIFOCompactionPolicy`): nothing is ever rewritten.

use crate::compaction::facts::{FileFacts, Moment};

/// The files that are over, or empty.
pub fn select(files: &[FileFacts], compacting: &[usize], moment: Moment) -> Vec<usize> {
    let wanted = |at: &usize| !compacting.contains(at) && is_useless(&files[*at], moment);
    (0..files.len()).filter(wanted).collect()
}

/// Whether there is one.
pub fn is_needed(files: &[FileFacts], moment: Moment) -> bool {
    files.iter().any(|file| is_useless(file, moment))
}

fn is_useless(file: &FileFacts, moment: Moment) -> bool {
    // At the very millisecond, unlike in other policies.
    let is_over = |ttl_ms| file.max_timestamp <= moment.now_ms.saturating_sub(ttl_ms);
    file.entries == 0 || moment.ttl_ms.is_some_and(is_over)
}
