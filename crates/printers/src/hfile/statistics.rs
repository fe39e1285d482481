//! Statistics of the cells and rows of a file.

use std::io::Write;

use base::text::to_string_binary;
use cell::Cell;

use super::histogram::Histogram;
use crate::Error;

/// Sizes of keys, values and rows.
#[derive(Clone, Debug, Default)]
pub(super) struct Statistics {
    key_bytes: Histogram,
    value_bytes: Histogram,
    row_bytes: Histogram,
    row_cells: Histogram,
    row: Row,
    // The first of the rows with most bytes, and its bytes.
    biggest: (Vec<u8>, u64),
}

/// The row that is being read.
#[derive(Clone, Debug, Default)]
struct Row {
    name: Vec<u8>,
    bytes: u64,
    cells: u64,
    // Bytes of the key of its last cell.
    key_bytes: u64,
}

impl Statistics {
    /// Adds the next cell of the file.
    pub(super) fn add(&mut self, cell: &Cell<'_>) {
        self.value_bytes.add(cell.value.len() as u64);
        if self.row.cells > 0 && self.row.name != cell.row() {
            self.end_row();
        }
        if self.row.cells == 0 {
            self.row.name.clear();
            self.row.name.extend_from_slice(cell.row());
        }
        self.row.bytes += cell.serialized_len() as u64;
        self.row.cells += 1;
        self.row.key_bytes = cell.key.len() as u64;
    }

    fn end_row(&mut self) {
        let Row { name, bytes, cells, key_bytes } = std::mem::take(&mut self.row);
        self.key_bytes.add(key_bytes);
        self.row_bytes.add(bytes);
        self.row_cells.add(cells);
        if bytes > self.biggest.1 {
            self.biggest = (name, bytes);
        }
    }

    /// Ends the last row and prints everything.
    pub(super) fn print(mut self, out: &mut dyn Write, ranges: bool) -> Result<(), Error> {
        writeln!(out, "Stats:")?;
        if self.row.cells == 0 {
            return Ok(writeln!(out, "no data available for statistics")?);
        }
        self.end_row();
        self.key_bytes.print(out, "Key length", ranges)?;
        self.value_bytes.print(out, "Val length", ranges)?;
        self.row_bytes.print(out, "Row size (bytes)", ranges)?;
        self.row_cells.print(out, "Row size (columns)", ranges)?;
        Ok(writeln!(out, "\n\nKey of biggest row: {}", to_string_binary(&self.biggest.0))?)
    }
}
