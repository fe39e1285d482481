//! Which logs are still needed: the highest sequence id of each region in each file, against what is flushed.
//!
//! A log is needed while a region has an entry in it that is not in its store files. Markers are not in memstores, so
//! they keep no log. Invariant: a log is given out for archiving once, and only after nothing more is written to it.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;

use fs::FilePath;

use crate::log::{Fate, OldLog};
use crate::record::Recorded;

/// Regions and the highest sequence id of each.
pub(crate) type Highest = HashMap<Arc<str>, u64>;

/// The accounts of one log.
#[derive(Default)]
pub(crate) struct Books {
    // Oldest first, those of earlier runs before ours.
    past: Vec<PastLog>,
    // The file that is open.
    open: Option<FilePath>,
    // What was written to it.
    current: Highest,
    current_bytes: u64,
    // Up to where each region is flushed, as far as it was told.
    flushed: Highest,
}

struct PastLog {
    path: FilePath,
    bytes: u64,
    // Regions that still need it.
    needed: Highest,
    // Trailer written, or given up.
    finished: bool,
}

impl Books {
    /// Takes over logs of an earlier run. Gives those that nobody needs.
    pub(crate) fn adopt(&mut self, logs: Vec<OldLog>) -> Vec<FilePath> {
        let adopted = logs.into_iter().map(|log| PastLog {
            path: log.path,
            bytes: log.bytes,
            needed: log.highest,
            // A log that stays is never finished, and so never given out.
            finished: log.fate != Fate::Stay,
        });
        self.past.splice(0..0, adopted);
        self.release()
    }

    /// An edit of `region` was written to the open log.
    pub(crate) fn written(&mut self, region: &Arc<str>, seq_id: u64) {
        match self.current.get_mut(region) {
            Some(highest) => *highest = (*highest).max(seq_id),
            None => {
                self.current.insert(region.clone(), seq_id);
            }
        }
    }

    /// The open log has so many bytes.
    pub(crate) fn has_grown(&mut self, bytes: u64) {
        self.current_bytes = bytes;
    }

    /// The log at `path` is the open one now.
    pub(crate) fn opened(&mut self, path: Option<FilePath>) {
        self.open = path;
    }

    /// The file that is open.
    pub(crate) fn open_file(&self) -> Option<&FilePath> {
        self.open.as_ref()
    }

    /// The open log was replaced; `path` is the old one's.
    pub(crate) fn rolled(&mut self, path: FilePath) {
        let (needed, bytes) = (mem::take(&mut self.current), mem::take(&mut self.current_bytes));
        self.past.push(PastLog { path, bytes, needed, finished: false });
    }

    /// Nothing more is written to the log at `path`. Gives the logs that nobody needs.
    pub(crate) fn finished(&mut self, path: &FilePath) -> Vec<FilePath> {
        if let Some(log) = self.past.iter_mut().find(|log| log.path == *path) {
            log.finished = true;
        }
        self.release()
    }

    /// The region's edits up to `up_to` are in store files. Gives the logs that nobody needs.
    pub(crate) fn flushed(&mut self, region: &str, up_to: u64) -> Vec<FilePath> {
        match self.flushed.get_mut(region) {
            Some(flushed) => *flushed = (*flushed).max(up_to),
            None => {
                self.flushed.insert(region.into(), up_to);
            }
        }
        self.release()
    }

    /// What the region wrote so far is not wanted any more. Gives the logs that nobody needs.
    pub(crate) fn forget(&mut self, region: &str) -> Vec<FilePath> {
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

    /// Logs that are kept, with the open one.
    pub(crate) fn count(&self) -> usize {
        self.past.len() + 1
    }

    /// The logs that are kept, with the open one.
    pub(crate) fn recorded(&self) -> Vec<Recorded> {
        let past = self.past.iter().map(|log| Recorded { path: log.path.clone(), bytes: log.bytes });
        let open = self.open.iter().map(|path| Recorded { path: path.clone(), bytes: self.current_bytes });
        past.chain(open).collect()
    }

    /// Bytes of the logs that are kept.
    pub(crate) fn bytes(&self) -> u64 {
        self.past.iter().map(|log| log.bytes).sum::<u64>() + self.current_bytes
    }

    /// The regions that keep the oldest log.
    pub(crate) fn holding_oldest(&self) -> Vec<Arc<str>> {
        let oldest = self.past.iter().find(|log| !log.needed.is_empty());
        oldest.map_or_else(Vec::new, |log| log.needed.keys().cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str) -> FilePath {
        FilePath::new(name)
    }

    fn written(books: &mut Books, region: &str, seq_id: u64) {
        books.written(&region.into(), seq_id);
    }

    #[test]
    fn a_log_goes_when_its_last_region_is_flushed() {
        let mut books = Books::default();
        written(&mut books, "a", 5);
        written(&mut books, "b", 9);
        books.has_grown(100);
        books.rolled(path("1"));
        books.has_grown(7);
        assert_eq!(books.bytes(), 107);
        assert!(books.finished(&path("1")).is_empty());
        written(&mut books, "a", 6);
        assert_eq!(books.count(), 2);
        assert_eq!(books.flushed("a", 4), []);
        assert_eq!(books.flushed("a", 5), []);
        assert_eq!(books.holding_oldest(), ["b".into()]);
        assert_eq!(books.flushed("b", 100), [path("1")]);
        assert_eq!(books.bytes(), 7);
        assert_eq!(books.count(), 1);
        assert!(books.holding_oldest().is_empty());
        // What was flushed before the roll does not hold the log after it; what was written since does.
        written(&mut books, "b", 50);
        books.rolled(path("2"));
        assert!(books.finished(&path("2")).is_empty());
        assert_eq!(books.holding_oldest(), ["a".into()]);
        assert_eq!(books.flushed("a", 6), [path("2")]);
    }

    #[test]
    fn a_log_that_is_being_finished_stays() {
        let mut books = Books::default();
        books.rolled(path("1"));
        assert_eq!(books.flushed("a", 4), []);
        assert_eq!(books.finished(&path("1")), [path("1")]);
        assert_eq!(books.finished(&path("1")), []);
    }

    #[test]
    fn logs_of_an_earlier_run_come_first() {
        let mut books = Books::default();
        written(&mut books, "a", 70);
        books.rolled(path("new"));
        books.finished(&path("new"));
        let old = |name, region: &str, highest| OldLog {
            path: path(name),
            bytes: 50,
            highest: Highest::from([(region.into(), highest)]),
            fate: Fate::Archive,
        };
        let empty = OldLog { path: path("empty"), bytes: 9, highest: Highest::new(), fate: Fate::Archive };
        assert_eq!(books.adopt(vec![old("old1", "a", 10), old("old2", "c", 20), empty]), [path("empty")]);
        assert_eq!(books.holding_oldest(), ["a".into()]);
        assert_eq!(books.flushed("a", 60), [path("old1")]);
        assert_eq!(books.holding_oldest(), ["c".into()]);
        assert_eq!(books.forget("c"), [path("old2")]);
        assert_eq!(books.count(), 2);
        let stays = OldLog { fate: Fate::Stay, ..old("stays", "d", 30) };
        assert_eq!(books.adopt(vec![stays]), []);
        assert_eq!(books.flushed("d", 100), [], "a log that stays is never given out");
        assert_eq!(books.recorded()[0], Recorded { path: path("stays"), bytes: 50 });
    }
}
