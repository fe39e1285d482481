//! Output of rows as a table or as CSV.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use datafusion::arrow::csv::WriterBuilder;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::util::display::FormatOptions;
use datafusion::arrow::util::pretty::pretty_format_batches_with_options;
use datafusion::error::{DataFusionError, Result};

/// Maximum number of rows of a table that are shown; further ones are counted.
const ROWS_PRINTED_MAX: usize = 10_000;

/// The output format of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Style {
    /// A table with borders, for reading
    Table,
    /// Comma-separated values, with a header line
    Csv,
}

/// The output of a query's rows.
pub struct Output {
    style: Style,
    schema: SchemaRef,
    retained: Vec<RecordBatch>,
    rows: usize,
    rows_retained: usize,
}

impl Output {
    /// Output for one query.
    pub fn new(style: Style) -> Output {
        Output { style, schema: Arc::new(Schema::empty()), retained: Vec::new(), rows: 0, rows_retained: 0 }
    }

    /// Sets the column names.
    pub fn begin(&mut self, schema: &Schema) {
        self.schema = Arc::new(schema.clone());
    }

    /// Adds rows.
    ///
    /// # Errors
    /// If they cannot be printed.
    pub fn add(&mut self, batch: RecordBatch) -> Result<()> {
        match self.style {
            Style::Csv => self.write_csv(&batch)?,
            Style::Table => {
                let rows = batch.num_rows().min(ROWS_PRINTED_MAX - self.rows_retained);
                if rows > 0 {
                    self.retained.push(batch.slice(0, rows));
                    self.rows_retained += rows;
                }
            }
        }
        self.rows += batch.num_rows();
        Ok(())
    }

    /// Completes the output after all rows.
    ///
    /// # Errors
    /// If it cannot be printed.
    pub fn end(&mut self) -> Result<()> {
        let mut out = io::stdout().lock();
        if self.style == Style::Table {
            let batches = match self.retained.is_empty() {
                true => vec![RecordBatch::new_empty(Arc::clone(&self.schema))],
                false => std::mem::take(&mut self.retained),
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

    /// The number of rows, as text.
    pub fn row_count_text(&self) -> String {
        let rows = if self.rows == 1 { "1 row".to_string() } else { format!("{} rows", self.rows) };
        match self.rows > self.rows_retained {
            true => format!("{rows}, the first {} of them shown", self.rows_retained),
            false => rows,
        }
    }
}

/// A duration for display.
pub fn seconds(time: Duration) -> String {
    match time.as_secs_f64() {
        short if short < 1.0 => format!("{:.0} ms", short * 1000.0),
        long => format!("{long:.2} s"),
    }
}
