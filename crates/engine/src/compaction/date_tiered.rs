//! Compaction within time windows (HBase: `DateTieredCompactionPolicy`).
//!
//! A file belongs to the window of its newest cell. If that cell is older than the newest one of
//! the files before it, it belongs to their window, so that the files of a window are a run. A
//! minor compaction takes files of one window, the newest window first. A major compaction writes a
//! file for each window.

use std::cmp::Ordering;

use crate::compaction::exploring;
use crate::compaction::facts::{FileFacts, SelectionTime};
use crate::compaction::select::FileRun;
use crate::compaction::settings::Settings;
use crate::compaction::windows::Window;

/// Maximum number of windows that are checked, and so of outputs of a major compaction. With
/// HBase's settings sixty years are thirty windows. Windows of one second that do not grow would be
/// as many as there are seconds.
const WINDOWS_MAX: usize = 4096;

/// All files, split into windows.
pub fn major(settings: &Settings, files: &[FileFacts], time: SelectionTime) -> FileRun {
    FileRun { start: 0, count: files.len(), boundaries: boundaries(settings, files, time) }
}

/// Files of the newest window that has enough.
pub fn minor(
    settings: &Settings,
    files: &[FileFacts],
    off_peak: bool,
    blocks_flushes: bool,
    time: SelectionTime,
) -> FileRun {
    let oldest = time.now_ms.checked_sub(settings.windows.file_age_max_ms).unwrap_or(i64::MIN);
    let newest_so_far = newest_so_far(files);
    let mut window = Window::incoming(&settings.windows, time.now_ms);
    let mut files_min = settings.windows.incoming_files_min;
    // Files before this index are not assigned to a window yet.
    let mut end = files.len();
    for _ in 0..WINDOWS_MAX {
        if end == 0 || window.compared_to(oldest) == Ordering::Less {
            break;
        }
        // Files that are newer than the newest window belong to it.
        let is_older = |newest: &i64| window.compared_to(*newest) == Ordering::Greater;
        let start = newest_so_far[..end].iter().rposition(is_older).map_or(0, |older| older + 1);
        if end - start >= files_min {
            let run = of_window(settings, &files[start..end], files_min, off_peak, blocks_flushes, window);
            if run.count > 0 {
                debug_assert!(start + run.start + run.count <= end, "a run lies within its window");
                return FileRun { start: start + run.start, ..run };
            }
        }
        end = start;
        window = window.earlier();
        files_min = settings.files_min;
    }
    FileRun::default()
}

/// For each file, the greatest timestamp in it and in the files before it.
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
    blocks_flushes: bool,
    window: Window,
) -> FileRun {
    let run = match blocks_flushes {
        true => FileRun { start: 0, count: files.len(), boundaries: Vec::new() },
        false => exploring::select(settings, files, files_min, off_peak, false),
    };
    let splits = run.count == files.len() && !settings.windows.single_output;
    let boundaries = if splits { vec![i64::MIN, window.start_ms()] } else { vec![i64::MIN] };
    FileRun { boundaries, ..run }
}

/// The starts of the windows from the oldest cell to now, the oldest first.
fn boundaries(settings: &Settings, files: &[FileFacts], time: SelectionTime) -> Vec<i64> {
    let oldest = files.iter().map(|file| file.min_timestamp).min().unwrap_or(i64::MAX);
    let newest = Window::incoming(&settings.windows, time.now_ms);
    let windows = std::iter::successors(Some(newest), |window| Some(window.earlier()));
    let after_oldest = windows.take_while(|window| window.compared_to(oldest) == Ordering::Greater);
    let mut boundaries: Vec<i64> = after_oldest.take(WINDOWS_MAX).map(Window::start_ms).collect();
    boundaries.push(i64::MIN);
    boundaries.reverse();
    boundaries
}

/// Whether a major compaction that is due would change anything.
pub fn is_worth_rewriting(settings: &Settings, files: &[FileFacts], time: SelectionTime) -> bool {
    let boundaries = boundaries(settings, files, time);
    let window_of = |timestamp| boundaries.partition_point(|start| *start <= timestamp).max(1) - 1;
    let mut taken = vec![false; boundaries.len()];
    files.iter().any(|file| {
        let is_expired = |ttl_ms| time.now_ms.saturating_sub(file.min_timestamp) >= ttl_ms;
        let (low, high) = (window_of(file.min_timestamp), window_of(file.max_timestamp));
        time.ttl_ms.is_some_and(is_expired)
            || !file.is_major
            || file.is_bulk_loaded
            || low != high
            || std::mem::replace(&mut taken[high], true)
    })
}
