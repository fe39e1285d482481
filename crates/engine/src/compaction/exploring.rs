//! The run that gets rid of most files, of these the smallest (HBase: `ExploringCompactionPolicy`).

use crate::compaction::facts::{FileFacts, bytes_of};
use crate::compaction::select::Run;
use crate::compaction::settings::Settings;

/// A store that may be stuck takes another run only if it is so much better: files are rewritten for it.
const BETTER_BY: f64 = 1.05;

/// Chooses among `files` a run of at least `files_min`. Where the store may be stuck, for it has so many files that
/// flushes wait, the run that gets rid of most files for a byte, or the smallest there is.
pub fn select(
    settings: &Settings,
    files: &[FileFacts],
    files_min: usize,
    off_peak: bool,
    may_be_stuck: bool,
) -> Run {
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
            if best.is_none_or(|best| candidate.is_better_than(best, may_be_stuck)) {
                best = Some(candidate);
            }
        }
    }
    let chosen = best.or(if may_be_stuck { smallest } else { None });
    chosen.map_or_else(Run::default, |chosen| Run {
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
    fn is_better_than(self, best: Candidate, may_be_stuck: bool) -> bool {
        if may_be_stuck && best.bytes > 0 && self.bytes > 0 {
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
