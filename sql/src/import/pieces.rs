//! Pieces of files: what one thread imports, and what a resumed import skips.
//!
//! A piece of text is some MiB of complete records, a piece of Parquet a part of a row group, and a
//! piece of Arrow some record batches. For one file, the same options give the same pieces.

use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use datafusion::arrow::csv::ReaderBuilder as CsvReader;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::ipc::reader::{FileReader, StreamReader};
use datafusion::arrow::json::ReaderBuilder as JsonReader;
use datafusion::arrow::json::reader::infer_json_schema;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use datafusion::parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};

use crate::import::compression::TextReader;
use crate::import::files::{DataFile, Format};
use crate::import::records::{Chunks, Records, field_count, split};

/// Maximum rows of a piece of Parquet: large row groups are shared among threads.
const ROWS_MAX: u64 = 128 << 10;
/// Maximum rows of a record batch.
const BATCH_ROWS_MAX: usize = 4096;
/// First bytes of Arrow's file format.
const ARROW_MAGIC: &[u8] = b"ARROW1";
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Record batches of a piece in order; an error is a message with the file.
pub type Batches<'a> = Box<dyn Iterator<Item = Result<RecordBatch, String>> + 'a>;

/// How files are read.
#[derive(Debug, Clone)]
pub struct ReadOptions {
    /// The byte between two fields of CSV.
    pub delimiter: u8,
    /// The columns of CSV files without a header line.
    pub csv_columns: Option<Vec<String>>,
    /// The members of JSON objects that are columns.
    pub json_columns: Vec<String>,
    /// Whether JSON objects may have other members.
    pub ignores_unknown: bool,
    /// Size of a piece of text in bytes.
    pub chunk_bytes: usize,
}

/// A part of a file.
pub struct Piece {
    /// The file.
    pub file: Arc<OpenedFile>,
    /// Number of its first row in the file, from 0.
    pub first_row: u64,
    /// Its range: of decompressed bytes for text, otherwise of rows.
    pub range: (u64, u64),
    /// Its share of the file's bytes, for progress.
    pub bytes: u64,
    content: Content,
}

enum Content {
    Text(Bytes),
    RowGroup { index: usize, offset: usize, rows: usize },
    Batches(Vec<RecordBatch>),
}

/// A piece without its content.
pub struct PieceRange {
    /// The file.
    pub file: Arc<OpenedFile>,
    /// Its range in the file, as that of a [`Piece`].
    pub range: (u64, u64),
    /// Its share of the file's bytes, for progress.
    pub bytes: u64,
}

/// A file whose columns are known.
#[derive(Debug)]
pub struct OpenedFile {
    /// The file.
    pub file: DataFile,
    /// Its columns, as they are read.
    pub schema: SchemaRef,
    /// The members of its first JSON object; `None` for other formats and without objects.
    pub first_members: Option<Vec<String>>,
    parquet: Option<ArrowReaderMetadata>,
    options: Arc<ReadOptions>,
}

impl OpenedFile {
    /// Reads the columns of a file.
    ///
    /// # Errors
    /// A message: the file cannot be read, or is not of its format.
    pub fn new(file: DataFile, options: &Arc<ReadOptions>) -> Result<OpenedFile, String> {
        let failed = |error: &dyn std::fmt::Display| message(&file, error);
        let mut first_members = None;
        let (schema, parquet) = match file.format {
            Format::Parquet => {
                let opened = open(&file)?;
                let metadata = ArrowReaderMetadata::load(&opened, ArrowReaderOptions::new())
                    .map_err(|error| failed(&error))?;
                (Arc::clone(metadata.schema()), Some(metadata))
            }
            Format::Arrow => (arrow_batches(&file)?.0, None),
            Format::Csv => {
                let names = match &options.csv_columns {
                    Some(names) => names.clone(),
                    None => {
                        let header = Chunks::new(open_text(&file)?, records(&file, options), 1).header();
                        let header = header.map_err(|error| failed(&error))?;
                        header_names(&header.unwrap_or_default(), options.delimiter)
                            .map_err(|error| failed(&error))?
                    }
                };
                (text_schema(&names), None)
            }
            Format::Json => {
                let first = Chunks::new(open_text(&file)?, Records::Lines, 1).header();
                let first = first.map_err(|error| failed(&error))?.unwrap_or_default();
                first_members = json_members(&first).map_err(|error| failed(&error))?;
                (text_schema(&options.json_columns), None)
            }
        };
        Ok(OpenedFile { file, schema, first_members, parquet, options: Arc::clone(options) })
    }

    /// Passes the pieces to `give` in order, until it returns false.
    ///
    /// # Errors
    /// A message with the file.
    pub fn for_each_piece(self: &Arc<Self>, give: &mut dyn FnMut(Piece) -> bool) -> Result<(), String> {
        match self.file.format {
            Format::Csv | Format::Json => self.text_pieces(give),
            Format::Parquet => self.parquet_pieces(give),
            Format::Arrow => self.arrow_pieces(give),
        }
    }

    fn piece(self: &Arc<Self>, first_row: u64, range: (u64, u64), bytes: u64, content: Content) -> Piece {
        Piece { file: Arc::clone(self), first_row, range, bytes, content }
    }

    fn text_pieces(self: &Arc<Self>, give: &mut dyn FnMut(Piece) -> bool) -> Result<(), String> {
        let failed = |error: std::io::Error| message(&self.file, &error);
        let records = records(&self.file, &self.options);
        let text = open_text(&self.file)?;
        let (consumed, mut counted) = (text.consumed(), 0);
        let mut chunks = Chunks::new(text, records, self.options.chunk_bytes);
        if self.file.format == Format::Csv && self.options.csv_columns.is_none() {
            chunks.header().map_err(failed)?;
        }
        while let Some(chunk) = chunks.next_chunk().map_err(failed)? {
            let range = (chunk.start, chunk.start + chunk.bytes.len() as u64);
            let read = consumed.load(Ordering::Relaxed);
            let bytes = read - std::mem::replace(&mut counted, read);
            if !give(self.piece(chunk.first_record, range, bytes, Content::Text(chunk.bytes))) {
                break;
            }
        }
        Ok(())
    }

    fn parquet_pieces(self: &Arc<Self>, give: &mut dyn FnMut(Piece) -> bool) -> Result<(), String> {
        let Some(metadata) = &self.parquet else { return Ok(()) };
        let groups = metadata.metadata().row_groups();
        let total = groups.iter().map(|group| count(group.num_rows())).sum::<u64>().max(1);
        let mut first_row = 0;
        for (index, group) in groups.iter().enumerate() {
            let rows = count(group.num_rows());
            let mut offset = 0;
            while offset < rows {
                let some = ROWS_MAX.min(rows - offset);
                let range = (first_row + offset, first_row + offset + some);
                let bytes = (u128::from(self.file.size) * u128::from(some) / u128::from(total)) as u64;
                let content = Content::RowGroup { index, offset: offset as usize, rows: some as usize };
                if !give(self.piece(range.0, range, bytes, content)) {
                    return Ok(());
                }
                offset += some;
            }
            first_row += rows;
        }
        Ok(())
    }

    fn arrow_pieces(self: &Arc<Self>, give: &mut dyn FnMut(Piece) -> bool) -> Result<(), String> {
        let (mut first_row, mut waiting, mut bytes, mut rows) = (0, Vec::new(), 0, 0);
        for batch in arrow_batches(&self.file)?.1 {
            let batch = batch.map_err(|error| message(&self.file, &error))?;
            let mut offset = 0;
            while offset < batch.num_rows() {
                let some = BATCH_ROWS_MAX.min(batch.num_rows() - offset);
                let slice = batch.slice(offset, some);
                bytes += slice_bytes(&slice);
                rows += some as u64;
                waiting.push(slice);
                offset += some;
                if bytes >= self.options.chunk_bytes as u64 {
                    let content = Content::Batches(std::mem::take(&mut waiting));
                    if !give(self.piece(first_row, (first_row, first_row + rows), bytes, content)) {
                        return Ok(());
                    }
                    first_row += rows;
                    (bytes, rows) = (0, 0);
                }
            }
        }
        if rows > 0 {
            give(self.piece(first_row, (first_row, first_row + rows), bytes, Content::Batches(waiting)));
        }
        Ok(())
    }
}

impl Piece {
    /// The bytes in memory. Parquet is read in small batches, when the piece is converted.
    pub fn memory_bytes(&self) -> usize {
        match &self.content {
            Content::Text(text) => text.len(),
            Content::Batches(_) => usize::try_from(self.bytes).unwrap_or(usize::MAX),
            Content::RowGroup { .. } => 0,
        }
    }

    /// Frees the content.
    pub fn into_range(self) -> PieceRange {
        PieceRange { file: self.file, range: self.range, bytes: self.bytes }
    }

    /// Reads the piece.
    ///
    /// # Errors
    /// A message with the file, and the row if it is known.
    pub fn batches(&self) -> Result<Batches<'_>, String> {
        let file = &self.file.file;
        match &self.content {
            Content::Batches(batches) => Ok(Box::new(batches.iter().cloned().map(Ok))),
            Content::RowGroup { index, offset, rows } => {
                let metadata = self.file.parquet.clone().expect("a row group belongs to a Parquet file");
                let group = metadata.metadata().row_group(*index);
                let batch_rows = batch_rows(group, self.file.options.chunk_bytes);
                let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(open(file)?, metadata)
                    .with_row_groups(vec![*index])
                    .with_offset(*offset)
                    .with_limit(*rows)
                    .with_batch_size(batch_rows)
                    .build()
                    .map_err(|error| message(file, &error))?;
                Ok(Box::new(reader.map(|batch| batch.map_err(|error| message(file, &error)))))
            }
            Content::Text(text) => {
                let reader = self.text_batches(text).map_err(|error| message(file, &error))?;
                Ok(Box::new(reader.map(move |batch| batch.map_err(|error| self.text_error(text, &error)))))
            }
        }
    }

    fn text_batches<'a>(
        &self,
        text: &'a [u8],
    ) -> Result<Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + 'a>, ArrowError> {
        let (schema, options) = (Arc::clone(&self.file.schema), &self.file.options);
        Ok(match self.file.file.format {
            Format::Json => Box::new(
                JsonReader::new(schema)
                    .with_batch_size(BATCH_ROWS_MAX)
                    .with_coerce_primitive(true)
                    .with_strict_mode(!options.ignores_unknown)
                    .build(text)?,
            ),
            _ => Box::new(
                CsvReader::new(schema)
                    .with_header(false)
                    .with_delimiter(options.delimiter)
                    .with_batch_size(BATCH_ROWS_MAX)
                    .build(text)?,
            ),
        })
    }

    /// The error of the first record that cannot be read, with its number.
    fn text_error(&self, text: &[u8], error: &ArrowError) -> String {
        let file = &self.file.file;
        for (at, record) in split(text, records(file, &self.file.options)).into_iter().enumerate() {
            let failure =
                self.text_batches(record).and_then(|mut batches| batches.try_for_each(|one| one.map(|_| ())));
            if let Err(error) = failure {
                let row = self.first_row + at as u64 + 1;
                return format!("{}, row {row}: {}", file.path.display(), plain(&error));
            }
        }
        message(file, error)
    }
}

/// An error of Arrow without the number of a line, which counts from the start of the piece.
fn plain(error: &ArrowError) -> String {
    let text = match error {
        ArrowError::CsvError(text) | ArrowError::JsonError(text) | ArrowError::ParseError(text) => {
            text.clone()
        }
        other => other.to_string(),
    };
    text.replace(" for line 1", "")
        .replace(" missing from schema", " is not declared (--ignore-unknown skips such columns)")
}

fn message(file: &DataFile, error: &dyn std::fmt::Display) -> String {
    format!("{}: {error}", file.path.display())
}

#[allow(clippy::disallowed_methods, reason = "a file of the user's, not of the store's")]
fn open(file: &DataFile) -> Result<File, String> {
    File::open(&file.path).map_err(|error| message(file, &error))
}

/// The decompressed text of a file.
fn open_text(file: &DataFile) -> Result<TextReader, String> {
    file.compression.reader(open(file)?).map_err(|error| message(file, &error))
}

fn records(file: &DataFile, options: &ReadOptions) -> Records {
    match file.format {
        Format::Json => Records::Lines,
        _ => Records::Csv { delimiter: options.delimiter },
    }
}

type ArrowBatches = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>>>;

/// The columns and record batches of an Arrow file, in the file or the stream format.
fn arrow_batches(file: &DataFile) -> Result<(SchemaRef, ArrowBatches), String> {
    let failed = |error: &dyn std::fmt::Display| message(file, error);
    let mut opened = BufReader::new(open(file)?);
    let mut magic = [0; ARROW_MAGIC.len()];
    let is_file = opened.read_exact(&mut magic).is_ok() && magic == ARROW_MAGIC;
    opened.rewind().map_err(|error| failed(&error))?;
    Ok(match is_file {
        true => {
            let reader = FileReader::try_new(opened, None).map_err(|error| failed(&error))?;
            (reader.schema(), Box::new(reader))
        }
        false => {
            let reader = StreamReader::try_new(opened, None).map_err(|error| failed(&error))?;
            (reader.schema(), Box::new(reader))
        }
    })
}

/// The names in the header line of a CSV file.
fn header_names(line: &[u8], delimiter: u8) -> Result<Vec<String>, String> {
    let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
    let fields =
        split(line, Records::Csv { delimiter }).first().map_or(0, |record| field_count(record, delimiter));
    let schema = text_schema(&(0..fields).map(|at| at.to_string()).collect::<Vec<_>>());
    let mut reader = CsvReader::new(schema)
        .with_header(false)
        .with_delimiter(delimiter)
        .build(line)
        .map_err(|error| error.to_string())?;
    let batch = match reader.next() {
        Some(batch) => batch.map_err(|error| format!("header line: {}", plain(&error)))?,
        None => return Err("the file is empty; a CSV file begins with a line of column names".into()),
    };
    let names = batch.columns().iter().map(|column| {
        let name = datafusion::arrow::util::display::array_value_to_string(column, 0);
        name.map_err(|error| error.to_string())
    });
    names.collect()
}

/// Columns of text, whose values are converted later: an error can then name its row and column.
fn text_schema(names: &[String]) -> SchemaRef {
    let field = |name: &String| Field::new(name, DataType::Utf8, true);
    Arc::new(Schema::new(names.iter().map(field).collect::<Vec<_>>()))
}

/// The members of a JSON object; `None` if there is no object.
fn json_members(object: &[u8]) -> Result<Option<Vec<String>>, String> {
    let (members, _) =
        infer_json_schema(object, Some(1)).map_err(|error| format!("row 1: {}", plain(&error)))?;
    let names: Vec<String> = members.fields().iter().map(|field| field.name().clone()).collect();
    Ok((!names.is_empty()).then_some(names))
}

/// Rows of a record batch of a row group, so that a batch has about `bytes_max` bytes.
fn batch_rows(group: &RowGroupMetaData, bytes_max: usize) -> usize {
    // The size of values that a dictionary replaces, if the file states it.
    let column_bytes = |column: &ColumnChunkMetaData| {
        count(column.uncompressed_size().max(column.unencoded_byte_array_data_bytes().unwrap_or(0)))
    };
    let bytes: u64 = group.columns().iter().map(column_bytes).sum();
    let row_bytes = bytes / count(group.num_rows()).max(1);
    let rows = bytes_max as u64 / row_bytes.max(1);
    usize::try_from(rows).unwrap_or(BATCH_ROWS_MAX).clamp(1, BATCH_ROWS_MAX)
}

fn slice_bytes(batch: &RecordBatch) -> u64 {
    let bytes = |column: &Arc<dyn datafusion::arrow::array::Array>| {
        column.to_data().get_slice_memory_size().unwrap_or(0) as u64
    };
    batch.columns().iter().map(bytes).sum()
}

fn count(rows: i64) -> u64 {
    u64::try_from(rows).unwrap_or(0)
}
