//! Vectors in the block cache, and what is known of the cells that they were made of.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use columnar::{Column, Vector};

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

/// The vector of a column for a stretch, or the facts alone.
#[derive(Debug)]
pub(crate) struct KeptVector {
    pub(crate) facts: Facts,
    /// Nothing where only the facts were asked for, or the cells are not plain.
    pub(crate) vector: Option<Arc<Vector>>,
}

impl KeptVector {
    /// Bytes of memory.
    pub(crate) fn heap_len(&self) -> usize {
        size_of::<KeptVector>() + self.vector.as_ref().map_or(0, |vector| vector.heap_len())
    }
}

/// Under which numbers the vectors of a file are kept: one for each column that was asked for.
#[derive(Default)]
pub(crate) struct VectorNumbers {
    known: Mutex<HashMap<u64, HashMap<Option<Column>, u64>>>,
}

/// Columns of one file that have numbers. Beyond, all are forgotten: their vectors go as all that nobody asks for.
const COLUMNS_MAX: usize = 4096;
/// The same for files: of regions that moved away nobody tells.
const FILES_MAX: usize = 20_000;

impl VectorNumbers {
    /// The number of a column of a file; without a column, that of the facts.
    pub(crate) fn of(&self, file_id: u64, column: Option<&Column>) -> u64 {
        let mut known = self.known();
        if known.len() >= FILES_MAX {
            known.clear();
        }
        let columns = known.entry(file_id).or_default();
        let column = column.cloned();
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
        self.known().remove(&file_id);
    }

    fn known(&self) -> MutexGuard<'_, HashMap<u64, HashMap<Option<Column>, u64>>> {
        // Numbers by names: whole after any panic.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
