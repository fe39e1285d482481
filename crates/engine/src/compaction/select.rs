//! The choice of files (HBase: `SortedCompactionPolicy.selectCompaction`).

use crate::compaction::facts::{Ask, FileFacts, Moment};
use crate::compaction::settings::{Policy, Settings};
use crate::compaction::{date_tiered, exploring, fifo, major, ratio};

/// Files to be compacted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// Their places among the files of the store, ascending.
    pub files: Vec<usize>,
    /// What was wanted as a major compaction and has all files.
    pub is_major: bool,
    /// All files of the store: what is deleted can go.
    pub is_all: bool,
    /// There are references to files of a region that was split: urgent.
    pub after_split: bool,
    /// Made by the rules of an hour of little load.
    pub is_off_peak: bool,
    /// The smallest timestamps of the outputs, ascending, the first one the smallest of all; none for a single output.
    pub boundaries: Vec<i64>,
}

impl Choice {
    /// Nothing.
    pub fn none() -> Choice {
        Choice::default()
    }
}

/// What a policy takes from the eligible files: how many of the oldest are passed over, how many are taken then, and
/// where the output is cut.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// The first one.
    pub start: usize,
    /// How many.
    pub count: usize,
    /// As in [`Choice::boundaries`].
    pub boundaries: Vec<i64>,
}

/// Chooses among the `files` of a store, from the oldest to the newest, of which those in the places `compacting`
/// (ascending) are being compacted.
pub fn select(
    settings: &Settings,
    files: &[FileFacts],
    compacting: &[usize],
    ask: Ask,
    moment: Moment,
) -> Choice {
    let has_references = files.iter().any(|file| file.is_reference);
    if settings.policy == Policy::Fifo && !has_references {
        return Choice { files: fifo::select(files, compacting, moment), ..Choice::none() };
    }
    let running = usize::from(!compacting.is_empty());
    let may_be_stuck = files.len() - compacting.len() + running >= settings.blocking_files;
    // Behind the newest that is being compacted: a run has no gap.
    let mut first = compacting.last().map_or(0, |last| last + 1);
    if !(ask.major && first == 0) {
        first += too_large(settings, &files[first..], ask.off_peak);
    }
    let (eligible, has_all) = (&files[first..], first == 0);
    let forced = ask.major && has_all;
    let wants_major = (forced && ask.by_user)
        || ((forced || major::is_due(settings, eligible, moment)) && eligible.len() < settings.files_max);
    let after_split = eligible.iter().any(|file| file.is_reference);
    let mut run = match settings.policy {
        Policy::DateTiered if wants_major || after_split => date_tiered::all(settings, eligible, moment),
        Policy::DateTiered => date_tiered::some(settings, eligible, ask.off_peak, may_be_stuck, moment),
        _ if wants_major || after_split => Run { start: 0, count: eligible.len(), boundaries: Vec::new() },
        policy => of_ratio(policy, settings, eligible, ask.off_peak, may_be_stuck),
    };
    if !(wants_major && ask.by_user) {
        run.count = run.count.min(settings.files_max);
    }
    let is_all = run.count == files.len() && run.count > 0;
    Choice {
        files: places(eligible, first, &run, wants_major || after_split, settings.policy),
        is_major: wants_major && is_all,
        is_all,
        after_split,
        is_off_peak: run.count > 0 && !is_all && ask.off_peak,
        boundaries: run.boundaries,
    }
}

/// How many of the oldest files are too large for a compaction.
fn too_large(settings: &Settings, files: &[FileFacts], off_peak: bool) -> usize {
    let is_too_large = |file: &&FileFacts| !file.is_reference && file.bytes > settings.bytes_max(off_peak);
    files.iter().take_while(is_too_large).count()
}

/// Whether a file takes part in minor compactions.
fn takes_part(file: &FileFacts) -> bool {
    !file.exclude_from_minor
}

/// A minor compaction by sizes, of the files that take part in one.
fn of_ratio(
    policy: Policy,
    settings: &Settings,
    eligible: &[FileFacts],
    off_peak: bool,
    may_be_stuck: bool,
) -> Run {
    let taking_part: Vec<FileFacts> = eligible.iter().filter(|file| takes_part(file)).cloned().collect();
    let run = match policy {
        Policy::RatioBased => ratio::select(settings, &taking_part, off_peak),
        _ => exploring::select(settings, &taking_part, settings.files_min, off_peak, may_be_stuck),
    };
    if run.count < settings.files_min { Run::default() } else { run }
}

/// The places in the store of a run of the eligible files, which begin at `first`.
fn places(eligible: &[FileFacts], first: usize, run: &Run, of_all: bool, policy: Policy) -> Vec<usize> {
    let counts = |file: &FileFacts| of_all || policy == Policy::DateTiered || takes_part(file);
    let counted = eligible.iter().enumerate().filter(|(_, file)| counts(file)).map(|(at, _)| first + at);
    counted.skip(run.start).take(run.count).collect()
}

/// Whether the store has enough files to be looked at (HBase: `needsCompaction`).
pub fn is_needed(settings: &Settings, files: &[FileFacts], compacting: usize, moment: Moment) -> bool {
    let has_references = files.iter().any(|file| file.is_reference);
    match settings.policy {
        Policy::Fifo if !has_references => fifo::is_needed(files, moment),
        Policy::DateTiered => date_tiered::some(settings, files, false, true, moment).count > 0,
        _ => files.len().saturating_sub(compacting) >= settings.files_min,
    }
}

/// Whether a major compaction of all files is due.
pub fn is_major_due(settings: &Settings, files: &[FileFacts], moment: Moment) -> bool {
    let has_references = files.iter().any(|file| file.is_reference);
    (settings.policy != Policy::Fifo || has_references) && major::is_due(settings, files, moment)
}
