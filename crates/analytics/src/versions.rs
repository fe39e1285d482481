//! Rows with more than the newest version of a column.
//!
//! Such a row becomes one row for each timestamp of its wanted cells, newest first. Each has the
//! values that were written at that timestamp, and nulls in all other columns. So values that were
//! written together stay together, and each version of a column is counted once. A row without
//! wanted cells becomes one row of nulls, as it does without versions.

use std::cmp::Reverse;

use cell::{Cell, KeyValue};
use engine::error::Result;

use crate::rows::{RowsBuilder, check_bytes};

/// Collects the wanted cells of one row until it ends.
#[derive(Default)]
pub(crate) struct Versions {
    row: Vec<u8>,
    is_begun: bool,
    cells: Vec<KeyValue>,
    // Estimated bytes of the cells.
    bytes: usize,
}

impl Versions {
    /// Whether the cell is of the row that is being collected.
    pub(crate) fn is_current(&self, row: &[u8]) -> bool {
        self.is_begun && self.row == row
    }

    /// The row that is being collected, or was collected last.
    pub(crate) fn row(&self) -> &[u8] {
        &self.row
    }

    /// Maximum number of rows that the collected row becomes, and their estimated bytes.
    pub(crate) fn collected(&self) -> (usize, usize) {
        (self.cells.len().max(usize::from(self.is_begun)), self.bytes)
    }

    /// Adds a cell, if `rows` wants it. A cell of another row may be added only after the previous
    /// row was [unfolded](Versions::unfold).
    ///
    /// # Errors
    /// [`Error::BadRequest`](engine::error::Error::BadRequest) if the wanted cells of the row have
    /// too many bytes.
    pub(crate) fn add(&mut self, cell: &Cell<'_>, rows: &RowsBuilder) -> Result<()> {
        if !self.is_begun {
            self.is_begun = true;
            self.row.clear();
            self.row.extend_from_slice(cell.row());
        }
        debug_assert!(self.row == cell.row(), "cells are collected of one row at a time");
        if rows.wants(cell) {
            self.bytes += cell.serialized_len() + size_of::<KeyValue>();
            check_bytes(cell.row(), self.bytes)?;
            self.cells.push(cell.to_key_value());
        }
        Ok(())
    }

    /// Drops the collected row. Its cells come again.
    pub(crate) fn discard(&mut self) {
        (self.is_begun, self.bytes) = (false, 0);
        self.cells.clear();
    }

    /// Passes the collected row to `rows`, as one row per timestamp.
    ///
    /// # Errors
    /// As [`RowsBuilder::cell`]. If there are too many rows, the error is returned before any of
    /// them is passed.
    pub(crate) fn unfold(&mut self, rows: &mut RowsBuilder) -> Result<()> {
        if !std::mem::take(&mut self.is_begun) {
            return Ok(());
        }
        // The sort is stable: cells of one timestamp stay in the order of cells, as rows require.
        let mut cells = std::mem::take(&mut self.cells);
        self.bytes = 0;
        cells.sort_by_key(|cell| Reverse(cell.view(0).timestamp()));
        if cells.is_empty() {
            return rows.begin(&self.row);
        }
        let same_time = |one: &KeyValue, next: &KeyValue| one.view(0).timestamp() == next.view(0).timestamp();
        rows.check_rows(&self.row, cells.chunk_by(same_time).count())?;
        for times in cells.chunk_by(same_time) {
            rows.begin(&self.row)?;
            times.iter().try_for_each(|cell| rows.cell(&cell.view(0)))?;
        }
        Ok(())
    }
}
