//! Builds the sidecar of a file while its data blocks are written.

use std::collections::HashMap;

use bytes::Bytes;
use cell::{Cell, CellType};

use super::catalog::{Catalog, CatalogEntry};
use super::directory::{Directory, RowMark};
use super::strip::StripBuilder;
use super::{ROWS_MAX, SidecarLocation};
use crate::block::kind::BlockKind;
use crate::index::Target;
use crate::info::TimeRange;
use crate::output::Output;

/// Number of data blocks in a stretch. With HBase's default block size that is 8 MiB of cells, so a
/// strip of one column has some KiB.
const STRETCH_BLOCKS: usize = 128;
/// Maximum columns of a stretch with strips. Rows with very many different columns are not read by
/// column.
const COLUMNS_MAX: usize = 1024;
/// Maximum bytes that are buffered for a stretch with strips.
const BYTES_MAX: usize = 64 << 20;

/// Collects the cells of a file by column.
pub(crate) struct SidecarWriter {
    family: Bytes,
    catalog: Catalog,
    stretch: Stretch,
    row: RowBuffer,
    is_block_begun: bool,
}

/// The complete rows of a stretch.
struct Stretch {
    start_row: Bytes,
    block_offset: u64,
    blocks: usize,
    rows: u32,
    summary: CellSummary,
    marks: Vec<RowMark>,
    row_keys: StripBuilder,
    strips: Strips,
}

/// The row that is being added. It belongs to the stretch that contains its last cell.
#[derive(Default)]
struct RowBuffer {
    is_begun: bool,
    key: Vec<u8>,
    is_marked: bool,
    summary: CellSummary,
    qualifiers: Vec<u8>,
    values: Vec<u8>,
    // For each cell, the ends of its qualifier and value.
    ends: Vec<(usize, usize)>,
    exceeds_limits: bool,
}

#[derive(Clone, Copy)]
struct CellSummary {
    is_plain: bool,
    seq_id_max: u64,
    timestamps: TimeRange,
}

impl Default for CellSummary {
    fn default() -> CellSummary {
        CellSummary { is_plain: true, seq_id_max: 0, timestamps: TimeRange { min: i64::MAX, max: i64::MIN } }
    }
}

impl CellSummary {
    fn of(cell: &Cell<'_>) -> CellSummary {
        let timestamp = cell.timestamp();
        CellSummary {
            is_plain: cell.kind() == CellType::Put && cell.tags.is_empty(),
            seq_id_max: cell.seq_id,
            timestamps: TimeRange { min: timestamp, max: timestamp },
        }
    }

    fn add(&mut self, other: &CellSummary) {
        self.is_plain &= other.is_plain;
        self.seq_id_max = self.seq_id_max.max(other.seq_id_max);
        self.timestamps.include(other.timestamps.min);
        self.timestamps.include(other.timestamps.max);
    }
}

/// The columns of a stretch.
#[derive(Default)]
struct Strips {
    by_qualifier: HashMap<Vec<u8>, usize>,
    list: Vec<(Vec<u8>, StripBuilder)>,
    bytes: usize,
    are_too_many: bool,
}

impl Strips {
    /// Adds a value and returns the index of its column. `hint` is the likely index.
    fn add(&mut self, hint: usize, row: u32, qualifier: &[u8], value: &[u8]) -> usize {
        if self.are_too_many {
            return hint;
        }
        let known = match self.list.get(hint) {
            Some((name, _)) if name == qualifier => Some(hint),
            _ => self.by_qualifier.get(qualifier).copied(),
        };
        let at = known.unwrap_or_else(|| {
            self.by_qualifier.insert(qualifier.to_vec(), self.list.len());
            self.list.push((qualifier.to_vec(), StripBuilder::default()));
            self.list.len() - 1
        });
        let strip = &mut self.list[at].1;
        let before = strip.len();
        strip.push(row, value);
        self.bytes += strip.len() - before;
        if self.list.len() > COLUMNS_MAX || self.bytes > BYTES_MAX {
            self.discard();
        }
        at
    }

    /// Drops all strips, so that the excess is not buffered.
    fn discard(&mut self) {
        *self = Strips { are_too_many: true, ..Strips::default() };
    }
}

impl Stretch {
    fn starting(start_row: Bytes, block_offset: u64) -> Stretch {
        Stretch {
            start_row,
            block_offset,
            blocks: 0,
            rows: 0,
            summary: CellSummary::default(),
            marks: Vec::new(),
            row_keys: StripBuilder::default(),
            strips: Strips::default(),
        }
    }

    fn add(&mut self, row: &mut RowBuffer) {
        self.summary.add(&row.summary);
        if row.is_marked || self.rows == 0 {
            self.marks.push(RowMark { row: Bytes::copy_from_slice(&row.key), row_index: self.rows });
        }
        if row.exceeds_limits || self.rows as usize >= ROWS_MAX {
            self.strips.discard();
        }
        if self.summary.is_plain && !self.strips.are_too_many {
            self.row_keys.push(self.rows, &row.key);
            let (mut hint, mut starts) = (0, (0, 0));
            for ends in &row.ends {
                let qualifier = &row.qualifiers[starts.0..ends.0];
                let value = &row.values[starts.1..ends.1];
                hint = self.strips.add(hint, self.rows, qualifier, value) + 1;
                starts = *ends;
            }
        }
        self.rows += 1;
        row.is_begun = false;
    }

    /// Writes the strips and the directory. Returns the location of the directory.
    fn put(self, family: Bytes, out: &mut Output) -> Target {
        let CellSummary { is_plain, seq_id_max, timestamps } = self.summary;
        let mut directory = Directory::new(self.rows as usize, is_plain, seq_id_max, timestamps);
        (directory.family, directory.marks) = (family, self.marks);
        if is_plain && !self.strips.are_too_many {
            directory.row_keys =
                Some(SidecarLocation(out.put(BlockKind::Meta, &self.row_keys.payload(self.rows))));
            for (qualifier, strip) in &self.strips.list {
                directory.add_strip(qualifier, out.put(BlockKind::Meta, &strip.payload(self.rows)));
            }
        }
        out.put(BlockKind::Meta, &directory.payload())
    }
}

impl RowBuffer {
    fn begin(&mut self, key: &[u8], is_marked: bool) {
        self.key.clear();
        self.key.extend_from_slice(key);
        (self.is_begun, self.is_marked, self.summary) = (true, is_marked, CellSummary::default());
        self.qualifiers.clear();
        self.values.clear();
        self.ends.clear();
        self.exceeds_limits = false;
    }

    fn add(&mut self, cell: &Cell<'_>) {
        self.summary.add(&CellSummary::of(cell));
        self.exceeds_limits |=
            self.ends.len() > COLUMNS_MAX || self.values.len() + cell.value.len() > BYTES_MAX;
        if !self.summary.is_plain || self.exceeds_limits {
            return;
        }
        let start = self.ends.len().checked_sub(2).map_or(0, |before| self.ends[before].0);
        let is_older_version = !self.ends.is_empty() && &self.qualifiers[start..] == cell.qualifier();
        if !is_older_version {
            self.qualifiers.extend_from_slice(cell.qualifier());
            self.values.extend_from_slice(cell.value);
            self.ends.push((self.qualifiers.len(), self.values.len()));
        }
    }
}

impl SidecarWriter {
    pub(crate) fn new() -> SidecarWriter {
        SidecarWriter {
            family: Bytes::new(),
            catalog: Catalog::default(),
            stretch: Stretch::starting(Bytes::new(), 0),
            row: RowBuffer::default(),
            is_block_begun: false,
        }
    }

    /// Starts a data block with the index key row `index_row`. If the current stretch is large
    /// enough, the rows before `index_row` complete it.
    pub(crate) fn begin_block(&mut self, index_row: &[u8], out: &mut Output) {
        // A row that spans very many blocks starts only one stretch.
        let is_large = self.stretch.blocks >= STRETCH_BLOCKS || self.stretch.rows as usize >= ROWS_MAX / 2;
        if is_large && self.stretch.start_row != index_row {
            if self.row.is_begun && self.row.key[..] < *index_row {
                self.stretch.add(&mut self.row);
            }
            let next = Stretch::starting(Bytes::copy_from_slice(index_row), 0);
            self.put(next, out);
        }
        if self.catalog.entries.is_empty() && self.stretch.blocks == 0 {
            self.stretch.start_row = Bytes::copy_from_slice(index_row);
        }
        if self.stretch.blocks == 0 {
            self.stretch.block_offset = out.len();
        }
        self.stretch.blocks += 1;
        self.is_block_begun = true;
    }

    /// Adds the next cell of the file.
    pub(crate) fn add(&mut self, cell: &Cell<'_>, is_new_row: bool) {
        if is_new_row {
            if self.row.is_begun {
                self.stretch.add(&mut self.row);
            }
            self.row.begin(cell.row(), std::mem::take(&mut self.is_block_begun));
        }
        if self.family.is_empty() {
            self.family = Bytes::copy_from_slice(cell.family());
        }
        // Files of a store have a single family.
        self.row.exceeds_limits |= self.family != cell.family();
        self.row.add(cell);
    }

    fn put(&mut self, next: Stretch, out: &mut Output) {
        let stretch = std::mem::replace(&mut self.stretch, next);
        let (start_row, block_offset) = (stretch.start_row.clone(), stretch.block_offset);
        let directory = SidecarLocation(stretch.put(self.family.clone(), out));
        self.catalog.entries.push(CatalogEntry { start_row, block_offset, directory });
    }

    /// Writes the remaining stretch and the catalog after the last data block. Returns the location
    /// of the catalog.
    pub(crate) fn finish(mut self, out: &mut Output) -> Target {
        if self.row.is_begun {
            self.stretch.add(&mut self.row);
        }
        if self.stretch.rows > 0 {
            self.put(Stretch::starting(Bytes::new(), 0), out);
        }
        out.put(BlockKind::Meta, &self.catalog.payload())
    }
}
