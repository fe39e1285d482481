//! Selects the run that removes the most files, and of these the smallest (HBase:
//! `ExploringCompactionPolicy`).

use crate::compaction::facts::{FileFacts, bytes_of};
use crate::compaction::select::FileRun;
use crate::compaction::settings::Settings;

/// If the store blocks flushes, a run replaces the best one so far only if it removes more files
/// per byte by this factor, because its files have to be rewritten.
const BETTER_BY: f64 = 1.05;

/// Selects a run of at least `files_min` of `files`. If the store `blocks_flushes`, because it has
/// too many files, this is the run that removes the most files per byte, or else the smallest one.
pub fn select(
    settings: &Settings,
    files: &[FileFacts],
    files_min: usize,
    off_peak: bool,
    blocks_flushes: bool,
) -> FileRun {
    let (mut best, mut smallest): (Option<Candidate>, Option<Candidate>) = (None, None);
    for start in 0..files.len() {
        for count in files_min.max(1)..=settings.files_max.min(files.len() - start) {
            let run = &files[start..start + count];
            let candidate = Candidate { start, count, bytes: bytes_of(run) };
            if smallest.is_none_or(|smallest| candidate.bytes < smallest.bytes) {
                smallest = Some(candidate);
            }
            if candidate.bytes > settings.bytes_max(off_peak) {
                continue;
            }
            if candidate.bytes >= settings.bytes_min && !is_in_ratio(run, settings.ratio(off_peak)) {
                continue;
            }
            if best.is_none_or(|best| candidate.is_better_than(best, blocks_flushes)) {
                best = Some(candidate);
            }
        }
    }
    let chosen = best.or(if blocks_flushes { smallest } else { None });
    chosen.map_or_else(FileRun::default, |chosen| FileRun {
        start: chosen.start,
        count: chosen.count,
        boundaries: Vec::new(),
    })
}

#[derive(Clone, Copy)]
struct Candidate {
    start: usize,
    count: usize,
    bytes: u64,
}

impl Candidate {
    fn is_better_than(self, best: Candidate, blocks_flushes: bool) -> bool {
        if blocks_flushes && best.bytes > 0 && self.bytes > 0 {
            let files_a_byte = |run: Candidate| run.count as f64 / run.bytes as f64;
            return files_a_byte(best) * BETTER_BY < files_a_byte(self);
        }
        self.count > best.count || (self.count == best.count && self.bytes < best.bytes)
    }
}

/// Whether no file is larger than `ratio` times the others together.
pub(super) fn is_in_ratio(files: &[FileFacts], ratio: f64) -> bool {
    let all = bytes_of(files);
    files.len() < 2 || files.iter().all(|file| file.bytes as f64 <= (all - file.bytes) as f64 * ratio)
}
