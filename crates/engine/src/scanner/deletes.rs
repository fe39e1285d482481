//! The delete markers met in a row, and what they hide.
//!
//! Cells come in key order, so a column's markers are met before the puts that they hide, and of one column only the
//! last marker need be known. Source: HBase `ScanDeleteTracker`.

use cell::{Cell, CellType};

const DELETE_FAMILY: u8 = CellType::DeleteFamily as u8;
const DELETE_FAMILY_VERSION: u8 = CellType::DeleteFamilyVersion as u8;
const DELETE_COLUMN: u8 = CellType::DeleteColumn as u8;

/// What the markers met so far say of a put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Nothing hides it.
    Lives,
    /// It and all older versions of its column are hidden.
    ColumnHidden,
    /// It is hidden, older versions may not be.
    VersionHidden,
}

/// The markers met in the current row.
#[derive(Default)]
pub(crate) struct Deletes {
    // Everything of the family up to this timestamp.
    family: Option<i64>,
    // The family at exactly these timestamps; descending, as they come.
    family_versions: Vec<i64>,
    // The last marker of a column, if `column` is set: its qualifier, type and timestamp.
    column: Option<(u8, i64)>,
    qualifier: Vec<u8>,
}

impl Deletes {
    /// Forgets all markers: a new row begins.
    pub(crate) fn clear(&mut self) {
        self.family = None;
        self.family_versions.clear();
        self.column = None;
    }

    /// Whether no marker was met yet.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.family.is_none() && self.column.is_none() && self.family_versions.is_empty()
    }

    /// Takes note of a marker.
    pub(crate) fn add(&mut self, marker: &Cell<'_>) {
        let timestamp = marker.timestamp();
        if self.family.is_some_and(|family| timestamp <= family) {
            return;
        }
        match marker.type_code() {
            DELETE_FAMILY => self.family = Some(timestamp),
            DELETE_FAMILY_VERSION => self.family_versions.push(timestamp),
            type_code => {
                // A marker of the whole column covers later ones of single versions.
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

    /// What becomes of `put`, which comes behind all markers noted.
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
