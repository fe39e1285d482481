//! Rows of which more than the newest version of a column is asked for.
//!
//! Such a row becomes a row for each timestamp that a wanted cell of it has, the newest first: each has the values that were
//! written at that time, and null in the columns that nothing was written to then. So values that were written together stay
//! together, and each version of a column is counted once. A row without wanted cells is one row of nulls, as it is without
//! versions.

use std::cmp::Reverse;

use cell::{Cell, KeyValue};

use crate::columns::rows::Rows;
use crate::error::Result;

/// The wanted cells of one row, gathered until it ends.
#[derive(Default)]
pub(super) struct Versions {
    row: Vec<u8>,
    is_begun: bool,
    cells: Vec<KeyValue>,
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

    /// Takes a cell, if `rows` want it; of another row only when the one before it was [unfolded](Versions::unfold).
    pub(super) fn add(&mut self, cell: &Cell<'_>, rows: &Rows) {
        if !self.is_begun {
            self.is_begun = true;
            self.row.clear();
            self.row.extend_from_slice(cell.row());
        }
        if rows.want(cell) {
            self.cells.push(cell.to_key_value());
        }
    }

    /// Gives the gathered row to `rows`, as a row for each time.
    ///
    /// # Errors
    /// As [`Rows::cell`].
    pub(super) fn unfold(&mut self, rows: &mut Rows) -> Result<()> {
        if !std::mem::take(&mut self.is_begun) {
            return Ok(());
        }
        // Within one time they stay in the order of cells, which rows are taken in.
        let mut cells = std::mem::take(&mut self.cells);
        cells.sort_by_key(|cell| Reverse(cell.view(0).timestamp()));
        if cells.is_empty() {
            return rows.begin(&self.row);
        }
        for times in cells.chunk_by(|one, next| one.view(0).timestamp() == next.view(0).timestamp()) {
            rows.begin(&self.row)?;
            times.iter().try_for_each(|cell| rows.cell(&cell.view(0)))?;
        }
        Ok(())
    }
}
