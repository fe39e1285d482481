//! Reads and prints the cells of a file.

use std::io::Write;
use std::sync::Arc;

use base::text::to_string_binary;
use cell::{Cell, CellOrder, KeyBuf, KeyValue, tags};
use fs::IoClass;
use hfile::{Reader, Walk};

use super::HFileOptions;
use super::key::format_key;
use crate::Error;

/// Stands at the first cell of the file, or of a row and the rows after it.
pub(super) async fn first(file: &Arc<Reader>, row: Option<&[u8]>) -> Result<Walk, Error> {
    let mut walk = Walk::new(file, IoClass::Read, 0);
    walk.seek(KeyBuf::first_on_row(row.unwrap_or_default()).as_slice()).await?;
    Ok(walk)
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
