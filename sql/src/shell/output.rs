//! Rows for a person, or for a program.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use datafusion::arrow::csv::WriterBuilder;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::util::display::FormatOptions;
use datafusion::arrow::util::pretty::pretty_format_batches_with_options;
use datafusion::error::{DataFusionError, Result};

/// Rows of a table that are shown; the rest is counted.
const ROWS_SHOWN_MAX: usize = 10_000;

/// How rows are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Style {
    /// With lines between them, for a person
    Table,
    /// Comma-separated, names first
    Csv,
}

/// Where the rows of a query go.
pub struct Output {
    style: Style,
    schema: SchemaRef,
    kept: Vec<RecordBatch>,
    rows: usize,
    rows_kept: usize,
}

impl Output {
    /// For one query.
    pub fn new(style: Style) -> Output {
        Output { style, schema: Arc::new(Schema::empty()), kept: Vec::new(), rows: 0, rows_kept: 0 }
    }

    /// The names of the columns.
    pub fn begin(&mut self, schema: &Schema) {
        self.schema = Arc::new(schema.clone());
    }

    /// Some rows.
    ///
    /// # Errors
    /// If they cannot be shown.
    pub fn add(&mut self, batch: RecordBatch) -> Result<()> {
        match self.style {
            Style::Csv => self.write_csv(&batch)?,
            Style::Table => {
                let rows = batch.num_rows().min(ROWS_SHOWN_MAX - self.rows_kept);
                if rows > 0 {
                    self.kept.push(batch.slice(0, rows));
                    self.rows_kept += rows;
                }
            }
        }
        self.rows += batch.num_rows();
        Ok(())
    }

    /// All rows came.
    ///
    /// # Errors
    /// If they cannot be shown.
    pub fn end(&mut self) -> Result<()> {
        let mut out = io::stdout().lock();
        if self.style == Style::Table {
            let batches = match self.kept.is_empty() {
                true => vec![RecordBatch::new_empty(Arc::clone(&self.schema))],
                false => std::mem::take(&mut self.kept),
            };
            let options = FormatOptions::default().with_null("NULL");
            let table = pretty_format_batches_with_options(&batches, &options)?;
            writeln!(out, "{table}").map_err(DataFusionError::IoError)?;
        } else if self.rows == 0 {
            drop(out);
            self.write_csv(&RecordBatch::new_empty(Arc::clone(&self.schema)))?;
            return Ok(());
        }
        out.flush().map_err(DataFusionError::IoError)
    }

    fn write_csv(&self, batch: &RecordBatch) -> Result<()> {
        let mut bytes = Vec::new();
        WriterBuilder::new().with_header(self.rows == 0).build(&mut bytes).write(batch)?;
        io::stdout().lock().write_all(&bytes).map_err(DataFusionError::IoError)
    }

    /// How many rows there were, in words.
    pub fn rows_told(&self) -> String {
        let rows = if self.rows == 1 { "1 row".to_string() } else { format!("{} rows", self.rows) };
        match self.rows > self.rows_kept {
            true => format!("{rows}, the first {} of them shown", self.rows_kept),
            false => rows,
        }
    }
}

/// A time for a person.
pub fn seconds(time: Duration) -> String {
    match time.as_secs_f64() {
        short if short < 1.0 => format!("{:.0} ms", short * 1000.0),
        long => format!("{long:.2} s"),
    }
}
