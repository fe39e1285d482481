//! The newest files, from the first on that is not much larger than those behind it (HBase:
//! `RatioBasedCompactionPolicy`).

use crate::compaction::facts::{FileFacts, bytes_of};
use crate::compaction::select::Run;
use crate::compaction::settings::Settings;

/// Chooses the tail of `files`; too few of them are no compaction.
pub fn select(settings: &Settings, files: &[FileFacts], off_peak: bool) -> Run {
    let mut start = 0;
    while files.len() - start >= settings.files_min {
        let behind = bytes_behind(files, start, settings.files_max) as f64 * settings.ratio(off_peak);
        if files[start].bytes <= settings.bytes_min.max(behind as u64) {
            break;
        }
        start += 1;
    }
    Run { start, count: files.len() - start, boundaries: Vec::new() }
}

/// Bytes of the files that would be compacted together with the one at `at`.
fn bytes_behind(files: &[FileFacts], at: usize, files_max: usize) -> u64 {
    let end = (at + files_max.max(1)).min(files.len());
    bytes_of(files.get(at + 1..end).unwrap_or(&[]))
}
