//! Prints store files.

mod blocks;
mod cells;
mod description;
mod histogram;
mod key;
mod statistics;

use std::io::Write;
use std::sync::Arc;

use fs::{FilePath, FileSystem};
use hfile::{OpenOptions, Reader};

use crate::Error;
use cells::CellPrinter;
pub(crate) use key::type_name;
use statistics::Statistics;

/// What is printed of each file; the names are those of HBase's options.
#[derive(Clone, Debug, Default)]
pub struct HFileOptions {
    /// The names of the files (`-v`).
    pub verbose: bool,
    /// The keys of all cells (`-e`).
    pub keys: bool,
    /// The values and tags of all cells (`-p`).
    pub values: bool,
    /// Trailer, file info and Bloom filters (`-m`).
    pub metadata: bool,
    /// The root of the data index (`-b`).
    pub index: bool,
    /// The header of each block (`-h`).
    pub block_headers: bool,
    /// Statistics of keys, values and rows (`-s`).
    pub statistics: bool,
    /// Also the number of values by range (`-d`).
    pub ranges: bool,
    /// Warn about cells that are out of order (`-k`).
    pub checks_rows: bool,
    /// Warn about cells of a family that is not in the path of the file (`-a`).
    pub checks_family: bool,
    /// Only the cells of this row (`-w`).
    pub row: Option<Vec<u8>>,
}

impl HFileOptions {
    /// Whether cells are read.
    fn reads_cells(&self) -> bool {
        let prints = self.verbose || self.keys || self.values || self.has_statistics();
        prints || self.checks_rows || self.checks_family
    }

    fn has_statistics(&self) -> bool {
        self.statistics || self.ranges
    }
}

/// Prints store files one after the other.
pub struct HFilePrinter<'a> {
    options: &'a HFileOptions,
    out: &'a mut dyn Write,
    warnings: &'a mut dyn Write,
    // Cells read from all files.
    cells: u64,
    // Identifies the next file.
    file_id: u64,
}

impl<'a> HFilePrinter<'a> {
    /// Prints to `out`, and warnings about a file to `warnings`.
    pub fn new(
        options: &'a HFileOptions,
        out: &'a mut dyn Write,
        warnings: &'a mut dyn Write,
    ) -> HFilePrinter<'a> {
        HFilePrinter { options, out, warnings, cells: 0, file_id: 0 }
    }

    /// Prints a file. `name` is the name to show.
    ///
    /// # Errors
    /// [`Error`]; the parts before the damaged one are printed.
    pub async fn print(&mut self, fs: &dyn FileSystem, path: &FilePath, name: &str) -> Result<(), Error> {
        if self.options.verbose {
            writeln!(self.out, "Scanning -> {name}")?;
        }
        self.file_id += 1;
        let file = Reader::open(fs, path, self.file_id, OpenOptions::default()).await?;
        let statistics = self.print_cells(&file, name).await?;
        if self.options.metadata {
            description::print(self.out, &file, name).await?;
        }
        if self.options.index {
            blocks::print_index(self.out, &file)?;
        }
        if self.options.block_headers {
            blocks::print_headers(self.out, &file).await?;
        }
        if let Some(statistics) = statistics {
            statistics.print(self.out, self.options.ranges)?;
        }
        Ok(())
    }

    /// Ends the output: prints the number of cells that were read, if HBase does.
    ///
    /// # Errors
    /// [`Error::Output`].
    pub fn finish(self) -> Result<(), Error> {
        if self.options.verbose || self.options.keys || self.options.values {
            writeln!(self.out, "Scanned kv count -> {}", self.cells)?;
        }
        Ok(())
    }

    async fn print_cells(&mut self, file: &Arc<Reader>, name: &str) -> Result<Option<Statistics>, Error> {
        let mut statistics = self.options.has_statistics().then(Statistics::default);
        if !self.options.reads_cells() {
            return Ok(None);
        }
        let mut printer = CellPrinter::new(self.options, name);
        let row = self.options.row.as_deref();
        let mut step = cells::first(file, row).await?;
        while let Some(cell) = step.cell() {
            if row.is_some_and(|row| cell.row() != row) {
                break;
            }
            self.cells += 1;
            if let Some(statistics) = &mut statistics {
                statistics.add(&cell);
            }
            printer.print(self.out, self.warnings, &cell)?;
            step.next().await?;
        }
        Ok(statistics)
    }
}
