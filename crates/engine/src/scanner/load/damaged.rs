//! Store files in which reads found damage.
//!
//! Every read of a damaged block fails. Each file is logged once and listed on the status pages
//! until it is gone, and automatic compactions skip it for a while.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use fs::FilePath;
use tracing::error;

/// Maximum number of listed files. A disk with more damage than this is noticed anyway.
const FILES_MAX: usize = 1_000;

/// The first damage that was found in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedFile {
    /// The file.
    pub path: FilePath,
    /// Offset of the damaged part.
    pub offset: u64,
    /// The check that failed.
    pub what: &'static str,
}

/// The files in which reads found damage.
#[derive(Default)]
pub(super) struct DamagedFiles {
    // Failed loads, of all files.
    failures: AtomicU64,
    files: Mutex<BTreeMap<String, DamagedFile>>,
}

impl DamagedFiles {
    /// Records that a block could not be loaded, if it is damaged.
    pub(super) fn record(&self, error: &hfile::Error) {
        let hfile::Error::Corrupt { file, offset, what } = error else { return };
        self.failures.fetch_add(1, Ordering::Relaxed);
        let mut files = self.files();
        if files.contains_key(file.as_str()) || files.len() >= FILES_MAX {
            return;
        }
        let damaged = DamagedFile { path: file.clone(), offset: *offset, what };
        files.insert(file.as_str().to_string(), damaged);
        drop(files);
        error!(
            %file, offset, what,
            "store file is corrupt: reads and compactions of its damaged block fail, all others work \
             (restore the file from a copy, or move it out of the store and reopen the region)"
        );
    }

    /// Removes a file that is no longer read.
    pub(super) fn forget(&self, path: &FilePath) {
        self.files().remove(path.as_str());
    }

    /// Whether damage was found in the file.
    pub(super) fn contains(&self, path: &FilePath) -> bool {
        self.files().contains_key(path.as_str())
    }

    /// Number of loads that failed because of damage.
    pub(super) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// The files, sorted by path.
    pub(super) fn list(&self) -> Vec<DamagedFile> {
        self.files().values().cloned().collect()
    }

    fn files(&self) -> MutexGuard<'_, BTreeMap<String, DamagedFile>> {
        // A map is valid after any panic.
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_is_listed_once_with_its_first_damage() {
        let damaged = DamagedFiles::default();
        let corrupt = |file: &str, offset| hfile::Error::Corrupt {
            file: FilePath::new(file),
            offset,
            what: "checksum",
        };
        for (file, offset) in [("b", 5), ("a", 7), ("b", 9)] {
            damaged.record(&corrupt(file, offset));
        }
        damaged.record(&hfile::Error::Unsupported { file: FilePath::new("c"), what: "x".into() });
        let listed: Vec<_> =
            damaged.list().into_iter().map(|file| (file.path.to_string(), file.offset)).collect();
        assert_eq!(listed, [("a".to_string(), 7), ("b".to_string(), 5)]);
        assert_eq!(damaged.failures(), 3);
        damaged.forget(&FilePath::new("b"));
        assert!(!damaged.contains(&FilePath::new("b")));
        assert!(damaged.contains(&FilePath::new("a")));
    }
}
