//! Imports files into the typed columns of a declared table.
//!
//! One thread finds the pieces of the files; workers convert them to puts, and send these in
//! batches. The pieces that wait for workers and the puts that servers have not acknowledged are
//! bounded in bytes, so a slow server slows the workers, which slow the reader. The first error
//! ends the import.
//!
//! * [`files`]: which files, and their [`compression`]; [`pieces`]: their parts, and [`records`]:
//!   the ends of records in text;
//! * [`conversion`]: values of declared types; [`rows`]: their puts;
//! * [`state`]: which pieces a resumed import skips.

pub mod compression;
mod conversion;
pub mod files;
mod pieces;
mod records;
mod rows;
mod state;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use cell::mutation::Mutation;
use cell::schema::TableName;
use client::{Action, Client};
use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::record_batch::RecordBatch;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinError, JoinSet};

use crate::declaration::{Declaration, DeclaredColumn};
use crate::progress::{Progress, grouped};
use files::Format;
use pieces::{OpenedFile, Piece, PieceRange, ReadOptions};
use rows::RowWriter;
use state::State;

/// Bytes of one batch of puts.
const BATCH_BYTES: usize = 1 << 20;
/// Maximum number of puts of one batch; HBase warns about more than 5000.
const BATCH_PUTS_MAX: usize = 2000;
/// Memory of a put and of a cell in addition to the cell's bytes, estimated.
const PUT_OVERHEAD: usize = 200;
const CELL_OVERHEAD: usize = 64;
/// Bytes of a piece of text. A constant: a resumed import finds the same pieces.
const CHUNK_BYTES: usize = 4 << 20;
/// Pieces of that size in memory for each worker: one that it converts, and one that waits.
const PIECES_PER_WORKER: usize = 2;
/// The unit in which memory is counted.
const PERMIT_BYTES: usize = 1 << 10;

/// Options of `grampus import`.
#[derive(Debug, Clone, clap::Args)]
pub struct ImportArguments {
    /// Files, directories, or patterns with * and ?
    #[arg(value_name = "FILE", required = true, num_args = 1..)]
    pub files: Vec<PathBuf>,
    /// Name of the table in SQL (SHOW TABLES lists the declared tables)
    #[arg(value_name = "TABLE")]
    pub table: String,
    /// Format of the files; default: the end of each file name
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// Byte between two fields of CSV; "\t" is the tab
    #[arg(long, value_name = "BYTE", default_value = ",", value_parser = delimiter)]
    pub delimiter: u8,
    /// Column names of CSV files without a header line, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub columns: Option<Vec<String>>,
    /// Skip columns of the files that the table does not declare, instead of failing
    #[arg(long)]
    pub ignore_unknown: bool,
    /// Timestamp of all cells, in milliseconds since 1970; default: the start of the import
    #[arg(long, value_name = "MS")]
    pub timestamp: Option<i64>,
    /// Record finished parts in FILE, and skip those that are recorded there; FILE is removed at
    /// the end
    #[arg(long, value_name = "FILE")]
    pub resume: Option<PathBuf>,
    /// Number of threads that read and convert; default: one per core
    #[arg(long, value_name = "N")]
    pub parallel: Option<usize>,
    /// Memory for puts that the servers have not acknowledged, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 64)]
    pub memory: usize,
}

fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"\\t" => Ok(b'\t'),
        [byte] if !matches!(byte, b'"' | b'\n' | b'\r') => Ok(*byte),
        _ => Err("expected one byte, for example ; or \\t".into()),
    }
}

/// Where rows are written.
#[async_trait]
pub trait Target: Send + Sync + 'static {
    /// Applies puts; returns the first failure: its index, and a message.
    async fn apply(&self, table: &TableName, puts: Vec<Mutation>) -> Result<(), (usize, String)>;
}

#[async_trait]
impl Target for Client {
    async fn apply(&self, table: &TableName, puts: Vec<Mutation>) -> Result<(), (usize, String)> {
        let outcomes = self.table(table.clone()).batch(puts.into_iter().map(Action::Mutate).collect()).await;
        let failed = outcomes.into_iter().enumerate().find_map(|(at, outcome)| Some((at, outcome.err()?)));
        failed.map_or(Ok(()), |(at, error)| Err((at, error.to_string())))
    }
}

/// The result of an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Imported {
    /// Rows that were written.
    pub rows: u64,
    /// Cells that were written.
    pub cells: u64,
    /// Rows whose values outside the row key are all NULL.
    pub rows_without_cells: u64,
    /// Parts that an earlier run had finished.
    pub pieces_skipped: u64,
}

impl Imported {
    /// A line for the user.
    pub fn summary(&self, seconds: f64) -> String {
        let speed = (self.rows as f64 / seconds.max(0.001)) as u64;
        let mut text = format!(
            "{} rows, {} cells in {seconds:.1} s ({} rows/s)",
            grouped(self.rows),
            grouped(self.cells),
            grouped(speed)
        );
        if self.rows_without_cells > 0 {
            text.push_str(&format!(
                "; {} rows are not stored, because all their values outside the row key are NULL",
                grouped(self.rows_without_cells)
            ));
        }
        if self.pieces_skipped > 0 {
            text.push_str(&format!("; {} parts were finished before", grouped(self.pieces_skipped)));
        }
        text
    }
}

/// Runs an import. `now_ms` is the timestamp of its cells unless the options or the state set
/// another one.
///
/// # Errors
/// A message for the user: what failed, in which file and row.
pub async fn run(
    arguments: &ImportArguments,
    declaration: &Declaration,
    target: Arc<dyn Target>,
    now_ms: i64,
) -> Result<Imported, String> {
    let files = files::find(&arguments.files, arguments.format)?;
    let timestamp = arguments.timestamp.unwrap_or(now_ms);
    if timestamp < 0 {
        return Err("--timestamp must not be negative".into());
    }
    let state =
        arguments.resume.as_ref().map(|path| State::open(path, declaration, timestamp)).transpose()?;
    let timestamp = state.as_ref().map_or(timestamp, State::timestamp);
    if arguments.timestamp.is_some_and(|wanted| wanted != timestamp) {
        return Err(format!("the import to resume uses the timestamp {timestamp}; omit --timestamp"));
    }
    let options = Arc::new(ReadOptions {
        delimiter: arguments.delimiter,
        csv_columns: arguments.columns.clone(),
        json_columns: declaration.columns.iter().map(|column| column.name.clone()).collect(),
        ignores_unknown: arguments.ignore_unknown,
        chunk_bytes: CHUNK_BYTES,
    });
    let progress = Progress::of_bytes(files.iter().map(|file| file.size).sum());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let workers = arguments.parallel.unwrap_or(cores).max(1);
    let import = Arc::new(Import {
        declaration: declaration.clone(),
        target,
        timestamp,
        ignores_unknown: arguments.ignore_unknown,
        puts: Budget::new(arguments.memory.max(1).saturating_mul(1 << 20)),
        pieces: Budget::new(pieces_bytes_max(workers)),
        state: Mutex::new(state),
        stop: AtomicBool::new(false),
        failure: Mutex::new(None),
        counts: Counts::default(),
        progress,
    });
    import.run_threads(files, options, workers).await;
    import.progress.clear();
    let failure = lock(&import.failure).take();
    if let Some(message) = failure {
        let rows = import.counts.rows.load(Ordering::Relaxed);
        if rows == 0 {
            return Err(message);
        }
        let advice = match &arguments.resume {
            Some(_) => "the same command resumes the import",
            None => "importing again writes the same rows again; --resume skips finished parts",
        };
        return Err(format!("{message} ({} rows were written; {advice})", grouped(rows)));
    }
    let state = lock(&import.state).take();
    state.map_or(Ok(()), State::remove)?;
    Ok(import.counts.result())
}

#[derive(Default)]
struct Counts {
    rows: AtomicU64,
    cells: AtomicU64,
    rows_without_cells: AtomicU64,
    pieces_skipped: AtomicU64,
}

impl Counts {
    fn result(&self) -> Imported {
        Imported {
            rows: self.rows.load(Ordering::Relaxed),
            cells: self.cells.load(Ordering::Relaxed),
            rows_without_cells: self.rows_without_cells.load(Ordering::Relaxed),
            pieces_skipped: self.pieces_skipped.load(Ordering::Relaxed),
        }
    }
}

/// A running import.
struct Import {
    declaration: Declaration,
    target: Arc<dyn Target>,
    timestamp: i64,
    ignores_unknown: bool,
    /// For puts that the servers have not acknowledged.
    puts: Budget,
    /// For pieces that are not converted yet.
    pieces: Budget,
    state: Mutex<Option<State>>,
    /// Set with the first failure.
    stop: AtomicBool,
    failure: Mutex<Option<String>>,
    counts: Counts,
    progress: Progress,
}

/// The columns of a file that are imported.
struct FileColumns {
    writer: RowWriter,
    /// Their indexes in the file.
    indexes: Vec<usize>,
}

/// A piece, and the columns of its file.
struct Work {
    piece: Piece,
    columns: Arc<FileColumns>,
    memory: OwnedSemaphorePermit,
}

/// Bytes of the pieces in memory. One piece more, because each may exceed its size by one record.
fn pieces_bytes_max(workers: usize) -> usize {
    workers.saturating_mul(PIECES_PER_WORKER).saturating_add(1).saturating_mul(CHUNK_BYTES)
}

/// A bound on bytes in memory.
struct Budget {
    permits: Arc<Semaphore>,
    total: u32,
}

impl Budget {
    fn new(bytes: usize) -> Budget {
        let total = u32::try_from((bytes / PERMIT_BYTES).min(Semaphore::MAX_PERMITS)).unwrap_or(u32::MAX);
        Budget { permits: Arc::new(Semaphore::new(total as usize)), total }
    }

    /// Waits for memory. A request for more than the budget waits for the whole of it.
    fn acquire(&self, bytes: usize, runtime: &Handle) -> Result<OwnedSemaphorePermit, String> {
        let permits = u32::try_from(bytes.div_ceil(PERMIT_BYTES)).unwrap_or(u32::MAX).min(self.total);
        let acquired = runtime.block_on(Arc::clone(&self.permits).acquire_many_owned(permits));
        acquired.map_err(|error| error.to_string())
    }
}

/// Puts to send together.
#[derive(Default)]
struct Batch {
    puts: Vec<Mutation>,
    /// The number of each put's row in its file, from 1.
    rows: Vec<u64>,
    bytes: usize,
    cells: u64,
}

impl Batch {
    fn add(&mut self, put: Mutation, row: u64) {
        let cells: usize = put.cells.iter().map(|cell| cell.bytes().len() + CELL_OVERHEAD).sum();
        self.bytes += cells + put.row.len() + PUT_OVERHEAD;
        self.cells += put.cells.len() as u64;
        self.puts.push(put);
        self.rows.push(row);
    }

    fn is_full(&self) -> bool {
        self.bytes >= BATCH_BYTES || self.puts.len() >= BATCH_PUTS_MAX
    }
}

impl Import {
    async fn run_threads(
        self: &Arc<Self>,
        files: Vec<files::DataFile>,
        options: Arc<ReadOptions>,
        workers: usize,
    ) {
        let (sender, receiver) = sync_channel(workers);
        let receiver = Arc::new(Mutex::new(receiver));
        let runtime = Handle::current();
        let mut threads = JoinSet::new();
        let (import, reader_runtime) = (Arc::clone(self), runtime.clone());
        threads.spawn_blocking(move || {
            for file in files {
                if let Err(message) = import.read_file(file, &options, &sender, &reader_runtime) {
                    import.fail(message);
                }
                if import.is_stopped() {
                    break;
                }
            }
        });
        for _ in 0..workers {
            let (import, receiver, runtime) = (Arc::clone(self), Arc::clone(&receiver), runtime.clone());
            threads.spawn_blocking(move || import.work(&receiver, &runtime));
        }
        drop(receiver);
        while let Some(ended) = threads.join_next().await {
            self.check(ended.map(Ok));
        }
    }

    /// Ends the import if one of its tasks or threads has failed.
    fn check(&self, ended: Result<Result<(), String>, JoinError>) {
        if let Err(message) = result_of(ended) {
            self.fail(message);
        }
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Records the first failure, and ends the import.
    fn fail(&self, message: String) {
        lock(&self.failure).get_or_insert(message);
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Sends the unfinished pieces of a file to the workers.
    fn read_file(
        &self,
        file: files::DataFile,
        options: &Arc<ReadOptions>,
        sender: &SyncSender<Work>,
        runtime: &Handle,
    ) -> Result<(), String> {
        let file = Arc::new(OpenedFile::new(file, options)?);
        let columns = Arc::new(self.columns(&file)?);
        file.for_each_piece(&mut |piece| {
            let is_done =
                lock(&self.state).as_ref().is_some_and(|state| state.is_done(&piece.file.file, piece.range));
            if is_done {
                self.counts.pieces_skipped.fetch_add(1, Ordering::Relaxed);
                self.progress.advance(piece.bytes, self.counts.rows.load(Ordering::Relaxed));
                return !self.is_stopped();
            }
            // Workers receive until all pieces are sent, also after a failure.
            match self.pieces.acquire(piece.memory_bytes(), runtime) {
                Ok(memory) => {
                    let work = Work { piece, columns: Arc::clone(&columns), memory };
                    sender.send(work).is_ok() && !self.is_stopped()
                }
                Err(message) => {
                    self.fail(message);
                    false
                }
            }
        })
    }

    /// Finds the declared columns of a file.
    fn columns(&self, file: &OpenedFile) -> Result<FileColumns, String> {
        let shown = file.file.path.display();
        let declared = &self.declaration.columns;
        let (mut columns, mut indexes) = (Vec::new(), Vec::new());
        for (index, field) in file.schema.fields().iter().enumerate() {
            let same = |equal: fn(&str, &str) -> bool| {
                declared.iter().position(|column| equal(&column.name, field.name()))
            };
            let Some(at) = same(|one, other| one == other).or_else(|| same(str::eq_ignore_ascii_case)) else {
                match self.ignores_unknown {
                    true => continue,
                    false => {
                        let names: Vec<&str> = declared.iter().map(|column| &column.name[..]).collect();
                        return Err(format!(
                            "{shown}: table {} has no column {:?}; its columns are {} (--ignore-unknown skips others)",
                            self.declaration.name,
                            field.name(),
                            names.join(", ")
                        ));
                    }
                }
            };
            if columns.contains(&at) {
                return Err(format!("{shown}: two columns are named {:?}", declared[at].name));
            }
            conversion::check_types(field.data_type(), &declared[at])
                .map_err(|error| format!("{shown}, column {}: {error}", declared[at].name))?;
            columns.push(at);
            indexes.push(index);
        }
        let writer = match &file.first_members {
            Some(members) => RowWriter::of_objects(&self.declaration, &columns, self.timestamp, members),
            None => RowWriter::new(&self.declaration, &columns, self.timestamp),
        };
        let writer = writer.map_err(|error| format!("{shown}: {error}"))?;
        Ok(FileColumns { writer, indexes })
    }

    /// Imports pieces until there are no more.
    fn work(self: &Arc<Self>, receiver: &Mutex<Receiver<Work>>, runtime: &Handle) {
        let mut finishing = JoinSet::new();
        loop {
            let received = lock(receiver).recv();
            let Ok(work) = received else { break };
            if self.is_stopped() {
                continue;
            }
            let mut sends = JoinSet::new();
            let read = self.import_piece(&work, &mut sends, runtime);
            // The content is freed before the servers respond: its puts are a copy.
            let Work { piece, memory, .. } = work;
            let piece = piece.into_range();
            drop(memory);
            let import = Arc::clone(self);
            match read {
                // Waits for the responses while the next piece is converted.
                Ok(()) => {
                    finishing.spawn_on(async move { import.finish(piece, sends).await }, runtime);
                }
                Err(message) => self.fail(message),
            }
            while let Some(ended) = finishing.try_join_next() {
                self.check(ended);
            }
        }
        runtime.block_on(async {
            while let Some(ended) = finishing.join_next().await {
                self.check(ended);
            }
        });
    }

    /// Converts a piece and sends its puts.
    fn import_piece(
        self: &Arc<Self>,
        work: &Work,
        sends: &mut JoinSet<Result<(), String>>,
        runtime: &Handle,
    ) -> Result<(), String> {
        let Work { piece, columns, .. } = work;
        let (mut row, mut batch) = (piece.first_row, Batch::default());
        for rows in piece.batches()? {
            let rows = rows?;
            let arrays = converted(piece, columns, &rows, row)?;
            for index in 0..rows.num_rows() {
                row += 1;
                let put = columns.writer.put(&arrays, index).map_err(|invalid| {
                    let column = &columns.writer.columns()[invalid.column].name;
                    at(piece, row, Some(column), &invalid.message)
                })?;
                match put {
                    Some(put) => batch.add(put, row),
                    None => {
                        self.counts.rows_without_cells.fetch_add(1, Ordering::Relaxed);
                    }
                }
                if batch.is_full() {
                    self.send(piece, std::mem::take(&mut batch), sends, runtime)?;
                }
                if self.is_stopped() {
                    return Ok(());
                }
            }
        }
        if !batch.puts.is_empty() {
            self.send(piece, batch, sends, runtime)?;
        }
        Ok(())
    }

    /// Waits for memory, then sends a batch without waiting for its result.
    fn send(
        self: &Arc<Self>,
        piece: &Piece,
        batch: Batch,
        sends: &mut JoinSet<Result<(), String>>,
        runtime: &Handle,
    ) -> Result<(), String> {
        let memory = self.puts.acquire(batch.bytes, runtime)?;
        let (import, file) = (Arc::clone(self), Arc::clone(&piece.file));
        let send = async move {
            let (puts, cells) = (batch.puts.len() as u64, batch.cells);
            let keys = batch.rows;
            import.target.apply(&import.declaration.table, batch.puts).await.map_err(|(index, error)| {
                format!("{}, row {}: {error}", file.file.path.display(), keys[index])
            })?;
            drop(memory);
            let before = import.counts.rows.fetch_add(puts, Ordering::Relaxed);
            import.counts.cells.fetch_add(cells, Ordering::Relaxed);
            import.progress.show_rows(before + puts);
            Ok(())
        };
        sends.spawn_on(send, runtime);
        Ok(())
    }

    /// Waits until all puts of a piece are durable, and records it.
    async fn finish(&self, piece: PieceRange, mut sends: JoinSet<Result<(), String>>) -> Result<(), String> {
        while let Some(sent) = sends.join_next().await {
            result_of(sent)?;
        }
        if self.is_stopped() {
            return Ok(());
        }
        if let Some(state) = lock(&self.state).as_mut() {
            state.record(&piece.file.file, piece.range)?;
        }
        self.progress.advance(piece.bytes, self.counts.rows.load(Ordering::Relaxed));
        Ok(())
    }
}

/// The result of a task. One that panicked has failed.
fn result_of(ended: Result<Result<(), String>, JoinError>) -> Result<(), String> {
    ended.unwrap_or_else(|error| Err(format!("internal error: {error}")))
}

/// The imported columns of a batch with the declared types. `first_row` is the number of its first
/// row, from 0.
fn converted(
    piece: &Piece,
    columns: &FileColumns,
    rows: &RecordBatch,
    first_row: u64,
) -> Result<Vec<ArrayRef>, String> {
    let is_text = piece.file.file.format.is_text();
    let convert = |(index, column): (&usize, &DeclaredColumn)| {
        conversion::convert(rows.column(*index), column, is_text).map_err(|invalid| {
            at(piece, first_row + invalid.row as u64 + 1, Some(&column.name), &invalid.message)
        })
    };
    columns.indexes.iter().zip(columns.writer.columns()).map(convert).collect()
}

/// An error at a row, counted from 1.
fn at(piece: &Piece, row: u64, column: Option<&str>, message: &str) -> String {
    let path = piece.file.file.path.display();
    match column {
        Some(column) => format!("{path}, row {row}, column {column}: {message}"),
        None => format!("{path}, row {row}: {message}"),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
