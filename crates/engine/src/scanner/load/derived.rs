//! Values in the cache that another crate derived from the blocks of files.
//!
//! The cache finds a value by two integers: for a block, the number of its file and its offset. A
//! derived value has a name instead of a file's number. So each name of a file gets a number of its
//! own when its first value is cached.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::next_file_id;

/// A value of another crate in the cache. The caller of
/// [`derived_value`](super::BlockLoader::derived_value) downcasts it to its type.
pub trait CachedValue: Any + Send + Sync {
    /// Bytes of memory; never changes.
    fn heap_len(&self) -> usize;
}

/// Identifies a value derived from the blocks of a file.
#[derive(Clone, Copy, Debug)]
pub struct DerivedKey<'a> {
    /// Number of the file.
    pub file_id: u64,
    /// Which of the file's derived values it is. Several values at different offsets have one name.
    pub name: &'a [u8],
    /// Offset in the file to which the value belongs.
    pub offset: u64,
}

/// The numbers of one file, by name.
type FileNumbers = HashMap<Box<[u8]>, u64>;

/// The numbers under which derived values are cached: one per file and name.
#[derive(Default)]
pub(super) struct DerivedNumbers {
    files: Mutex<HashMap<u64, FileNumbers>>,
}

/// Maximum number of names of one file that have numbers. Beyond it all are forgotten, and their
/// values are evicted like other unused values.
const NAMES_MAX: usize = 4096;
/// Maximum number of files that have numbers. Files of regions that moved away are not removed
/// otherwise.
const FILES_MAX: usize = 20_000;

impl DerivedNumbers {
    /// The number of a name of a file, if it has one.
    pub(super) fn get(&self, file_id: u64, name: &[u8]) -> Option<u64> {
        self.lock().get(&file_id)?.get(name).copied()
    }

    /// Like [`get`](DerivedNumbers::get), but assigns a number if there is none. For storing a
    /// value.
    pub(super) fn get_or_assign(&self, file_id: u64, name: &[u8]) -> u64 {
        let mut files = self.lock();
        if files.len() >= FILES_MAX && !files.contains_key(&file_id) {
            files.clear();
        }
        let names = files.entry(file_id).or_default();
        if let Some(number) = names.get(name) {
            return *number;
        }
        if names.len() >= NAMES_MAX {
            names.clear();
        }
        let number = next_file_id();
        names.insert(name.into(), number);
        number
    }

    /// Removes a file.
    pub(super) fn forget(&self, file_id: u64) {
        self.lock().remove(&file_id);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, FileNumbers>> {
        // A map from names to numbers is valid after any panic.
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lookups_assign_no_number() {
        let numbers = DerivedNumbers::default();
        let found = |name: &[u8]| numbers.get(7, name);
        assert_eq!((found(b""), found(b"a")), (None, None));
        assert!(numbers.lock().is_empty());
        let number = numbers.get_or_assign(7, b"a");
        assert_eq!((found(b""), found(b"a")), (None, Some(number)));
        assert_eq!(numbers.get_or_assign(7, b"a"), number);
        numbers.forget(7);
        assert_eq!(found(b"a"), None);
    }

    #[test]
    fn each_name_of_each_file_has_its_own_number() {
        let numbers = DerivedNumbers::default();
        let of = |file_id, name: &[u8]| numbers.get_or_assign(file_id, name);
        let assigned = [of(7, b"a"), of(7, b"b"), of(8, b"a")];
        assert!(assigned[0] != assigned[1] && assigned[0] != assigned[2] && assigned[1] != assigned[2]);
        assert_eq!(numbers.get(8, b"a"), Some(assigned[2]));
    }
}
