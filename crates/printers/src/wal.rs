//! Prints logs.

mod json;
mod text;

use std::io::Write;

use cell::{Cell, KeyValue};
use fs::{FilePath, FileSystem};
use wal::{Entry, LogReader};

use crate::Error;

/// What HBase prints of the header of a log. Other codecs cannot be read.
const HEADER: &str = "Writer Classes: ProtobufLogWriter AsyncProtobufLogWriter
Cell Codec Class: org.apache.hadoop.hbase.regionserver.wal.WALCellCodec";
/// Bytes that a cell in memory takes in HBase in addition to its array (`KeyValue.FIXED_OVERHEAD`
/// and the header of an array).
const CELL_OVERHEAD_BYTES: usize = 32;
const ARRAY_HEADER_BYTES: usize = 16;
/// HBase's objects are multiples of this size.
const OBJECT_ALIGNMENT: usize = 8;
/// Bytes of the list of an edit in HBase (`ClassSize.ARRAYLIST`).
const LIST_BYTES: usize = 40;

/// Which edits and cells are printed.
#[derive(Clone, Debug, Default)]
pub struct LogFilter {
    /// Only edits of these tables; empty: of all.
    pub tables: Vec<Vec<u8>>,
    /// Only edits of the region with this encoded name.
    pub region: Option<Vec<u8>>,
    /// Only edits with this sequence id.
    pub seq_id: Option<u64>,
    /// Only cells of this row.
    pub row: Option<Vec<u8>>,
    /// Only cells of rows with this prefix.
    pub row_prefix: Option<Vec<u8>>,
    /// Only edits at or after this offset in the log.
    pub offset: Option<u64>,
}

impl LogFilter {
    fn includes(&self, entry: &Entry) -> bool {
        (self.tables.is_empty() || self.tables.iter().any(|table| **table == *entry.key.table))
            && self.region.as_ref().is_none_or(|region| **region == *entry.key.region)
            && self.seq_id.is_none_or(|seq_id| seq_id == entry.key.seq_id)
            && self.offset.is_none_or(|offset| entry.offset >= offset)
    }

    fn includes_row(&self, row: &[u8]) -> bool {
        self.row.as_ref().is_none_or(|wanted| wanted == row)
            && self.row_prefix.as_ref().is_none_or(|prefix| row.starts_with(prefix))
    }
}

/// How edits are printed.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogForm {
    /// As JSON.
    pub json: bool,
    /// Also values.
    pub values: bool,
    /// Only the row of each cell.
    pub rows_only: bool,
}

/// Prints the edits of logs.
pub struct LogPrinter<'a> {
    filter: &'a LogFilter,
    form: LogForm,
    out: &'a mut dyn Write,
}

impl<'a> LogPrinter<'a> {
    /// Prints to `out`.
    pub fn new(filter: &'a LogFilter, form: LogForm, out: &'a mut dyn Write) -> LogPrinter<'a> {
        LogPrinter { filter, form, out }
    }

    /// Prints a log up to its end.
    ///
    /// # Errors
    /// [`Error`]; the edits before the damaged one are printed.
    pub async fn print(&mut self, fs: &dyn FileSystem, path: &FilePath) -> Result<(), Error> {
        let mut log = LogReader::open(fs, path).await?;
        if self.form.json {
            write!(self.out, "[")?;
        }
        writeln!(self.out, "{HEADER}")?;
        let mut is_first = true;
        while let Some(entry) = log.next().await? {
            if !self.filter.includes(&entry) {
                continue;
            }
            let cells: Vec<KeyValue> =
                entry.key_values().filter_map(|bytes| KeyValue::from_bytes(bytes).ok()).collect();
            let shown: Vec<Cell<'_>> = cells
                .iter()
                .map(|cell| cell.view(entry.key.seq_id))
                .filter(|cell| self.filter.includes_row(cell.row()))
                .collect();
            if shown.is_empty() {
                continue;
            }
            match self.form.json {
                true => {
                    if !is_first {
                        write!(self.out, ",")?;
                    }
                    json::print(self.out, self.form, &entry, &shown)?;
                }
                false => text::print(self.out, self.form, &entry, &shown)?,
            }
            is_first = false;
            if !self.form.rows_only {
                let edit_bytes =
                    LIST_BYTES + cells.iter().map(|cell| heap_bytes(&cell.view(0))).sum::<usize>();
                writeln!(self.out, "edit heap size: {edit_bytes}\nposition: {}", entry.end)?;
            }
        }
        if self.form.json {
            write!(self.out, "]")?;
        }
        Ok(())
    }
}

/// Bytes that a cell takes in HBase's memory, which HBase prints (`KeyValue.heapSize`).
fn heap_bytes(cell: &Cell<'_>) -> usize {
    let array = (ARRAY_HEADER_BYTES + cell.serialized_len()).next_multiple_of(OBJECT_ALIGNMENT);
    CELL_OVERHEAD_BYTES + array
}
