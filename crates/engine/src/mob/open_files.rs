//! The MOB files that are open. Their number is bounded: the least recently used are closed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::instruments::MobInstruments;
use crate::store::StoreFile;

/// The default bound (`hbase.mob.file.cache.size`).
pub(super) const OPEN_FILES_MAX: usize = 1000;

/// The open MOB files of a server, by name. Names are random, so they name one file of all tables.
pub struct MobFiles {
    files: Mutex<OpenFiles>,
    files_max: usize,
    instruments: Arc<MobInstruments>,
}

#[derive(Default)]
struct OpenFiles {
    by_name: HashMap<String, OpenFile>,
    // Counts look-ups.
    now: u64,
}

struct OpenFile {
    file: Arc<StoreFile>,
    used: u64,
}

impl Default for MobFiles {
    fn default() -> MobFiles {
        MobFiles::new(OPEN_FILES_MAX)
    }
}

impl MobFiles {
    /// Holds at most `files_max` open files; 0 closes each file after its use.
    pub fn new(files_max: usize) -> MobFiles {
        let instruments = Arc::new(MobInstruments::begin(Duration::ZERO));
        MobFiles { files: Mutex::default(), files_max, instruments }
    }

    /// The metrics of MOB files.
    pub fn instruments(&self) -> &Arc<MobInstruments> {
        &self.instruments
    }

    /// Number of open files.
    pub fn len(&self) -> usize {
        self.lock().by_name.len()
    }

    /// Whether no file is open.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The open file of this name. Counts as an access, and as a miss if it is not open.
    pub(crate) fn get(&self, name: &str) -> Option<Arc<StoreFile>> {
        self.instruments.file_accesses.increment();
        let mut files = self.lock();
        files.now += 1;
        let now = files.now;
        let found = files.by_name.get_mut(name).map(|open| {
            open.used = now;
            open.file.clone()
        });
        if found.is_none() {
            self.instruments.file_misses.increment();
        }
        found
    }

    /// Adds a file that was opened. At the bound, closes the least recently used half.
    pub(crate) fn add(&self, name: &str, file: &Arc<StoreFile>) {
        if self.files_max == 0 {
            return;
        }
        let mut files = self.lock();
        if files.by_name.len() >= self.files_max {
            let mut uses: Vec<u64> = files.by_name.values().map(|open| open.used).collect();
            uses.sort_unstable();
            let oldest_kept = uses[uses.len().div_ceil(2).min(uses.len() - 1)];
            let before = files.by_name.len();
            files.by_name.retain(|_, open| open.used >= oldest_kept && self.files_max > 1);
            self.instruments.file_evictions.add((before - files.by_name.len()) as u64);
        }
        let used = files.now;
        files.by_name.insert(name.to_string(), OpenFile { file: file.clone(), used });
    }

    /// Closes a file, because reads of it fail.
    pub(crate) fn remove(&self, name: &str) {
        self.lock().by_name.remove(name);
    }

    fn lock(&self) -> MutexGuard<'_, OpenFiles> {
        // Safe after a panic: each change is complete in itself.
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
