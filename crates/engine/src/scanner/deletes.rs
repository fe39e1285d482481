//! The delete markers of a row, and what they hide.
//!
//! Cells come in key order, so a column's markers come before the puts that they hide. Only the
//! last marker of one column is needed. Source: HBase `ScanDeleteTracker`.

use cell::{Cell, CellType};

const DELETE_FAMILY: u8 = CellType::DeleteFamily as u8;
const DELETE_FAMILY_VERSION: u8 = CellType::DeleteFamilyVersion as u8;
const DELETE_COLUMN: u8 = CellType::DeleteColumn as u8;

/// The effect of the markers so far on a put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The put is visible.
    Lives,
    /// The put and all older versions of its column are hidden.
    ColumnHidden,
    /// The put is hidden; older versions may be visible.
    VersionHidden,
}

/// The markers of the current row so far.
#[derive(Default)]
pub(crate) struct DeleteTracker {
    // Hides all cells of the family up to this timestamp.
    family: Option<i64>,
    // Hide the cells of the family with exactly these timestamps; descending.
    family_versions: Vec<i64>,
    // Type and timestamp of the last marker of a column, which is `qualifier`.
    column: Option<(u8, i64)>,
    qualifier: Vec<u8>,
}

impl DeleteTracker {
    /// Removes all markers, for a new row.
    pub(crate) fn clear(&mut self) {
        self.family = None;
        self.family_versions.clear();
        self.column = None;
    }

    /// Whether there is no marker.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.family.is_none() && self.column.is_none() && self.family_versions.is_empty()
    }

    /// Adds a marker.
    pub(crate) fn add(&mut self, marker: &Cell<'_>) {
        let timestamp = marker.timestamp();
        if self.family.is_some_and(|family| timestamp <= family) {
            return;
        }
        match marker.type_code() {
            DELETE_FAMILY => self.family = Some(timestamp),
            DELETE_FAMILY_VERSION => self.family_versions.push(timestamp),
            type_code => {
                // A marker of the whole column covers later markers of single versions.
                let covered = self.column.is_some_and(|(covering, _)| type_code < covering)
                    && self.qualifier == marker.qualifier();
                if !covered {
                    self.column = Some((type_code, timestamp));
                    self.qualifier.clear();
                    self.qualifier.extend_from_slice(marker.qualifier());
                }
            }
        }
    }

    /// The effect of the markers on `put`. All markers that may hide it must have been added.
    pub(crate) fn fate(&mut self, put: &Cell<'_>) -> Fate {
        let timestamp = put.timestamp();
        if self.family.is_some_and(|family| timestamp <= family) {
            return Fate::ColumnHidden;
        }
        if self.family_versions.binary_search_by(|known| timestamp.cmp(known)).is_ok() {
            return Fate::VersionHidden;
        }
        let Some((type_code, deleted_at)) = self.column else {
            return Fate::Lives;
        };
        if self.qualifier != put.qualifier() {
            self.column = None;
            return Fate::Lives;
        }
        match type_code {
            DELETE_COLUMN => Fate::ColumnHidden,
            _ if timestamp == deleted_at => Fate::VersionHidden,
            _ => {
                self.column = None;
                Fate::Lives
            }
        }
    }
}
