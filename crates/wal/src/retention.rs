//! Tracks which logs are still needed, from the highest sequence id of each region in each log and
//! the sequence ids up to which the regions are flushed.
//!
//! A log is needed while it has an edit that is not in a store file, and while an older log is
//! retained that has edits of a region which the log records as closed: a replay without that close
//! would bring these edits back. Other markers keep no log. Invariant: a log is released for
//! archiving once, after the last write to it.

use std::collections::{BTreeSet, HashMap, HashSet};
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
    /// The highest sequence id of each region that has edits in it, without regions that a later
    /// close makes outdated.
    pub highest: HashMap<Arc<str>, u64>,
    /// The regions with edits in it that a later close makes outdated.
    pub outdated: HashSet<Arc<str>>,
    /// The regions whose close it records.
    pub closed: HashSet<Arc<str>>,
    /// What happens to it once its entries are no longer needed.
    pub action: OldLogAction,
}

impl OldLog {
    /// A log without entries.
    pub fn empty(path: FilePath) -> OldLog {
        OldLog {
            path,
            bytes: 0,
            highest: HashMap::new(),
            outdated: HashSet::new(),
            closed: HashSet::new(),
            action: OldLogAction::Archive,
        }
    }
}

/// The highest sequence id by region.
pub(crate) type HighestSeqIds = HashMap<Arc<str>, u64>;

/// The files of one log, and the regions that still need them.
#[derive(Default)]
pub(crate) struct LogRetention {
    // Oldest first, beginning with the logs of earlier runs.
    past: Vec<PastLog>,
    open: Option<FilePath>,
    // The regions in the open file.
    current: HashMap<Arc<str>, RegionInLog>,
    current_bytes: u64,
    // The sequence id up to which each region is flushed.
    flushed: HighestSeqIds,
}

struct PastLog {
    path: FilePath,
    bytes: u64,
    regions: HashMap<Arc<str>, RegionInLog>,
    // The number of regions with unflushed edits.
    unflushed: usize,
    // Nothing more is written to it.
    finished: bool,
}

/// What a log has of a region.
#[derive(Clone, Copy, Default)]
struct RegionInLog {
    /// The highest sequence id of an edit, while that edit is not in a store file. Otherwise 0.
    unflushed: u64,
    has_edits: bool,
    is_closed: bool,
}

impl PastLog {
    fn new(
        path: FilePath,
        bytes: u64,
        mut regions: HashMap<Arc<str>, RegionInLog>,
        flushed: &HighestSeqIds,
    ) -> PastLog {
        for (name, region) in &mut regions {
            if flushed.get(name).is_some_and(|up_to| region.unflushed <= *up_to) {
                region.unflushed = 0;
            }
        }
        let unflushed = regions.values().filter(|region| region.unflushed > 0).count();
        PastLog { path, bytes, regions, unflushed, finished: false }
    }

    fn of_earlier_run(old: OldLog, flushed: &HighestSeqIds) -> PastLog {
        let mut regions: HashMap<Arc<str>, RegionInLog> = HashMap::new();
        for (region, highest) in old.highest {
            regions.insert(region, RegionInLog { unflushed: highest, has_edits: true, is_closed: false });
        }
        for region in old.outdated {
            regions.entry(region).or_default().has_edits = true;
        }
        for region in old.closed {
            regions.entry(region).or_default().is_closed = true;
        }
        // A log that must stay never counts as finished, so that it is never released.
        let finished = old.action != OldLogAction::Stay;
        PastLog { finished, ..PastLog::new(old.path, old.bytes, regions, flushed) }
    }

    fn record_flush(&mut self, region: &str, up_to: u64) {
        if let Some(region) = self.regions.get_mut(region)
            && (1..=up_to).contains(&region.unflushed)
        {
            region.unflushed = 0;
            self.unflushed -= 1;
        }
    }

    /// Whether a replay of `older` logs needs the closes in this one.
    fn is_needed_by(&self, older: &[PastLog]) -> bool {
        let closed = self.regions.iter().filter(|(_, region)| region.is_closed);
        let has_edits = |log: &PastLog, name| log.regions.get(name).is_some_and(|region| region.has_edits);
        closed.into_iter().any(|(name, _)| older.iter().any(|log| has_edits(log, name)))
    }
}

impl LogRetention {
    /// Adopts logs of an earlier run. Returns the logs that are no longer needed.
    pub(crate) fn adopt(&mut self, logs: Vec<OldLog>) -> Vec<FilePath> {
        let flushed = &self.flushed;
        self.past.splice(0..0, logs.into_iter().map(|log| PastLog::of_earlier_run(log, flushed)));
        self.release()
    }

    /// Records that an edit of `region` was written to the open log.
    pub(crate) fn record_written(&mut self, region: &Arc<str>, seq_id: u64) {
        let written = self.in_open_log(region);
        written.unflushed = written.unflushed.max(seq_id);
        written.has_edits = true;
    }

    /// Records that the open log may have an edit of `region` whose write failed. It is written to
    /// the next log too, so no flush needs this one.
    pub(crate) fn record_failed(&mut self, region: &Arc<str>) {
        self.in_open_log(region).has_edits = true;
    }

    /// Records that the close of `region` was written to the open log.
    pub(crate) fn record_close(&mut self, region: &Arc<str>) {
        self.in_open_log(region).is_closed = true;
    }

    fn in_open_log(&mut self, region: &Arc<str>) -> &mut RegionInLog {
        if !self.current.contains_key(region) {
            self.current.insert(region.clone(), RegionInLog::default());
        }
        self.current.get_mut(region).expect("it was just inserted")
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
        let (regions, bytes) = (mem::take(&mut self.current), mem::take(&mut self.current_bytes));
        self.past.push(PastLog::new(path, bytes, regions, &self.flushed));
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
        self.past.iter_mut().for_each(|log| log.record_flush(region, up_to));
        self.release()
    }

    /// Records that the region's edits so far need no replay. Returns the logs that are no longer
    /// needed.
    pub(crate) fn forget_region(&mut self, region: &str) -> Vec<FilePath> {
        self.past.iter_mut().for_each(|log| log.record_flush(region, u64::MAX));
        if let Some(region) = self.current.get_mut(region) {
            region.unflushed = 0;
        }
        self.flushed.remove(region);
        self.release()
    }

    /// Removes the logs that are no longer needed. Returns their paths, the oldest first.
    fn release(&mut self) -> Vec<FilePath> {
        let (mut retained, mut released) = (Vec::with_capacity(self.past.len()), Vec::new());
        for log in mem::take(&mut self.past) {
            match log.finished && log.unflushed == 0 && !log.is_needed_by(&retained) {
                true => released.push(log.path),
                false => retained.push(log),
            }
        }
        self.past = retained;
        released
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

    /// The regions to flush so that at most `logs_max` logs are retained, including the open one:
    /// those with unflushed edits in older logs.
    pub(crate) fn regions_beyond(&self, logs_max: usize) -> BTreeSet<Arc<str>> {
        let excess = self.count().saturating_sub(logs_max).min(self.past.len());
        let regions = self.past[..excess].iter().flat_map(|log| &log.regions);
        regions.filter(|(_, region)| region.unflushed > 0).map(|(name, _)| name.clone()).collect()
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

    /// The regions that need the oldest log with unflushed edits.
    fn regions(retention: &LogRetention) -> Vec<Arc<str>> {
        let count = retention.count();
        let beyond = |logs_max| retention.regions_beyond(logs_max).into_iter().collect::<Vec<_>>();
        (1..=count).rev().map(beyond).find(|regions| !regions.is_empty()).unwrap_or_default()
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
        assert_eq!(regions(&retention), ["b".into()]);
        assert_eq!(retention.record_flush("b", 100), [path("1")]);
        assert_eq!(retention.bytes(), 7);
        assert_eq!(retention.count(), 1);
        assert!(regions(&retention).is_empty());
        // Edits that were flushed before the roll do not keep the log; edits written since do.
        written(&mut retention, "b", 50);
        retention.record_roll(path("2"));
        assert!(retention.record_finished(&path("2")).is_empty());
        assert_eq!(regions(&retention), ["a".into()]);
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
    fn a_close_is_retained_while_an_older_log_has_edits_of_its_region() {
        let mut retention = LogRetention::default();
        written(&mut retention, "cold", 1);
        written(&mut retention, "a", 2);
        retention.record_roll(path("1"));
        retention.record_finished(&path("1"));
        retention.record_close(&"a".into());
        assert!(retention.forget_region("a").is_empty());
        retention.record_roll(path("2"));
        assert!(retention.record_finished(&path("2")).is_empty(), "log 1 has edits that it makes outdated");
        // Log 3 has a close, too, but no older log has edits of its region.
        retention.record_close(&"b".into());
        retention.record_roll(path("3"));
        assert_eq!(retention.record_finished(&path("3")), [path("3")]);
        assert_eq!(retention.record_flush("cold", 1), [path("1"), path("2")]);
    }

    #[test]
    fn a_region_that_is_never_flushed_does_not_hide_later_logs_from_the_limit() {
        let mut retention = LogRetention::default();
        for (name, region) in [("1", "damaged"), ("2", "a"), ("3", "b")] {
            written(&mut retention, region, 1);
            retention.record_roll(path(name));
            retention.record_finished(&path(name));
        }
        let beyond = |logs_max| retention.regions_beyond(logs_max).into_iter().collect::<Vec<_>>();
        assert!(beyond(4).is_empty());
        assert_eq!(beyond(3), ["damaged".into()]);
        assert_eq!(beyond(2), ["a".into(), "damaged".into()]);
        assert_eq!(beyond(0).len(), 3);
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
            ..OldLog::empty(path(name))
        };
        let empty = OldLog { bytes: 9, ..OldLog::empty(path("empty")) };
        assert_eq!(retention.adopt(vec![old("old1", "a", 10), old("old2", "c", 20), empty]), [path("empty")]);
        assert_eq!(regions(&retention), ["a".into()]);
        assert_eq!(retention.record_flush("a", 60), [path("old1")]);
        assert_eq!(regions(&retention), ["c".into()]);
        assert_eq!(retention.forget_region("c"), [path("old2")]);
        assert_eq!(retention.count(), 2);
        let stays = OldLog { action: OldLogAction::Stay, ..old("stays", "d", 30) };
        assert_eq!(retention.adopt(vec![stays]), []);
        assert_eq!(retention.record_flush("d", 100), [], "a log that stays is never released");
        assert_eq!(retention.records()[0], RecordedLog { path: path("stays"), bytes: 50 });
    }
}
