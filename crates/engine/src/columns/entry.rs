//! Vectors in the block cache, and facts about the cells from which they were built.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use columnar::{Column, Packed};

use crate::columns::marks::Marks;
use crate::scanner::next_file_id;

/// Facts about all cells of a stretch, wanted or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StretchFacts {
    /// Number of rows that have a cell.
    pub(crate) rows: usize,
    /// Whether all cells are plain puts, so that the first cell of a column is its value. There are
    /// no deletes and no tags; a tag may contain the time when a cell expires.
    pub(crate) is_plain: bool,
    /// The greatest sequence id.
    pub(crate) seq_id_max: u64,
    /// The smallest and the greatest timestamp.
    pub(crate) timestamps: (i64, i64),
}

impl StretchFacts {
    /// The facts about no cells.
    pub(crate) fn none() -> StretchFacts {
        StretchFacts { rows: 0, is_plain: true, seq_id_max: 0, timestamps: (i64::MAX, i64::MIN) }
    }
}

/// What is cached for a stretch, or for one of its columns.
#[derive(Debug)]
pub(crate) enum CachedEntry {
    /// Facts about its cells, and where its rows are.
    Rows(StretchFacts, Marks),
    /// The values of a column.
    Vector(StretchFacts, Arc<Packed>),
    /// The column cannot be read from the stretch alone. A value does not fit the type of the
    /// column (newer cells elsewhere may hide it), or the values are very large.
    Unusable,
}

impl CachedEntry {
    /// Facts about the cells of the stretch.
    pub(super) fn facts(&self) -> Option<StretchFacts> {
        match self {
            CachedEntry::Rows(facts, _) | CachedEntry::Vector(facts, _) => Some(*facts),
            CachedEntry::Unusable => None,
        }
    }

    /// Bytes of memory.
    pub(crate) fn heap_len(&self) -> usize {
        let content = match self {
            CachedEntry::Rows(_, marks) => marks.heap_len(),
            CachedEntry::Vector(_, vector) => vector.heap_len(),
            CachedEntry::Unusable => 0,
        };
        size_of::<CachedEntry>() + content
    }
}

/// Where the bounds of a file's stretches come from. Stretches from different sources may begin at
/// the same block and end at different ones, because the index replaces a catalog that can no
/// longer be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum StretchSource {
    /// The catalog of the file's sidecar.
    Catalog,
    /// The index of the file's blocks.
    Index,
}

/// The numbers of one file.
type ColumnNumbers = HashMap<(StretchSource, Option<Column>), u64>;

/// The numbers under which the vectors of files are cached: one for each column that was read, and
/// each source of stretches.
#[derive(Default)]
pub(crate) struct VectorNumbers {
    files: Mutex<HashMap<u64, ColumnNumbers>>,
}

/// Maximum number of columns of one file that have numbers. Beyond it all are forgotten, and their
/// vectors are evicted like other unused values.
const COLUMNS_MAX: usize = 4096;
/// Maximum number of files that have numbers. Files of regions that moved away are not removed
/// otherwise.
const FILES_MAX: usize = 20_000;

impl VectorNumbers {
    /// The number of a column of a file, if it has one. Without a column, the number of the entry
    /// for its rows.
    pub(crate) fn get(&self, file_id: u64, source: StretchSource, column: Option<&Column>) -> Option<u64> {
        self.lock().get(&file_id)?.get(&(source, column.cloned())).copied()
    }

    /// Like [`get`](VectorNumbers::get), but assigns a number if there is none. For storing a
    /// vector.
    pub(crate) fn get_or_assign(&self, file_id: u64, source: StretchSource, column: Option<&Column>) -> u64 {
        let mut files = self.lock();
        if files.len() >= FILES_MAX && !files.contains_key(&file_id) {
            files.clear();
        }
        let columns = files.entry(file_id).or_default();
        let column = (source, column.cloned());
        if let Some(number) = columns.get(&column) {
            return *number;
        }
        if columns.len() >= COLUMNS_MAX {
            columns.clear();
        }
        let number = next_file_id();
        columns.insert(column, number);
        number
    }

    /// Removes a file.
    pub(crate) fn forget(&self, file_id: u64) {
        self.lock().remove(&file_id);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, ColumnNumbers>> {
        // A map from names to numbers is valid after any panic.
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use columnar::{ColumnLocation, Encoding};

    use super::*;

    #[test]
    fn lookups_assign_no_number() {
        let numbers = VectorNumbers::default();
        let location = ColumnLocation::RowBytes { offset: 0, length: None };
        let column = Column { location, encoding: Encoding::Raw, scale: 0 };
        let files = |column| numbers.get(7, StretchSource::Index, column);
        assert_eq!((files(None), files(Some(&column))), (None, None));
        assert!(numbers.lock().is_empty());
        let number = numbers.get_or_assign(7, StretchSource::Index, Some(&column));
        assert_eq!((files(None), files(Some(&column))), (None, Some(number)));
        assert_eq!(numbers.get_or_assign(7, StretchSource::Index, Some(&column)), number);
        numbers.forget(7);
        assert_eq!(files(Some(&column)), None);
    }

    #[test]
    fn vectors_of_different_sources_have_different_numbers() {
        let numbers = VectorNumbers::default();
        let (by_index, by_catalog) = (
            numbers.get_or_assign(7, StretchSource::Index, None),
            numbers.get_or_assign(7, StretchSource::Catalog, None),
        );
        assert_ne!(by_index, by_catalog);
        assert_eq!(numbers.get(7, StretchSource::Catalog, None), Some(by_catalog));
    }
}
