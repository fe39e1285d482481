//! Numbers of files, under which their blocks are cached.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use fs::FilePath;

use crate::caching::Caching;

/// Assigns the numbers under which the blocks of files are cached.
///
/// After a split, several regions open the same file. Its halves share blocks, and the blocks that
/// the parent read are useful to its daughters. So a file keeps its number while its blocks may be
/// cached. A file is identified by region, family and name, which do not change when it moves to
/// the archive. No name is used twice.
#[derive(Default)]
pub(super) struct FileIds {
    table: Mutex<FileTable>,
}

#[derive(Default)]
struct FileTable {
    ids: HashMap<String, u64>,
    /// How the blocks of each file are cached. Files without an entry use the default.
    caching: HashMap<u64, Caching>,
}

/// Maximum number of known files. Beyond it all are forgotten: files that are opened afterwards
/// find none of their blocks in the cache, which costs loads and nothing else.
const FILES_MAX: usize = 100_000;

impl FileIds {
    pub(super) fn of(&self, path: &FilePath, caching: Caching) -> u64 {
        let mut table = self.table();
        if table.ids.len() >= FILES_MAX {
            *table = FileTable::default();
        }
        let file_id = *table.ids.entry(identity(path)).or_insert_with(next_file_id);
        table.caching.insert(file_id, caching);
        file_id
    }

    pub(super) fn caching(&self, file_id: u64) -> Caching {
        self.table().caching.get(&file_id).copied().unwrap_or_default()
    }

    pub(super) fn forget(&self, path: &FilePath, file_id: u64) {
        let mut table = self.table();
        let key = identity(path);
        if table.ids.get(&key) == Some(&file_id) {
            table.ids.remove(&key);
            table.caching.remove(&file_id);
        }
    }

    fn table(&self) -> MutexGuard<'_, FileTable> {
        // A map from names to numbers is valid after any panic.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
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
