//! Builds vectors from cells in order: for each row, the first cell of each wanted column.

use std::cmp::Ordering;

use bytes::Bytes;
use cell::{Cell, CellType};
use columnar::{Column, ColumnLocation, Unreadable, VectorBuilder};
use engine::error::{Error, Result};

use crate::entry::StretchFacts;

/// Memory of a value in addition to its bytes, or of a null.
pub(crate) const VALUE_BYTES: usize = 12;

/// Maximum bytes of collected values and of the memory for their rows. Batches are much smaller,
/// but they do not end within a row.
const COLLECTED_BYTES_MAX: usize = 256 << 20;

/// Receives cells row by row, and builds a vector for each column.
pub(crate) struct RowsBuilder {
    builders: Vec<VectorBuilder>,
    // Columns of cells, in the order of cells.
    cells: Vec<CellColumn>,
    // Builders for parts of the row key.
    row_builders: Vec<usize>,
    row: Vec<u8>,
    // Index in `cells` of the first column that the next cell of the row may belong to.
    next: usize,
    facts: StretchFacts,
    // Bytes of all values as they were written, counted once per column that has them.
    bytes: usize,
    // Maximum number of columns with the same cell.
    columns_per_cell_max: usize,
    // The column of the last value that could not be read.
    unreadable: Option<usize>,
}

struct CellColumn {
    family: Bytes,
    qualifier: Bytes,
    builder: usize,
}

impl RowsBuilder {
    pub(crate) fn new(columns: &[Column]) -> RowsBuilder {
        let mut cells = Vec::new();
        let mut row_builders = Vec::new();
        for (builder, column) in columns.iter().enumerate() {
            match &column.location {
                ColumnLocation::Cell { family, qualifier } => {
                    cells.push(CellColumn { family: family.clone(), qualifier: qualifier.clone(), builder });
                }
                ColumnLocation::RowBytes { .. } | ColumnLocation::RowPart { .. } => {
                    row_builders.push(builder)
                }
            }
        }
        cells.sort_by(|left, right| {
            (&left.family, &left.qualifier, left.builder).cmp(&(
                &right.family,
                &right.qualifier,
                right.builder,
            ))
        });
        let is_same = |one: &CellColumn, next: &CellColumn| {
            (&one.family, &one.qualifier) == (&next.family, &next.qualifier)
        };
        RowsBuilder {
            columns_per_cell_max: cells.chunk_by(is_same).map(<[CellColumn]>::len).max().unwrap_or(0),
            builders: columns.iter().map(VectorBuilder::new).collect(),
            cells,
            row_builders,
            row: Vec::new(),
            next: 0,
            facts: StretchFacts::none(),
            bytes: 0,
            unreadable: None,
        }
    }

    /// Index of the column of the last value that could not be read.
    pub(crate) fn unreadable(&self) -> Option<usize> {
        self.unreadable
    }

    /// Whether the cell belongs to a wanted column.
    pub(crate) fn wants(&self, cell: &Cell<'_>) -> bool {
        let name = (cell.family(), cell.qualifier());
        self.cells.binary_search_by(|target| (&target.family[..], &target.qualifier[..]).cmp(&name)).is_ok()
    }

    /// Estimated memory of the vectors so far, in bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.bytes + self.facts.rows * self.builders.len() * VALUE_BYTES
    }

    /// Bytes of all values so far, counted once per column that has them.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Maximum number of copies of a byte of a cell in the values. A row key is copied once itself,
    /// and at most once for each column of a part of it.
    pub(crate) fn copies_max(&self) -> usize {
        self.columns_per_cell_max.max(self.row_builders.len() + 1)
    }

    /// Checks whether `count` rows with the key `row` are too many.
    ///
    /// # Errors
    /// [`Error::BadRequest`] if they are.
    pub(crate) fn check_rows(&self, row: &[u8], count: usize) -> Result<()> {
        let bytes = self.builders.len() * VALUE_BYTES + row.len() * (self.row_builders.len() + 1);
        check_bytes(row, bytes.saturating_mul(count))
    }

    /// Number of rows so far.
    pub(crate) fn len(&self) -> usize {
        self.facts.rows
    }

    pub(crate) fn facts(&self) -> StretchFacts {
        self.facts
    }

    /// Whether `row` is the row of the last cell.
    #[inline]
    pub(crate) fn is_current(&self, row: &[u8]) -> bool {
        self.facts.rows > 0 && self.row == row
    }

    /// Begins a row.
    ///
    /// # Errors
    /// [`Error::BadRequest`] if its key does not fit the type of a column.
    pub(crate) fn begin(&mut self, row: &[u8]) -> Result<()> {
        let rows = self.facts.rows;
        for target in &self.cells {
            self.builders[target.builder].fill(rows);
        }
        self.row.clear();
        self.row.extend_from_slice(row);
        self.next = 0;
        self.facts.rows += 1;
        for at in &self.row_builders {
            let builder = &mut self.builders[*at];
            match builder.column().location.find_in_row(row) {
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

    /// Adds the next cell of the current row.
    ///
    /// # Errors
    /// [`Error::BadRequest`] if its value does not fit the type of its column.
    #[inline]
    pub(crate) fn cell(&mut self, cell: &Cell<'_>) -> Result<()> {
        debug_assert!(self.row == cell.row(), "a cell belongs to the row that was begun last");
        let timestamp = cell.timestamp();
        let facts = &mut self.facts;
        facts.seq_id_max = facts.seq_id_max.max(cell.seq_id);
        facts.timestamps = (facts.timestamps.0.min(timestamp), facts.timestamps.1.max(timestamp));
        facts.is_plain &= cell.kind() == CellType::Put && cell.tags.is_empty();
        if cell.kind() != CellType::Put {
            // A delete has no value. Vectors of rows with deletes are not used.
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

    /// Takes the facts, and the vectors in the order of the columns.
    pub(crate) fn take(&mut self) -> (StretchFacts, Vec<columnar::Vector>) {
        let facts = std::mem::replace(&mut self.facts, StretchFacts::none());
        self.bytes = 0;
        let builders = self.builders.iter_mut().map(|builder| {
            let fresh = VectorBuilder::new(builder.column());
            std::mem::replace(builder, fresh)
        });
        let vectors = builders.map(|mut builder| {
            builder.fill(facts.rows);
            debug_assert!(builder.len() == facts.rows, "each column has one value or null per row");
            builder.finish()
        });
        (facts, vectors.collect())
    }
}

/// Checks the bytes of the collected rows, of which `row` is the last one.
///
/// # Errors
/// [`Error::BadRequest`] if they are too many.
#[inline]
pub(crate) fn check_bytes(row: &[u8], bytes: usize) -> Result<()> {
    if bytes <= COLLECTED_BYTES_MAX {
        return Ok(());
    }
    Err(bad_row(
        row,
        &format!(
            "the requested values take more than {COLLECTED_BYTES_MAX} bytes (request fewer columns or versions)"
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
