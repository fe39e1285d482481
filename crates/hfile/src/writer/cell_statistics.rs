//! Statistics about the cells of a file being written.

use cell::{Cell, CellType};

use crate::info::TimeRange;

/// Statistics about all cells.
pub(super) struct CellStatistics {
    pub(super) entries: u64,
    pub(super) key_bytes: u64,
    pub(super) value_bytes: u64,
    pub(super) tags_len_max: usize,
    pub(super) seq_id_max: u64,
    pub(super) time_range: TimeRange,
    pub(super) earliest_put: i64,
    pub(super) delete_family_count: u64,
    pub(super) rows: u64,
    // Number of cells that reads skip.
    pub(super) unreadable: u64,
    // Whether all cells are puts without tags.
    pub(super) is_plain: bool,
}

impl CellStatistics {
    pub(super) fn new() -> CellStatistics {
        CellStatistics {
            entries: 0,
            key_bytes: 0,
            value_bytes: 0,
            tags_len_max: 0,
            seq_id_max: 0,
            time_range: TimeRange::EMPTY,
            earliest_put: i64::MAX,
            delete_family_count: 0,
            rows: 0,
            unreadable: 0,
            is_plain: true,
        }
    }

    pub(super) fn add(&mut self, cell: &Cell<'_>, is_new_row: bool) {
        self.entries += 1;
        self.rows += u64::from(is_new_row);
        self.is_plain &= cell.kind() == CellType::Put && cell.tags.is_empty();
        self.key_bytes += cell.key.len() as u64;
        self.value_bytes += cell.value.len() as u64;
        self.tags_len_max = self.tags_len_max.max(cell.tags.len());
        self.seq_id_max = self.seq_id_max.max(cell.seq_id);
        self.unreadable += u64::from(!cell.is_readable());
        let timestamp = cell.timestamp();
        self.time_range.include(timestamp);
        match cell.kind() {
            CellType::Put => self.earliest_put = self.earliest_put.min(timestamp),
            // The marker hides all older versions, so a read of any older time needs this file.
            CellType::DeleteColumn | CellType::DeleteFamily => self.time_range.include(0),
            _ => {}
        }
        self.delete_family_count += u64::from(deletes_family(cell));
    }
}

pub(super) fn deletes_family(cell: &Cell<'_>) -> bool {
    matches!(cell.kind(), CellType::DeleteFamily | CellType::DeleteFamilyVersion)
}
