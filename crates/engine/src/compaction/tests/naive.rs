//! HBase's rules again, as plain as possible: tries every run, and walks windows in single steps.

use super::*;

/// The selected indexes, and where outputs are split.
pub(super) fn select(
    settings: &Settings,
    files: &[FileFacts],
    taken: &[usize],
    request: SelectionRequest,
    time: SelectionTime,
) -> (Vec<usize>, Vec<i64>) {
    let all: Vec<usize> = (0..files.len()).collect();
    let any_reference = |indexes: &[usize]| indexes.iter().any(|at| files[*at].is_reference);
    if settings.policy == Policy::Fifo && !any_reference(&all) {
        let is_expired = |at: &usize| {
            let file = &files[*at];
            file.entries == 0 || time.ttl_ms.is_some_and(|ttl| file.max_timestamp <= time.now_ms - ttl)
        };
        return (all.into_iter().filter(|at| is_expired(at) && !taken.contains(at)).collect(), Vec::new());
    }
    let waiting = files.len() - taken.len() + if taken.is_empty() { 0 } else { 1 };
    let stuck = waiting >= settings.blocking_files;
    let bytes_max = if request.off_peak { settings.off_peak_bytes_max } else { settings.bytes_max };
    let mut eligible: Vec<usize> =
        all.into_iter().filter(|at| taken.iter().all(|taken| at > taken)).collect();
    if !(request.major && eligible.len() == files.len()) {
        while eligible.first().is_some_and(|at| !files[*at].is_reference && files[*at].bytes > bytes_max) {
            eligible.remove(0);
        }
    }
    let has_all = eligible.len() == files.len();
    let of_eligible: Vec<FileFacts> = eligible.iter().map(|at| files[*at].clone()).collect();
    let by_person = request.major && has_all && request.by_user;
    let by_time = (request.major && has_all) || is_major_due(settings, &of_eligible, time);
    let major = by_person || (by_time && eligible.len() < settings.files_max);
    let everything = major || any_reference(&eligible);
    let (mut chosen, boundaries) = match (settings.policy, everything) {
        (Policy::DateTiered, true) => {
            let starts = boundaries(settings, &of_eligible, time.now_ms);
            (eligible, starts)
        }
        (Policy::DateTiered, false) => date_tiered(settings, files, &eligible, request.off_peak, stuck, time),
        (_, true) => (eligible, Vec::new()),
        (policy, false) => {
            eligible.retain(|at| !files[*at].exclude_from_minor);
            let run = match policy {
                Policy::RatioBased => ratio_based(settings, files, &eligible, request.off_peak),
                _ => exploring(settings, files, &eligible, settings.files_min, request.off_peak, stuck),
            };
            (if run.len() < settings.files_min { Vec::new() } else { run }, Vec::new())
        }
    };
    if !(major && request.by_user) {
        chosen.truncate(settings.files_max);
    }
    (chosen, boundaries)
}

fn sum(files: &[FileFacts], indexes: &[usize]) -> u64 {
    indexes.iter().map(|at| files[*at].bytes).sum()
}

fn exploring(
    settings: &Settings,
    files: &[FileFacts],
    eligible: &[usize],
    files_min: usize,
    off_peak: bool,
    stuck: bool,
) -> Vec<usize> {
    let (ratio, bytes_max) = match off_peak {
        true => (settings.off_peak_ratio, settings.off_peak_bytes_max),
        false => (settings.ratio, settings.bytes_max),
    };
    let in_ratio = |run: &[usize]| {
        run.len() < 2
            || run.iter().all(|at| {
                let others = sum(files, run) - files[*at].bytes;
                files[*at].bytes as f64 <= others as f64 * ratio
            })
    };
    let (mut best, mut smallest): (Vec<usize>, Vec<usize>) = Default::default();
    for start in 0..eligible.len() {
        for end in start..eligible.len() {
            let run = &eligible[start..=end];
            if run.len() < files_min || run.len() > settings.files_max {
                continue;
            }
            let bytes = sum(files, run);
            if smallest.is_empty() || bytes < sum(files, &smallest) {
                smallest = run.to_vec();
            }
            if bytes > bytes_max || (bytes >= settings.bytes_min && !in_ratio(run)) {
                continue;
            }
            let best_bytes = sum(files, &best);
            let better = if stuck && best_bytes > 0 {
                (best.len() as f64 / best_bytes as f64) * 1.05 < run.len() as f64 / bytes as f64
            } else {
                run.len() > best.len() || (run.len() == best.len() && bytes < best_bytes)
            };
            if better {
                best = run.to_vec();
            }
        }
    }
    if best.is_empty() && stuck { smallest } else { best }
}

fn ratio_based(settings: &Settings, files: &[FileFacts], eligible: &[usize], off_peak: bool) -> Vec<usize> {
    let ratio = if off_peak { settings.off_peak_ratio } else { settings.ratio };
    let mut left = eligible.to_vec();
    while left.len() >= settings.files_min {
        let after: Vec<usize> = left.iter().skip(1).take(settings.files_max - 1).copied().collect();
        let allowed = (sum(files, &after) as f64 * ratio) as u64;
        if files[left[0]].bytes <= settings.bytes_min.max(allowed) {
            break;
        }
        left.remove(0);
    }
    left
}

/// A window as its first timestamp and its length.
type Window = (i64, i64);

fn earlier(settings: &WindowSettings, (start, length): Window, now: i64) -> Window {
    let longer = length * settings.per_tier;
    // Timestamps here are recent enough that windows begin at most slightly before the epoch, so
    // positions can be divided.
    let at_border = (start / length) % settings.per_tier <= 0;
    if at_border && start - longer >= now - settings.tier_age_max_ms {
        let position = (start / length) / settings.per_tier - 1;
        return (position * longer, longer);
    }
    (start - length, length)
}

fn incoming(settings: &WindowSettings, now: i64) -> Window {
    (now / settings.base_ms * settings.base_ms, settings.base_ms)
}

fn date_tiered(
    settings: &Settings,
    files: &[FileFacts],
    eligible: &[usize],
    off_peak: bool,
    stuck: bool,
    time: SelectionTime,
) -> (Vec<usize>, Vec<i64>) {
    let mut window = incoming(&settings.windows, time.now_ms);
    let mut needed = settings.windows.incoming_files_min;
    let mut left = eligible.to_vec();
    let newest = |left: &[usize]| left.iter().map(|at| files[*at].max_timestamp).max();
    while let Some(first) = newest(&left) {
        // The whole window is older than the maximum file age.
        if window.0 + window.1 <= time.now_ms - settings.windows.file_age_max_ms {
            break;
        }
        if first < window.0 {
            window = earlier(&settings.windows, window, time.now_ms);
            needed = settings.files_min;
            continue;
        }
        let mut group = Vec::new();
        while newest(&left).is_some_and(|newest| newest >= window.0) {
            group.insert(0, left.pop().unwrap());
        }
        if group.len() < needed {
            continue;
        }
        let run =
            if stuck { group.clone() } else { exploring(settings, files, &group, needed, off_peak, false) };
        if !run.is_empty() {
            let splits = run.len() == group.len() && !settings.windows.single_output;
            return (run, if splits { vec![i64::MIN, window.0] } else { vec![i64::MIN] });
        }
    }
    (Vec::new(), Vec::new())
}

fn boundaries(settings: &Settings, files: &[FileFacts], now: i64) -> Vec<i64> {
    let oldest = files.iter().map(|file| file.min_timestamp).min().unwrap_or(i64::MAX);
    let mut window = incoming(&settings.windows, now);
    let mut starts = Vec::new();
    while oldest < window.0 {
        starts.insert(0, window.0);
        window = earlier(&settings.windows, window, now);
    }
    starts.insert(0, i64::MIN);
    starts
}

pub(super) fn is_major_due(settings: &Settings, files: &[FileFacts], time: SelectionTime) -> bool {
    if files.is_empty() || settings.major_period_ms == 0 {
        return false;
    }
    let period = major::period_ms(settings, &files[0].name);
    let oldest = files.iter().map(|file| file.modified_ms).min().unwrap() as i64;
    if period == 0 || oldest >= time.now_ms - period {
        return false;
    }
    if settings.policy == Policy::DateTiered {
        let starts = boundaries(settings, files, time.now_ms);
        let window_of = |timestamp: i64| starts.iter().filter(|start| **start <= timestamp).count();
        let crosses = |file: &FileFacts| window_of(file.min_timestamp) != window_of(file.max_timestamp);
        let over = |file: &FileFacts| time.ttl_ms.is_some_and(|ttl| time.now_ms - file.min_timestamp >= ttl);
        let mut windows: Vec<usize> = files.iter().map(|file| window_of(file.max_timestamp)).collect();
        windows.sort_unstable();
        let shared = windows.windows(2).any(|pair| pair[0] == pair[1]);
        let new = |file: &FileFacts| !file.is_major || file.is_bulk_loaded;
        return shared || files.iter().any(|file| crosses(file) || over(file) || new(file));
    }
    files.len() > 1 || time.ttl_ms.is_some_and(|ttl| time.now_ms - files[0].min_timestamp > ttl)
}
