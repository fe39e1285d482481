//! Vectors in the block cache, and what is known of the cells that they were made of.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use columnar::{Column, Packed};

use crate::columns::marks::Marks;
use crate::scanner::next_file_id;

/// What is known of the cells of a stretch, wanted or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    /// Rows that have a cell.
    pub(crate) rows: usize,
    /// Whether all cells are plain puts, so that the first of a column is its value: no deletes, no tags, which may say when
    /// a cell expires.
    pub(crate) is_plain: bool,
    /// The newest write.
    pub(crate) seq_id_max: u64,
    /// The least and the greatest timestamp.
    pub(crate) timestamps: (i64, i64),
}

impl Facts {
    /// Of no cells.
    pub(crate) fn none() -> Facts {
        Facts { rows: 0, is_plain: true, seq_id_max: 0, timestamps: (i64::MAX, i64::MIN) }
    }
}

/// What is kept of a stretch, by itself or for one of its columns.
#[derive(Debug)]
pub(crate) enum Kept {
    /// What is known of its cells, and where its rows are.
    Rows(Facts, Marks),
    /// The values of a column.
    Vector(Facts, Arc<Packed>),
    /// The column cannot be read from the stretch by itself: a value is not as the column says, which newer cells elsewhere may
    /// hide, or the values are very large.
    OfNoUse,
}

impl Kept {
    /// What is known of the stretch's cells.
    pub(super) fn facts(&self) -> Option<Facts> {
        match self {
            Kept::Rows(facts, _) | Kept::Vector(facts, _) => Some(*facts),
            Kept::OfNoUse => None,
        }
    }

    /// Bytes of memory.
    pub(crate) fn heap_len(&self) -> usize {
        let content = match self {
            Kept::Rows(_, marks) => marks.heap_len(),
            Kept::Vector(_, vector) => vector.heap_len(),
            Kept::OfNoUse => 0,
        };
        size_of::<Kept>() + content
    }
}

/// By what a file was cut into stretches. Two cuts of a file may have stretches that begin at the same block and end at
/// others: where a catalog cannot be read any more, the index takes its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum CutBy {
    /// The catalog of its sidecar.
    Catalog,
    /// The index of its blocks.
    Index,
}

/// Of one file.
type Numbers = HashMap<(CutBy, Option<Column>), u64>;

/// Under which numbers the vectors of a file are kept: one for each column that was asked for, in each cut of the file.
#[derive(Default)]
pub(crate) struct VectorNumbers {
    known: Mutex<HashMap<u64, Numbers>>,
}

/// Columns of one file that have numbers. Beyond, all are forgotten: their vectors go as all that nobody asks for.
const COLUMNS_MAX: usize = 4096;
/// The same for files: of regions that moved away nobody tells.
const FILES_MAX: usize = 20_000;

impl VectorNumbers {
    /// The number of a column of a file, if it has one; without a column, that of what is kept of its rows.
    pub(crate) fn known(&self, file_id: u64, cut: CutBy, column: Option<&Column>) -> Option<u64> {
        self.lock().get(&file_id)?.get(&(cut, column.cloned())).copied()
    }

    /// The same for a column of which something is kept from now on.
    pub(crate) fn given(&self, file_id: u64, cut: CutBy, column: Option<&Column>) -> u64 {
        let mut known = self.lock();
        if known.len() >= FILES_MAX && !known.contains_key(&file_id) {
            known.clear();
        }
        let columns = known.entry(file_id).or_default();
        let column = (cut, column.cloned());
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

    /// Forgets a file.
    pub(crate) fn forget(&self, file_id: u64) {
        self.lock().remove(&file_id);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Numbers>> {
        // Numbers by names: whole after any panic.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use columnar::{Encoding, Place};

    use super::*;

    #[test]
    fn who_asks_is_given_no_number() {
        let numbers = VectorNumbers::default();
        let place = Place::RowBytes { offset: 0, length: None };
        let column = Column { place, encoding: Encoding::Raw, scale: 0 };
        let known = |column| numbers.known(7, CutBy::Index, column);
        assert_eq!((known(None), known(Some(&column))), (None, None));
        assert!(numbers.lock().is_empty());
        let number = numbers.given(7, CutBy::Index, Some(&column));
        assert_eq!((known(None), known(Some(&column))), (None, Some(number)));
        assert_eq!(numbers.given(7, CutBy::Index, Some(&column)), number);
        numbers.forget(7);
        assert_eq!(known(Some(&column)), None);
    }

    #[test]
    fn vectors_of_two_cuts_are_not_taken_for_each_other() {
        let numbers = VectorNumbers::default();
        let (by_index, by_catalog) =
            (numbers.given(7, CutBy::Index, None), numbers.given(7, CutBy::Catalog, None));
        assert_ne!(by_index, by_catalog);
        assert_eq!(numbers.known(7, CutBy::Catalog, None), Some(by_catalog));
    }
}
