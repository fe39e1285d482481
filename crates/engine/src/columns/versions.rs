//! Rows of which more than the newest version of a column is asked for.
//!
//! Such a row becomes a row for each timestamp that a wanted cell of it has, the newest first: each has the values that were
//! written at that time, and null in the columns that nothing was written to then. So values that were written together stay
//! together, and each version of a column is counted once. A row without wanted cells is one row of nulls, as it is without
//! versions.

use std::cmp::Reverse;

use cell::{Cell, KeyValue};

use crate::columns::rows::{Rows, check_bytes};
use crate::error::Result;

/// The wanted cells of one row, gathered until it ends.
#[derive(Default)]
pub(super) struct Versions {
    row: Vec<u8>,
    is_begun: bool,
    cells: Vec<KeyValue>,
    // Of those cells, about.
    bytes: usize,
}

impl Versions {
    /// Whether the cell is of the row that is being gathered.
    pub(super) fn is_current(&self, row: &[u8]) -> bool {
        self.is_begun && self.row == row
    }

    /// The row that is, or was, being gathered.
    pub(super) fn row(&self) -> &[u8] {
        &self.row
    }

    /// How many rows the gathered one becomes, at most, and about how many bytes it has.
    pub(super) fn gathered(&self) -> (usize, usize) {
        (self.cells.len().max(usize::from(self.is_begun)), self.bytes)
    }

    /// Takes a cell, if `rows` want it; of another row only when the one before it was [unfolded](Versions::unfold).
    ///
    /// # Errors
    /// [`Error::BadRequest`](crate::error::Error::BadRequest) where the row has too many bytes of such cells.
    pub(super) fn add(&mut self, cell: &Cell<'_>, rows: &Rows) -> Result<()> {
        if !self.is_begun {
            self.is_begun = true;
            self.row.clear();
            self.row.extend_from_slice(cell.row());
        }
        if rows.want(cell) {
            self.bytes += cell.serialized_len() + size_of::<KeyValue>();
            check_bytes(cell.row(), self.bytes)?;
            self.cells.push(cell.to_key_value());
        }
        Ok(())
    }

    /// Forgets the gathered row, whose cells come again.
    pub(super) fn forget(&mut self) {
        (self.is_begun, self.bytes) = (false, 0);
        self.cells.clear();
    }

    /// Gives the gathered row to `rows`, as a row for each time.
    ///
    /// # Errors
    /// As [`Rows::cell`]; where it would be too many rows, before there is any.
    pub(super) fn unfold(&mut self, rows: &mut Rows) -> Result<()> {
        if !std::mem::take(&mut self.is_begun) {
            return Ok(());
        }
        // Within one time they stay in the order of cells, which rows are taken in.
        let mut cells = std::mem::take(&mut self.cells);
        self.bytes = 0;
        cells.sort_by_key(|cell| Reverse(cell.view(0).timestamp()));
        if cells.is_empty() {
            return rows.begin(&self.row);
        }
        let at_once = |one: &KeyValue, next: &KeyValue| one.view(0).timestamp() == next.view(0).timestamp();
        rows.check_rows(&self.row, cells.chunk_by(at_once).count())?;
        for times in cells.chunk_by(at_once) {
            rows.begin(&self.row)?;
            times.iter().try_for_each(|cell| rows.cell(&cell.view(0)))?;
        }
        Ok(())
    }
}
