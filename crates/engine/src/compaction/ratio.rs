//! Selects the newest files, from the first one that is not much larger than those after it (HBase:
//! `RatioBasedCompactionPolicy`).

use crate::compaction::facts::{FileFacts, bytes_of};
use crate::compaction::select::FileRun;
use crate::compaction::settings::Settings;

/// Selects a tail of `files`. It may have too few for a compaction.
pub fn select(settings: &Settings, files: &[FileFacts], off_peak: bool) -> FileRun {
    let mut start = 0;
    while files.len() - start >= settings.files_min {
        let after = bytes_after(files, start, settings.files_max) as f64 * settings.ratio(off_peak);
        if files[start].bytes <= settings.bytes_min.max(after as u64) {
            break;
        }
        start += 1;
    }
    FileRun { start, count: files.len() - start, boundaries: Vec::new() }
}

/// Bytes of the files that would be compacted together with the one at `at`.
fn bytes_after(files: &[FileFacts], at: usize, files_max: usize) -> u64 {
    let end = (at + files_max.max(1)).min(files.len());
    bytes_of(files.get(at + 1..end).unwrap_or(&[]))
}
