//! Numbers of files, under which their blocks are cached.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use fs::FilePath;

use crate::caching::Caching;

/// Under which number the blocks of a file are cached.
///
/// One file is opened by several regions when a region is split: its halves have the same blocks, and those that the parent
/// had read are of use to its daughters. So a file keeps its number for as long as its blocks may be cached. It is known by
/// region, family and name, which is also where it is when it has moved to the archive; no name is used twice.
#[derive(Default)]
pub(super) struct FileIds {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    ids: HashMap<String, u64>,
    /// What is cached of a file; of one that is not here, what is by default.
    caching: HashMap<u64, Caching>,
}

/// Files whose numbers are kept. Beyond, all are forgotten: what is opened then finds nothing in the cache, and no more.
const FILES_KNOWN_MAX: usize = 100_000;

impl FileIds {
    pub(super) fn of(&self, path: &FilePath, caching: Caching) -> u64 {
        let mut known = self.known();
        if known.ids.len() >= FILES_KNOWN_MAX {
            *known = Known::default();
        }
        let file_id = *known.ids.entry(identity(path)).or_insert_with(next_file_id);
        known.caching.insert(file_id, caching);
        file_id
    }

    pub(super) fn caching(&self, file_id: u64) -> Caching {
        self.known().caching.get(&file_id).copied().unwrap_or_default()
    }

    pub(super) fn forget(&self, path: &FilePath, file_id: u64) {
        let mut known = self.known();
        let key = identity(path);
        if known.ids.get(&key) == Some(&file_id) {
            known.ids.remove(&key);
            known.caching.remove(&file_id);
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // Numbers by names: whole after any panic.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A number that no other file of the process has.
pub(crate) fn next_file_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Region, family and name of a file.
fn identity(path: &FilePath) -> String {
    let text = path.as_str();
    let start = text.rmatch_indices('/').nth(2).map_or(0, |(at, _)| at + 1);
    text[start..].to_owned()
}
