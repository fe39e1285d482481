//! Making the sidecar of a file beside its data blocks.

use std::collections::HashMap;

use bytes::Bytes;
use cell::{Cell, CellType};

use super::catalog::{Catalog, CatalogEntry};
use super::directory::{Directory, Mark};
use super::strip::StripBuilder;
use super::{ROWS_MAX, SidecarPlace};
use crate::block::kind::BlockKind;
use crate::index::Target;
use crate::info::TimeRange;
use crate::output::Output;

/// Data blocks of a stretch: at HBase's usual size of blocks 8 MiB of cells, so that a strip of one column is some KiB.
const STRETCH_BLOCKS: usize = 128;
/// Columns of a stretch beyond which it has no strips: rows of very many different columns are not read by columns.
const COLUMNS_MAX: usize = 1024;
/// The same for bytes that wait for the stretch's end.
const BYTES_MAX: usize = 64 << 20;

/// Gathers the cells of a file by columns.
pub(crate) struct SidecarWriter {
    family: Bytes,
    catalog: Catalog,
    stretch: Stretch,
    row: Row,
    is_block_begun: bool,
}

/// What is known of the rows of a stretch that are complete.
struct Stretch {
    start_row: Bytes,
    block_offset: u64,
    blocks: usize,
    rows: u32,
    facts: Facts,
    marks: Vec<Mark>,
    row_keys: StripBuilder,
    strips: Strips,
}

/// The row whose cells are coming; it belongs to the stretch that its last cell is in.
#[derive(Default)]
struct Row {
    is_begun: bool,
    key: Vec<u8>,
    is_marked: bool,
    facts: Facts,
    qualifiers: Vec<u8>,
    values: Vec<u8>,
    // Where those of each cell end.
    ends: Vec<(usize, usize)>,
    is_unfit: bool,
}

#[derive(Clone, Copy)]
struct Facts {
    is_plain: bool,
    seq_id_max: u64,
    timestamps: TimeRange,
}

impl Default for Facts {
    fn default() -> Facts {
        Facts { is_plain: true, seq_id_max: 0, timestamps: TimeRange { min: i64::MAX, max: i64::MIN } }
    }
}

impl Facts {
    fn of(cell: &Cell<'_>) -> Facts {
        let timestamp = cell.timestamp();
        Facts {
            is_plain: cell.kind() == CellType::Put && cell.tags.is_empty(),
            seq_id_max: cell.seq_id,
            timestamps: TimeRange { min: timestamp, max: timestamp },
        }
    }

    fn add(&mut self, other: &Facts) {
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
    /// Adds a value; `hint` is where its column may be. Where it is.
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
            self.give_up();
        }
        at
    }

    /// Lets go of all at once: what is too much is not to be in memory.
    fn give_up(&mut self) {
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
            facts: Facts::default(),
            marks: Vec::new(),
            row_keys: StripBuilder::default(),
            strips: Strips::default(),
        }
    }

    fn add(&mut self, row: &mut Row) {
        self.facts.add(&row.facts);
        if row.is_marked || self.rows == 0 {
            self.marks.push(Mark { row: Bytes::copy_from_slice(&row.key), place: self.rows });
        }
        if row.is_unfit || self.rows as usize >= ROWS_MAX {
            self.strips.give_up();
        }
        if self.facts.is_plain && !self.strips.are_too_many {
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

    /// Writes the strips and the directory; where that is.
    fn put(self, family: Bytes, out: &mut Output) -> Target {
        let Facts { is_plain, seq_id_max, timestamps } = self.facts;
        let mut directory = Directory::new(self.rows as usize, is_plain, seq_id_max, timestamps);
        (directory.family, directory.marks) = (family, self.marks);
        if is_plain && !self.strips.are_too_many {
            directory.row_keys =
                Some(SidecarPlace(out.put(BlockKind::Meta, &self.row_keys.payload(self.rows))));
            for (qualifier, strip) in &self.strips.list {
                directory.add_strip(qualifier, out.put(BlockKind::Meta, &strip.payload(self.rows)));
            }
        }
        out.put(BlockKind::Meta, &directory.payload())
    }
}

impl Row {
    fn begin(&mut self, key: &[u8], is_marked: bool) {
        self.key.clear();
        self.key.extend_from_slice(key);
        (self.is_begun, self.is_marked, self.facts) = (true, is_marked, Facts::default());
        self.qualifiers.clear();
        self.values.clear();
        self.ends.clear();
        self.is_unfit = false;
    }

    fn add(&mut self, cell: &Cell<'_>) {
        self.facts.add(&Facts::of(cell));
        self.is_unfit |= self.ends.len() > COLUMNS_MAX || self.values.len() + cell.value.len() > BYTES_MAX;
        if !self.facts.is_plain || self.is_unfit {
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
            row: Row::default(),
            is_block_begun: false,
        }
    }

    /// A data block begins, which the index will have under a key of `index_row`; the rows before that are a stretch of
    /// their own if it is large enough.
    pub(crate) fn begin_block(&mut self, index_row: &[u8], out: &mut Output) {
        // A row of very many blocks begins but once.
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

    /// A cell, behind those before it.
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
        // Files of stores have one.
        self.row.is_unfit |= self.family != cell.family();
        self.row.add(cell);
    }

    fn put(&mut self, next: Stretch, out: &mut Output) {
        let stretch = std::mem::replace(&mut self.stretch, next);
        let (start_row, block_offset) = (stretch.start_row.clone(), stretch.block_offset);
        let directory = SidecarPlace(stretch.put(self.family.clone(), out));
        self.catalog.entries.push(CatalogEntry { start_row, block_offset, directory });
    }

    /// Writes what is left, behind the last data block; where the catalog is.
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
