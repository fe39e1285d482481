//! The selection of files (HBase: `SortedCompactionPolicy.selectCompaction`).

use crate::compaction::facts::{FileFacts, SelectionRequest, SelectionTime};
use crate::compaction::settings::{Policy, Settings};
use crate::compaction::{date_tiered, exploring, fifo, major, ratio};

/// Files selected for a compaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Their indexes among the files of the store, ascending.
    pub files: Vec<usize>,
    /// A major compaction was requested or due, and all files are selected.
    pub is_major: bool,
    /// All files of the store are selected, so deleted cells can be dropped.
    pub is_all: bool,
    /// There are references to files of a region that was split, so the compaction is urgent.
    pub after_split: bool,
    /// Selected by the off-peak rules.
    pub is_off_peak: bool,
    /// The smallest timestamp of each output, ascending; the first is the least possible. May be
    /// empty for a single output.
    pub boundaries: Vec<i64>,
}

impl Selection {
    /// An empty selection.
    pub fn none() -> Selection {
        Selection::default()
    }
}

/// The run that a policy takes from the eligible files: how many of the oldest it skips, how many
/// it takes then, and where the output is split.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileRun {
    /// Index of the first file.
    pub start: usize,
    /// Number of files.
    pub count: usize,
    /// As in [`Selection::boundaries`].
    pub boundaries: Vec<i64>,
}

/// Selects among the `files` of a store, from the oldest to the newest. Those at the indexes
/// `compacting` (ascending) are already being compacted.
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
    let may_be_stuck = files.len() - compacting.len() + running >= settings.blocking_files;
    // Start after the newest file that is being compacted, because a run has no gaps.
    let mut first = compacting.last().map_or(0, |last| last + 1);
    if !(request.major && first == 0) {
        first += too_large(settings, &files[first..], request.off_peak);
    }
    let (eligible, has_all) = (&files[first..], first == 0);
    let forced = request.major && has_all;
    let selects_major = (forced && request.by_user)
        || ((forced || major::is_due(settings, eligible, time)) && eligible.len() < settings.files_max);
    let after_split = eligible.iter().any(|file| file.is_reference);
    let mut run = match settings.policy {
        Policy::DateTiered if selects_major || after_split => date_tiered::major(settings, eligible, time),
        Policy::DateTiered => date_tiered::minor(settings, eligible, request.off_peak, may_be_stuck, time),
        _ if selects_major || after_split => {
            FileRun { start: 0, count: eligible.len(), boundaries: Vec::new() }
        }
        policy => of_ratio(policy, settings, eligible, request.off_peak, may_be_stuck),
    };
    if !(selects_major && request.by_user) {
        run.count = run.count.min(settings.files_max);
    }
    let is_all = run.count == files.len() && run.count > 0;
    let selected = indexes_of(eligible, first, &run, selects_major || after_split, settings.policy);
    debug_assert!(selected.len() == run.count, "a run lies within the eligible files");
    debug_assert!(is_contiguous(files, &selected), "a run has no gaps, except excluded files");
    debug_assert!(
        selected.iter().all(|at| !compacting.contains(at)),
        "no file is in two compactions at the same time"
    );
    Selection {
        files: selected,
        is_major: selects_major && is_all,
        is_all,
        after_split,
        is_off_peak: run.count > 0 && !is_all && request.off_peak,
        boundaries: run.boundaries,
    }
}

/// Number of the oldest files that are too large for a compaction.
fn too_large(settings: &Settings, files: &[FileFacts], off_peak: bool) -> usize {
    let is_too_large = |file: &&FileFacts| !file.is_reference && file.bytes > settings.bytes_max(off_peak);
    files.iter().take_while(is_too_large).count()
}

/// Whether a file takes part in minor compactions.
fn takes_part(file: &FileFacts) -> bool {
    !file.exclude_from_minor
}

/// Selects a minor compaction by size, among the files that take part in one.
fn of_ratio(
    policy: Policy,
    settings: &Settings,
    eligible: &[FileFacts],
    off_peak: bool,
    may_be_stuck: bool,
) -> FileRun {
    let taking_part: Vec<FileFacts> = eligible.iter().filter(|file| takes_part(file)).cloned().collect();
    let run = match policy {
        Policy::RatioBased => ratio::select(settings, &taking_part, off_peak),
        _ => exploring::select(settings, &taking_part, settings.files_min, off_peak, may_be_stuck),
    };
    if run.count < settings.files_min { FileRun::default() } else { run }
}

/// The indexes in the store of a run of the eligible files, which begin at `first`.
fn indexes_of(
    eligible: &[FileFacts],
    first: usize,
    run: &FileRun,
    of_all: bool,
    policy: Policy,
) -> Vec<usize> {
    let counts = |file: &FileFacts| of_all || policy == Policy::DateTiered || takes_part(file);
    let counted = eligible.iter().enumerate().filter(|(_, file)| counts(file)).map(|(at, _)| first + at);
    counted.skip(run.start).take(run.count).collect()
}

/// Whether all files between the first and the last of `selected` are selected too, or excluded
/// from minor compactions.
fn is_contiguous(files: &[FileFacts], selected: &[usize]) -> bool {
    let (Some(first), Some(last)) = (selected.first(), selected.last()) else { return true };
    (*first..=*last).all(|at| selected.contains(&at) || !takes_part(&files[at]))
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
