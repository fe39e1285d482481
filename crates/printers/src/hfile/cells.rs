//! Reads and prints the cells of a file.

use std::io::Write;
use std::sync::Arc;

use base::text::to_string_binary;
use cell::{Cell, CellOrder, KeyBuf, KeyValue, tags};
use hfile::{BlockSource, Cursor, Pinned, Reader, Stop};

use super::HFileOptions;
use super::key::format_key;
use crate::Error;

/// A position among the cells of a file.
pub(super) struct Position {
    cursor: Cursor,
    pinned: Pinned,
}

/// The first cell of the file, or of a row and the rows after it.
pub(super) async fn first(file: &Arc<Reader>, row: Option<&[u8]>) -> Result<Position, Error> {
    let (mut cursor, mut pinned) = (file.cursor(), Pinned::new(None));
    let key = KeyBuf::first_on_row(row.unwrap_or_default());
    drive(&mut pinned, |source| cursor.seek(key.as_slice(), source)).await?;
    Ok(Position { cursor, pinned })
}

impl Position {
    /// The cell; `None` after the last one.
    pub(super) fn cell(&self) -> Option<Cell<'_>> {
        self.cursor.cell()
    }

    /// Moves to the next cell.
    pub(super) async fn next(&mut self) -> Result<(), Error> {
        let Position { cursor, pinned } = self;
        drive(pinned, |source| cursor.next(source)).await
    }
}

/// Repeats a step until it succeeds, and loads the blocks that it misses.
pub(super) async fn drive<T>(
    pinned: &mut Pinned,
    mut step: impl FnMut(&dyn BlockSource) -> Result<T, Stop>,
) -> Result<T, Error> {
    loop {
        match step(pinned) {
            Ok(done) => {
                // A cursor holds its current block itself.
                pinned.clear();
                return Ok(done);
            }
            Err(Stop::Failed(error)) => return Err(error.into()),
            Err(Stop::Miss(miss)) => {
                for block in &miss.blocks {
                    pinned.supply(block.file.load(block).await?);
                }
            }
        }
    }
}

/// Prints cells, and warns about misplaced ones.
pub(super) struct CellPrinter<'a> {
    options: &'a HFileOptions,
    file: &'a str,
    previous: Option<KeyValue>,
}

impl<'a> CellPrinter<'a> {
    pub(super) fn new(options: &'a HFileOptions, file: &'a str) -> CellPrinter<'a> {
        CellPrinter { options, file, previous: None }
    }

    pub(super) fn print(
        &mut self,
        out: &mut dyn Write,
        warnings: &mut dyn Write,
        cell: &Cell<'_>,
    ) -> Result<(), Error> {
        if self.options.keys || self.options.values {
            write!(out, "K: {}", format_cell(cell))?;
            if self.options.values {
                write!(out, " V: {}", to_string_binary(cell.value))?;
                for (index, tag) in tags::iter(cell.tags).enumerate() {
                    let (kind, value) = (tag.kind, to_string_binary(tag.value));
                    write!(out, " T[{index}]: [Tag type : {kind}, value : {value}]")?;
                }
            }
            writeln!(out)?;
        }
        if self.options.checks_rows || self.options.checks_family {
            self.check(warnings, cell)?;
            self.previous = Some(cell.to_key_value());
        }
        Ok(())
    }

    fn check(&self, warnings: &mut dyn Write, cell: &Cell<'_>) -> Result<(), Error> {
        let previous = self.previous.as_ref().map(|previous| previous.view(0));
        let mut warn = |text: &str| -> Result<(), Error> {
            writeln!(warnings, "WARNING, {text}\n\tfilename -> {}", self.file)?;
            if let Some(previous) = &previous {
                writeln!(warnings, "\tprevious -> {}", format_key(previous.key))?;
            }
            Ok(writeln!(warnings, "\tcurrent  -> {}", format_key(cell.key))?)
        };
        if let Some(previous) = &previous {
            if self.options.checks_rows && CellOrder::Plain.compare_rows(previous.row(), cell.row()).is_gt() {
                warn("previous row is greater than current row")?;
            }
            if self.options.checks_family && previous.family() != cell.family() {
                warn("previous kv has different family compared to current key")?;
            }
        }
        if self.options.checks_family && !self.file.contains(&*String::from_utf8_lossy(cell.family())) {
            warn("filename does not match kv family")?;
        }
        Ok(())
    }
}

/// A cell in the form of HBase's `KeyValue.toString`.
fn format_cell(cell: &Cell<'_>) -> String {
    format!("{}/vlen={}/seqid={}", format_key(cell.key), cell.value.len(), cell.seq_id)
}
