//! Cells in order become vectors: of each row the first cell of each wanted column.

use std::cmp::Ordering;

use bytes::Bytes;
use cell::{Cell, CellType};
use columnar::{Column, Place, Unreadable, VectorBuilder};

use crate::columns::kept::Facts;
use crate::error::{Error, Result};

/// What a value takes beside its bytes, or a row that has none.
pub(super) const VALUE_BYTES: usize = 12;

/// Bytes of values, and of what a row takes beside them, that are gathered at most. Batches end long before, but not within a row.
const GATHERED_BYTES_MAX: usize = 256 << 20;

/// Takes cells row by row and builds a vector of each column.
pub(super) struct Rows {
    builders: Vec<VectorBuilder>,
    // Builders of cells, in the order of cells.
    cells: Vec<Target>,
    // Builders of parts of the row key.
    of_row: Vec<usize>,
    row: Vec<u8>,
    // Where in `cells` the next cell of the row may be.
    next: usize,
    facts: Facts,
    // Of all values as they were written, in each column that has them.
    bytes: usize,
    // Columns of one cell, at most.
    of_cell_max: usize,
    // The column of the last value that could not be read.
    unreadable: Option<usize>,
}

struct Target {
    family: Bytes,
    qualifier: Bytes,
    builder: usize,
}

impl Rows {
    pub(super) fn new(columns: &[Column]) -> Rows {
        let mut cells = Vec::new();
        let mut of_row = Vec::new();
        for (builder, column) in columns.iter().enumerate() {
            match &column.place {
                Place::Cell { family, qualifier } => {
                    cells.push(Target { family: family.clone(), qualifier: qualifier.clone(), builder });
                }
                Place::RowBytes { .. } | Place::RowPart { .. } => of_row.push(builder),
            }
        }
        cells.sort_by(|left, right| {
            (&left.family, &left.qualifier, left.builder).cmp(&(
                &right.family,
                &right.qualifier,
                right.builder,
            ))
        });
        let is_same =
            |one: &Target, next: &Target| (&one.family, &one.qualifier) == (&next.family, &next.qualifier);
        Rows {
            of_cell_max: cells.chunk_by(is_same).map(<[Target]>::len).max().unwrap_or(0),
            builders: columns.iter().map(VectorBuilder::new).collect(),
            cells,
            of_row,
            row: Vec::new(),
            next: 0,
            facts: Facts::none(),
            bytes: 0,
            unreadable: None,
        }
    }

    /// The place of the column whose value was the last that could not be read.
    pub(super) fn unreadable(&self) -> Option<usize> {
        self.unreadable
    }

    /// Whether the cell is of one of the columns.
    pub(super) fn want(&self, cell: &Cell<'_>) -> bool {
        let name = (cell.family(), cell.qualifier());
        self.cells.binary_search_by(|target| (&target.family[..], &target.qualifier[..]).cmp(&name)).is_ok()
    }

    /// About how many bytes of memory the vectors take so far.
    pub(super) fn heap_bytes(&self) -> usize {
        self.bytes + self.facts.rows * self.builders.len() * VALUE_BYTES
    }

    /// Bytes of all values so far, each as often as a column has it.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// How often, at most, bytes of cells become bytes of values: of row keys one is kept beside the parts that columns have.
    pub(super) fn copies_max(&self) -> usize {
        self.of_cell_max.max(self.of_row.len() + 1)
    }

    /// Whether so many rows of one key are too many.
    ///
    /// # Errors
    /// [`Error::BadRequest`] if they are.
    pub(super) fn check_rows(&self, row: &[u8], count: usize) -> Result<()> {
        let bytes = self.builders.len() * VALUE_BYTES + row.len() * (self.of_row.len() + 1);
        check_bytes(row, bytes.saturating_mul(count))
    }

    /// Rows so far.
    pub(super) fn len(&self) -> usize {
        self.facts.rows
    }

    pub(super) fn facts(&self) -> Facts {
        self.facts
    }

    /// Whether `row` is the one of the last cell.
    #[inline]
    pub(super) fn is_current(&self, row: &[u8]) -> bool {
        self.facts.rows > 0 && self.row == row
    }

    /// A row begins.
    ///
    /// # Errors
    /// [`Error::BadRequest`] where its key is not as a column says.
    pub(super) fn begin(&mut self, row: &[u8]) -> Result<()> {
        let rows = self.facts.rows;
        for target in &self.cells {
            self.builders[target.builder].fill(rows);
        }
        self.row.clear();
        self.row.extend_from_slice(row);
        self.next = 0;
        self.facts.rows += 1;
        for at in &self.of_row {
            let builder = &mut self.builders[*at];
            match builder.column().place.of_row(row) {
                Some(part) => {
                    self.bytes += part.len();
                    if let Err(unreadable) = builder.push(part) {
                        self.unreadable = Some(*at);
                        return Err(bad_value(&self.row, unreadable));
                    }
                }
                None => builder.push_null(),
            }
        }
        check_bytes(&self.row, self.bytes)
    }

    /// A cell of the current row, behind those before it.
    ///
    /// # Errors
    /// [`Error::BadRequest`] where its value is not as its column says.
    #[inline]
    pub(super) fn cell(&mut self, cell: &Cell<'_>) -> Result<()> {
        let timestamp = cell.timestamp();
        let facts = &mut self.facts;
        facts.seq_id_max = facts.seq_id_max.max(cell.seq_id);
        facts.timestamps = (facts.timestamps.0.min(timestamp), facts.timestamps.1.max(timestamp));
        facts.is_plain &= cell.kind() == CellType::Put && cell.tags.is_empty();
        if cell.kind() != CellType::Put {
            // What deletes has no value; where it stands nobody asks for the vectors.
            return Ok(());
        }
        while let Some(target) = self.cells.get(self.next) {
            match target.qualifier[..].cmp(cell.qualifier()) {
                Ordering::Equal if target.family == cell.family() => {
                    self.next += 1;
                    self.bytes += cell.value.len();
                    check_bytes(&self.row, self.bytes)?;
                    let builder = &mut self.builders[target.builder];
                    if let Err(unreadable) = builder.push(cell.value) {
                        self.unreadable = Some(target.builder);
                        return Err(bad_value(&self.row, unreadable));
                    }
                }
                order => match target.family[..].cmp(cell.family()).then(order) {
                    // The row has no such cell.
                    Ordering::Less => self.next += 1,
                    _ => return Ok(()),
                },
            }
        }
        Ok(())
    }

    /// The vectors, in the order of the columns, and begins anew.
    pub(super) fn take(&mut self) -> (Facts, Vec<columnar::Vector>) {
        let facts = std::mem::replace(&mut self.facts, Facts::none());
        self.bytes = 0;
        let builders = self.builders.iter_mut().map(|builder| {
            let fresh = VectorBuilder::new(builder.column());
            std::mem::replace(builder, fresh)
        });
        let vectors = builders.map(|mut builder| {
            builder.fill(facts.rows);
            builder.finish()
        });
        (facts, vectors.collect())
    }
}

/// Whether what is gathered, `row` the last of it, takes too many bytes.
///
/// # Errors
/// [`Error::BadRequest`] if it does.
#[inline]
pub(super) fn check_bytes(row: &[u8], bytes: usize) -> Result<()> {
    if bytes <= GATHERED_BYTES_MAX {
        return Ok(());
    }
    Err(bad_row(
        row,
        &format!(
            "what is asked of it takes more than {GATHERED_BYTES_MAX} bytes: ask for fewer columns, or versions"
        ),
    ))
}

fn bad_value(row: &[u8], unreadable: Unreadable) -> Error {
    bad_row(row, &unreadable.0)
}

#[cold]
fn bad_row(row: &[u8], what: &str) -> Error {
    const ROW_SHOWN_MAX: usize = 64;
    let shown = row.get(..ROW_SHOWN_MAX).unwrap_or(row);
    Error::bad_request(format!("row {}: {what}", shown.escape_ascii()))
}
