//! Tracks which logs are still needed, from the highest sequence id of each region in each log and
//! the sequence ids up to which the regions are flushed.
//!
//! A log is needed while it has an edit that is not in a store file. Markers are never flushed, so
//! a log is not needed for its markers. Invariant: a log is released for archiving once, after the
//! last write to it.

use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fs::FilePath;

use crate::record::RecordedLog;

/// What happens to a log of an earlier run once its entries are no longer needed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OldLogAction {
    /// It is moved to the archive.
    #[default]
    Archive,
    /// It is moved to this directory, because it is damaged and an operator may examine it.
    MoveTo(FilePath),
    /// It stays in place, because its unreadable parts may still be needed.
    Stay,
}

/// A log of an earlier run. It is replayed in place and archived once all its edits are flushed.
#[derive(Clone, Debug)]
pub struct OldLog {
    /// Its path.
    pub path: FilePath,
    /// Its length up to the end of its last entry, in bytes.
    pub bytes: u64,
    /// The highest sequence id of each region that has edits in it.
    pub highest: HashMap<Arc<str>, u64>,
    /// What happens to it once its entries are no longer needed.
    pub action: OldLogAction,
}

/// The highest sequence id by region.
pub(crate) type HighestSeqIds = HashMap<Arc<str>, u64>;

/// The files of one log, and the regions that still need them.
#[derive(Default)]
pub(crate) struct LogRetention {
    // Oldest first, beginning with the logs of earlier runs.
    past: Vec<PastLog>,
    open: Option<FilePath>,
    // The highest sequence ids written to the open file.
    current: HighestSeqIds,
    current_bytes: u64,
    // The sequence id up to which each region is flushed.
    flushed: HighestSeqIds,
}

struct PastLog {
    path: FilePath,
    bytes: u64,
    // The regions that still need it.
    needed: HighestSeqIds,
    // Nothing more is written to it.
    finished: bool,
}

impl LogRetention {
    /// Adopts logs of an earlier run. Returns the logs that are no longer needed.
    pub(crate) fn adopt(&mut self, logs: Vec<OldLog>) -> Vec<FilePath> {
        let adopted = logs.into_iter().map(|log| PastLog {
            path: log.path,
            bytes: log.bytes,
            needed: log.highest,
            // A log that must stay never counts as finished, so that it is never released.
            finished: log.action != OldLogAction::Stay,
        });
        self.past.splice(0..0, adopted);
        self.release()
    }

    /// Records that an edit of `region` was written to the open log.
    pub(crate) fn record_written(&mut self, region: &Arc<str>, seq_id: u64) {
        match self.current.get_mut(region) {
            Some(highest) => *highest = (*highest).max(seq_id),
            None => {
                self.current.insert(region.clone(), seq_id);
            }
        }
    }

    /// Sets the length of the open log.
    pub(crate) fn set_open_bytes(&mut self, bytes: u64) {
        debug_assert!(bytes >= self.current_bytes, "the open log only grows");
        self.current_bytes = bytes;
    }

    /// Sets which log is open, if any.
    pub(crate) fn set_open(&mut self, path: Option<FilePath>) {
        self.open = path;
    }

    pub(crate) fn open_file(&self) -> Option<&FilePath> {
        self.open.as_ref()
    }

    /// Records that the open log, at `path`, was replaced.
    pub(crate) fn record_roll(&mut self, path: FilePath) {
        debug_assert!(!self.past.iter().any(|log| log.path == path), "a log is replaced once");
        let (needed, bytes) = (mem::take(&mut self.current), mem::take(&mut self.current_bytes));
        self.past.push(PastLog { path, bytes, needed, finished: false });
    }

    /// Records that nothing more is written to the log at `path`. Returns the logs that are no
    /// longer needed.
    pub(crate) fn record_finished(&mut self, path: &FilePath) -> Vec<FilePath> {
        if let Some(log) = self.past.iter_mut().find(|log| log.path == *path) {
            log.finished = true;
        }
        self.release()
    }

    /// Records that the region's edits up to `up_to` are in store files. Returns the logs that are
    /// no longer needed.
    pub(crate) fn record_flush(&mut self, region: &str, up_to: u64) -> Vec<FilePath> {
        match self.flushed.get_mut(region) {
            Some(flushed) => *flushed = (*flushed).max(up_to),
            None => {
                self.flushed.insert(region.into(), up_to);
            }
        }
        self.release()
    }

    /// Records that the region's edits so far need no replay. Returns the logs that are no longer
    /// needed.
    pub(crate) fn forget_region(&mut self, region: &str) -> Vec<FilePath> {
        for log in &mut self.past {
            log.needed.remove(region);
        }
        self.current.remove(region);
        self.flushed.remove(region);
        self.release()
    }

    fn release(&mut self) -> Vec<FilePath> {
        let flushed = &self.flushed;
        for log in &mut self.past {
            log.needed.retain(|region, highest| flushed.get(region).is_none_or(|up_to| *up_to < *highest));
        }
        self.past.extract_if(.., |log| log.finished && log.needed.is_empty()).map(|log| log.path).collect()
    }

    /// The number of retained logs, including the open one.
    pub(crate) fn count(&self) -> usize {
        self.past.len() + 1
    }

    /// The retained logs, including the open one.
    pub(crate) fn records(&self) -> Vec<RecordedLog> {
        let past = self.past.iter().map(|log| RecordedLog { path: log.path.clone(), bytes: log.bytes });
        let open = self.open.iter().map(|path| RecordedLog { path: path.clone(), bytes: self.current_bytes });
        past.chain(open).collect()
    }

    /// Bytes of the retained logs.
    pub(crate) fn bytes(&self) -> u64 {
        self.past.iter().map(|log| log.bytes).sum::<u64>() + self.current_bytes
    }

    /// The regions that need the oldest log that is still needed.
    pub(crate) fn regions_of_oldest(&self) -> Vec<Arc<str>> {
        let oldest = self.past.iter().find(|log| !log.needed.is_empty());
        oldest.map_or_else(Vec::new, |log| log.needed.keys().cloned().collect())
    }
}

/// Locks the state of a log.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The data is consistent even if a thread panicked while it held the lock: it panicked between
    // two statements, and each statement leaves consistent data.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str) -> FilePath {
        FilePath::new(name)
    }

    fn written(retention: &mut LogRetention, region: &str, seq_id: u64) {
        retention.record_written(&region.into(), seq_id);
    }

    #[test]
    fn a_log_is_released_when_its_last_region_is_flushed() {
        let mut retention = LogRetention::default();
        written(&mut retention, "a", 5);
        written(&mut retention, "b", 9);
        retention.set_open_bytes(100);
        retention.record_roll(path("1"));
        retention.set_open_bytes(7);
        assert_eq!(retention.bytes(), 107);
        assert!(retention.record_finished(&path("1")).is_empty());
        written(&mut retention, "a", 6);
        assert_eq!(retention.count(), 2);
        assert_eq!(retention.record_flush("a", 4), []);
        assert_eq!(retention.record_flush("a", 5), []);
        assert_eq!(retention.regions_of_oldest(), ["b".into()]);
        assert_eq!(retention.record_flush("b", 100), [path("1")]);
        assert_eq!(retention.bytes(), 7);
        assert_eq!(retention.count(), 1);
        assert!(retention.regions_of_oldest().is_empty());
        // Edits that were flushed before the roll do not keep the log; edits written since do.
        written(&mut retention, "b", 50);
        retention.record_roll(path("2"));
        assert!(retention.record_finished(&path("2")).is_empty());
        assert_eq!(retention.regions_of_oldest(), ["a".into()]);
        assert_eq!(retention.record_flush("a", 6), [path("2")]);
    }

    #[test]
    fn a_log_is_retained_until_it_is_finished() {
        let mut retention = LogRetention::default();
        retention.record_roll(path("1"));
        assert_eq!(retention.record_flush("a", 4), []);
        assert_eq!(retention.record_finished(&path("1")), [path("1")]);
        assert_eq!(retention.record_finished(&path("1")), []);
    }

    #[test]
    fn logs_of_an_earlier_run_come_first() {
        let mut retention = LogRetention::default();
        written(&mut retention, "a", 70);
        retention.record_roll(path("new"));
        retention.record_finished(&path("new"));
        let old = |name, region: &str, highest| OldLog {
            path: path(name),
            bytes: 50,
            highest: HighestSeqIds::from([(region.into(), highest)]),
            action: OldLogAction::Archive,
        };
        let empty = OldLog {
            path: path("empty"),
            bytes: 9,
            highest: HighestSeqIds::new(),
            action: OldLogAction::Archive,
        };
        assert_eq!(retention.adopt(vec![old("old1", "a", 10), old("old2", "c", 20), empty]), [path("empty")]);
        assert_eq!(retention.regions_of_oldest(), ["a".into()]);
        assert_eq!(retention.record_flush("a", 60), [path("old1")]);
        assert_eq!(retention.regions_of_oldest(), ["c".into()]);
        assert_eq!(retention.forget_region("c"), [path("old2")]);
        assert_eq!(retention.count(), 2);
        let stays = OldLog { action: OldLogAction::Stay, ..old("stays", "d", 30) };
        assert_eq!(retention.adopt(vec![stays]), []);
        assert_eq!(retention.record_flush("d", 100), [], "a log that stays is never released");
        assert_eq!(retention.records()[0], RecordedLog { path: path("stays"), bytes: 50 });
    }
}
