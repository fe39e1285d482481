//! Selects the files of a compaction (HBase: `SortedCompactionPolicy.selectCompaction`).

use crate::compaction::facts::{FileFacts, SelectionRequest, SelectionTime};
use crate::compaction::settings::{Policy, Settings};
use crate::compaction::{date_tiered, exploring, fifo, major, ratio};

/// Files selected for a compaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Indexes of the files among all files of the store, ascending.
    pub files: Vec<usize>,
    /// Whether a major compaction was requested or due, and all files are selected.
    pub is_major: bool,
    /// Whether all files of the store are selected, so that deleted cells can be dropped.
    pub is_all: bool,
    /// Whether the files were selected with the off-peak settings.
    pub is_off_peak: bool,
    /// The lower bound of the timestamps in each output file, ascending; the first is `i64::MIN`.
    /// Empty or one element: there is a single output file.
    pub boundaries: Vec<i64>,
}

impl Selection {
    /// An empty selection.
    pub fn none() -> Selection {
        Selection::default()
    }
}

/// A run of adjacent files that a policy selects, and how the output is split.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileRun {
    /// Index of the first file, among the files that the policy received.
    pub start: usize,
    /// Number of files.
    pub count: usize,
    /// As in [`Selection::boundaries`].
    pub boundaries: Vec<i64>,
}

/// Selects the files of a compaction. `files` are all files of the store, from the oldest to the
/// newest. Those at the indexes `compacting` (ascending) are already being compacted.
pub fn select(
    settings: &Settings,
    files: &[FileFacts],
    compacting: &[usize],
    request: SelectionRequest,
    time: SelectionTime,
) -> Selection {
    debug_assert!(
        compacting.is_sorted_by(|left, right| left < right),
        "the files that are being compacted are in the order of the store"
    );
    let has_references = files.iter().any(|file| file.is_reference);
    if settings.policy == Policy::Fifo && !has_references {
        return Selection { files: fifo::select(files, compacting, time), ..Selection::none() };
    }
    let running = usize::from(!compacting.is_empty());
    // Flushes wait if the store has too many files. A running compaction counts as one file, its
    // output.
    let blocks_flushes = files.len() - compacting.len() + running >= settings.blocking_files;
    // The candidates start after the newest file that is being compacted, because a run has no
    // gaps.
    let mut first = compacting.last().map_or(0, |last| last + 1);
    if !(request.major && first == 0) {
        first += count_too_large(settings, &files[first..], request.off_peak);
    }
    let (candidates, all_are_candidates) = (&files[first..], first == 0);
    let forced = request.major && all_are_candidates;
    let selects_major = (forced && request.by_user)
        || ((forced || major::is_due(settings, candidates, time)) && candidates.len() < settings.files_max);
    let candidates_have_references = candidates.iter().any(|file| file.is_reference);
    let mut run = match settings.policy {
        Policy::DateTiered if selects_major || candidates_have_references => {
            date_tiered::major(settings, candidates, time)
        }
        Policy::DateTiered => {
            date_tiered::minor(settings, candidates, request.off_peak, blocks_flushes, time)
        }
        _ if selects_major || candidates_have_references => {
            FileRun { start: 0, count: candidates.len(), boundaries: Vec::new() }
        }
        policy => select_by_size(policy, settings, candidates, request.off_peak, blocks_flushes),
    };
    if !(selects_major && request.by_user) {
        run.count = run.count.min(settings.files_max);
    }
    let is_all = run.count == files.len() && run.count > 0;
    let selected =
        indexes_of(candidates, first, &run, selects_major || candidates_have_references, settings.policy);
    debug_assert!(selected.len() == run.count, "a run lies within the candidates");
    debug_assert!(is_contiguous(files, &selected), "a run has no gaps, except excluded files");
    debug_assert!(
        selected.iter().all(|at| !compacting.contains(at)),
        "no file is in two compactions at the same time"
    );
    Selection {
        files: selected,
        is_major: selects_major && is_all,
        is_all,
        is_off_peak: run.count > 0 && !is_all && request.off_peak,
        boundaries: run.boundaries,
    }
}

/// Number of files at the start of `files` that are too large for a compaction.
fn count_too_large(settings: &Settings, files: &[FileFacts], off_peak: bool) -> usize {
    let is_too_large = |file: &&FileFacts| !file.is_reference && file.bytes > settings.bytes_max(off_peak);
    files.iter().take_while(is_too_large).count()
}

/// Whether a file is allowed in minor compactions.
fn allows_minor(file: &FileFacts) -> bool {
    !file.exclude_from_minor
}

/// Selects the files of a minor compaction by their sizes.
fn select_by_size(
    policy: Policy,
    settings: &Settings,
    candidates: &[FileFacts],
    off_peak: bool,
    blocks_flushes: bool,
) -> FileRun {
    let minor_candidates: Vec<FileFacts> =
        candidates.iter().filter(|file| allows_minor(file)).cloned().collect();
    let run = match policy {
        Policy::RatioBased => ratio::select(settings, &minor_candidates, off_peak),
        _ => exploring::select(settings, &minor_candidates, settings.files_min, off_peak, blocks_flushes),
    };
    if run.count < settings.files_min { FileRun::default() } else { run }
}

/// Converts a run of `candidates` into indexes in the list of all files of the store. `first` is
/// the index of the first candidate in that list. Unless `includes_all`, a run of a size-based
/// policy skips files that are excluded from minor compactions.
fn indexes_of(
    candidates: &[FileFacts],
    first: usize,
    run: &FileRun,
    includes_all: bool,
    policy: Policy,
) -> Vec<usize> {
    let is_counted = |file: &FileFacts| includes_all || policy == Policy::DateTiered || allows_minor(file);
    let counted =
        candidates.iter().enumerate().filter(|(_, file)| is_counted(file)).map(|(at, _)| first + at);
    counted.skip(run.start).take(run.count).collect()
}

/// Whether all files between the first and the last of `selected` are selected too, or excluded
/// from minor compactions.
fn is_contiguous(files: &[FileFacts], selected: &[usize]) -> bool {
    let (Some(first), Some(last)) = (selected.first(), selected.last()) else { return true };
    (*first..=*last).all(|at| selected.contains(&at) || !allows_minor(&files[at]))
}

/// Whether the store has enough files to consider a compaction (HBase: `needsCompaction`).
pub fn is_needed(settings: &Settings, files: &[FileFacts], compacting: usize, time: SelectionTime) -> bool {
    let has_references = files.iter().any(|file| file.is_reference);
    match settings.policy {
        Policy::Fifo if !has_references => fifo::is_needed(files, time),
        Policy::DateTiered => date_tiered::minor(settings, files, false, true, time).count > 0,
        _ => files.len().saturating_sub(compacting) >= settings.files_min,
    }
}

/// Whether a major compaction of all files is due.
pub fn is_major_due(settings: &Settings, files: &[FileFacts], time: SelectionTime) -> bool {
    let has_references = files.iter().any(|file| file.is_reference);
    (settings.policy != Policy::Fifo || has_references) && major::is_due(settings, files, time)
}
