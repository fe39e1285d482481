//! Compaction within windows of time (HBase: `DateTieredCompactionPolicy`).
//!
//! A file belongs to the window of its newest cell; one whose newest cell is older than those of the files before it, to
//! the same window as these, so that the files of a window are a run. A minor compaction takes files of one window, the
//! newest first; a major compaction writes a file for each window.

use std::cmp::Ordering;

use crate::compaction::exploring;
use crate::compaction::facts::{FileFacts, Moment};
use crate::compaction::select::Run;
use crate::compaction::settings::Settings;
use crate::compaction::windows::Window;

/// Windows looked at, and so outputs of a major compaction, at most. With HBase's settings sixty years are thirty windows;
/// windows of a second that do not grow would be as many as there are seconds.
const WINDOWS_MAX: usize = 4096;

/// All files, cut into windows.
pub fn all(settings: &Settings, files: &[FileFacts], moment: Moment) -> Run {
    Run { start: 0, count: files.len(), boundaries: boundaries(settings, files, moment) }
}

/// Files of the newest window that has enough.
pub fn some(
    settings: &Settings,
    files: &[FileFacts],
    off_peak: bool,
    may_be_stuck: bool,
    moment: Moment,
) -> Run {
    let oldest = moment.now_ms.checked_sub(settings.windows.file_age_max_ms).unwrap_or(i64::MIN);
    let newest_so_far = newest_so_far(files);
    let mut window = Window::incoming(&settings.windows, moment.now_ms);
    let mut files_min = settings.windows.incoming_files_min;
    // Files before this place are still to be given to windows.
    let mut end = files.len();
    for _ in 0..WINDOWS_MAX {
        if end == 0 || window.compared_to(oldest) == Ordering::Less {
            break;
        }
        // What is newer than the newest window counts for it.
        let is_older = |newest: &i64| window.compared_to(*newest) == Ordering::Greater;
        let start = newest_so_far[..end].iter().rposition(is_older).map_or(0, |older| older + 1);
        if end - start >= files_min {
            let run = of_window(settings, &files[start..end], files_min, off_peak, may_be_stuck, window);
            if run.count > 0 {
                return Run { start: start + run.start, ..run };
            }
        }
        end = start;
        window = window.earlier();
        files_min = settings.files_min;
    }
    Run::default()
}

/// For each file the greatest timestamp in it and those before it.
fn newest_so_far(files: &[FileFacts]) -> Vec<i64> {
    let mut newest = i64::MIN;
    let each = files.iter().map(|file| {
        newest = newest.max(file.max_timestamp);
        newest
    });
    each.collect()
}

fn of_window(
    settings: &Settings,
    files: &[FileFacts],
    files_min: usize,
    off_peak: bool,
    may_be_stuck: bool,
    window: Window,
) -> Run {
    let run = match may_be_stuck {
        true => Run { start: 0, count: files.len(), boundaries: Vec::new() },
        false => exploring::select(settings, files, files_min, off_peak, false),
    };
    let cuts = run.count == files.len() && !settings.windows.single_output;
    let boundaries = if cuts { vec![i64::MIN, window.start_ms()] } else { vec![i64::MIN] };
    Run { boundaries, ..run }
}

/// Where windows begin from the oldest cell to now, the oldest first.
fn boundaries(settings: &Settings, files: &[FileFacts], moment: Moment) -> Vec<i64> {
    let oldest = files.iter().map(|file| file.min_timestamp).min().unwrap_or(i64::MAX);
    let newest = Window::incoming(&settings.windows, moment.now_ms);
    let windows = std::iter::successors(Some(newest), |window| Some(window.earlier()));
    let behind_oldest = windows.take_while(|window| window.compared_to(oldest) == Ordering::Greater);
    let mut boundaries: Vec<i64> = behind_oldest.take(WINDOWS_MAX).map(Window::start_ms).collect();
    boundaries.push(i64::MIN);
    boundaries.reverse();
    boundaries
}

/// Whether a major compaction of files whose time has come would change something.
pub fn is_worth_rewriting(settings: &Settings, files: &[FileFacts], moment: Moment) -> bool {
    let boundaries = boundaries(settings, files, moment);
    let window_of = |timestamp| boundaries.partition_point(|start| *start <= timestamp).max(1) - 1;
    let mut taken = vec![false; boundaries.len()];
    files.iter().any(|file| {
        let is_over = |ttl_ms| moment.now_ms.saturating_sub(file.min_timestamp) >= ttl_ms;
        let (low, high) = (window_of(file.min_timestamp), window_of(file.max_timestamp));
        moment.ttl_ms.is_some_and(is_over)
            || !file.is_major
            || file.is_bulk_loaded
            || low != high
            || std::mem::replace(&mut taken[high], true)
    })
}
