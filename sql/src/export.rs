//! Exports a declared table's rows to one file, or to a directory with a file for each region.
//!
//! The files of a directory are written in parallel, and an interrupted export resumes with the
//! unfinished ones ([`manifest`]). DataFusion's COPY writes the files: it encodes columns of
//! Parquet on several cores, gives a file its name only when it is complete, and syncs it
//! ([`durable`]).

pub mod manifest;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base::env::Env;
use datafusion::catalog::{CatalogProvider, MemoryCatalogProvider, MemorySchemaProvider, SchemaProvider};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::context::SessionContext;
use datafusion::physical_plan::{ExecutionPlan, collect};
use futures_util::{StreamExt, stream};

use crate::durable;
use crate::import::files::Format;
use crate::progress::Progress;
use crate::scan::GrampusScan;
use crate::statements::{Engine, user_message};
use crate::stored::{Place, StoredOptions};
use crate::table::GrampusTable;
use manifest::Manifest;

/// Name of the catalog whose tables are the parts of exports.
const CATALOG: &str = "export";
/// The start of the names of files in a directory.
const PART_PREFIX: &str = "part-";
/// Time between two updates of the progress bar.
const UPDATE_EVERY: Duration = Duration::from_millis(200);

/// Options of `grampus export`.
#[derive(Debug, Clone, clap::Args)]
pub struct ExportArguments {
    /// Name of the table in SQL (SHOW TABLES lists the declared tables)
    #[arg(value_name = "TABLE")]
    pub table: String,
    /// File to write, or a directory if it ends with / or exists as one; a directory gets one file
    /// for each region
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Format of the files; default: the end of the file name, and Parquet in a directory
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// An option of COPY in SQL, for example format.compression=zstd(3); may be repeated
    #[arg(long = "option", value_name = "KEY=VALUE", value_parser = key_value)]
    pub options: Vec<(String, String)>,
    /// Number of files that are written at the same time; default: one per core
    #[arg(long, value_name = "N")]
    pub parallel: Option<usize>,
    /// The directory that is read instead of a cluster.
    #[command(flatten)]
    pub stored: StoredArguments,
}

/// Options of an export without a server.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct StoredArguments {
    /// Read the rows from this root directory of Grampus or HBase, without a server: a local
    /// directory or hdfs://HOST:PORT/PATH. The server must be stopped
    #[arg(long, value_name = "DIR")]
    pub directory: Option<String>,
    /// With --directory on HDFS: directory with core-site.xml and hdfs-site.xml
    #[arg(long, value_name = "DIR", requires = "directory")]
    pub config: Option<PathBuf>,
    /// With --directory on HDFS: set an option of these files; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "directory")]
    pub settings: Vec<String>,
    /// With --directory: read this snapshot. A server may use the directory
    #[arg(long, value_name = "NAME", requires = "directory")]
    pub snapshot: Option<String>,
    /// With --directory: read the rows in store files, although logs may have newer edits. A server
    /// may use the directory
    #[arg(long, requires = "directory", conflicts_with = "snapshot")]
    pub flushed: bool,
    /// With --directory: file with the CREATE EXTERNAL TABLE statement of the table. Default: the
    /// declarations that are stored in the directory
    #[arg(long, value_name = "FILE", requires = "directory")]
    pub declaration: Option<PathBuf>,
}

impl ExportArguments {
    /// The directory from which rows are read; `None`: from a cluster.
    pub fn stored(&self) -> Option<StoredOptions> {
        let StoredArguments { directory, config, settings, snapshot, flushed, .. } = self.stored.clone();
        let place = directory.map(|directory| Place { directory, config, settings });
        place.map(|place| StoredOptions { place, snapshot, flushed })
    }
}

fn key_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
    Ok((key.to_string(), value.to_string()))
}

/// Runs an export. Returns the number of rows in the files, including those that an interrupted run
/// of it wrote.
///
/// # Errors
/// A message for the user.
pub async fn run(arguments: &ExportArguments, engine: &Engine, env: &Env) -> Result<u64, String> {
    let message = |error: DataFusionError| user_message(&error);
    if let Some(file) = &arguments.stored.declaration {
        declare(file, engine).await?;
    }
    engine.catalog.refresh().await.map_err(message)?;
    let table = engine.catalog.find(&arguments.table).map_err(message)?;
    let parts = Arc::new(MemorySchemaProvider::new());
    let catalog = MemoryCatalogProvider::new();
    catalog.register_schema("parts", Arc::clone(&parts) as _).map_err(message)?;
    engine.context.register_catalog(CATALOG, Arc::new(catalog));
    let export = Export {
        context: engine.context.clone(),
        parts,
        options: arguments.options.clone(),
        origin: arguments.stored().map(|stored| stored.origin()),
        env,
    };
    let is_directory = arguments.file.is_dir() || arguments.file.to_string_lossy().ends_with('/');
    match is_directory {
        true => {
            let format = arguments.format.unwrap_or(Format::Parquet);
            let cores = std::thread::available_parallelism().map_or(1, usize::from);
            let parallel = arguments.parallel.unwrap_or(cores).max(1);
            export.to_directory(&table, &arguments.file, format, parallel).await
        }
        false => {
            let format = arguments.format.or_else(|| Format::of_name(&arguments.file)).ok_or_else(|| {
                format!(
                    "{}: unknown format; the name must end with .parquet, .arrow, .csv or .json, or use --format",
                    arguments.file.display()
                )
            })?;
            if arguments.file.exists() {
                return Err(format!("{} exists; remove it, or use another name", arguments.file.display()));
            }
            let part = Part { number: 0, table, file: arguments.file.clone(), format };
            let progress = Progress::of_parts(1);
            let rows = export.write(&part, &|rows| progress.show_rows(rows)).await;
            progress.clear();
            rows.map_err(message)
        }
    }
}

/// Runs the statements of a file, which declare tables for this process.
#[allow(clippy::disallowed_methods, reason = "a script of the user's, not a file of the store's")]
async fn declare(file: &Path, engine: &Engine) -> Result<(), String> {
    let in_file = |error: String| format!("{}: {error}", file.display());
    let sql = std::fs::read_to_string(file).map_err(|error| in_file(error.to_string()))?;
    for statement in Engine::parse(&sql).map_err(|error| in_file(user_message(&error)))? {
        engine.run(statement).await.map_err(|error| in_file(user_message(&error)))?;
    }
    Ok(())
}

/// A running export.
struct Export<'a> {
    /// The directory that is read; `None`: a cluster.
    origin: Option<String>,
    context: SessionContext,
    /// The tables of the parts.
    parts: Arc<MemorySchemaProvider>,
    options: Vec<(String, String)>,
    env: &'a Env,
}

/// A file of an export.
struct Part {
    number: usize,
    /// Its rows.
    table: Arc<GrampusTable>,
    file: PathBuf,
    format: Format,
}

impl Export<'_> {
    async fn to_directory(
        &self,
        table: &Arc<GrampusTable>,
        dir: &Path,
        format: Format,
        parallel: usize,
    ) -> Result<u64, String> {
        let failed = |error: std::io::Error| format!("cannot use {}: {error}", dir.display());
        create_directory(dir).map_err(failed)?;
        let header = manifest::header(table.declaration(), format, self.origin.as_deref());
        let mut manifest = match Manifest::open(dir, &header)? {
            Some(manifest) => manifest,
            None => {
                if has_files(dir).map_err(failed)? {
                    return Err(format!("{} is not empty; use a new directory", dir.display()));
                }
                let ranges = table.region_ranges().await.map_err(|error| user_message(&error))?;
                Manifest::create(dir, &header, ranges)?
            }
        };
        let part = |(number, range): (usize, &client::columns::RowRange)| Part {
            number,
            table: Arc::new(table.within(range.clone())),
            file: dir.join(format!("{PART_PREFIX}{number:05}.{}", format.extension())),
            format,
        };
        let all = manifest.parts().iter().enumerate();
        let parts: Vec<Part> = all.filter(|(number, _)| !manifest.is_done(*number)).map(part).collect();
        let progress = Progress::of_parts(manifest.parts().len() as u64);
        progress.advance(manifest.parts_done() as u64, manifest.rows_done());
        let mut writes = stream::iter(parts)
            .map(async |part: Part| (part.number, self.write(&part, &|_| ()).await))
            .buffer_unordered(parallel);
        let mut failure = None;
        while let Some((number, written)) = writes.next().await {
            let recorded =
                written.map_err(|error| user_message(&error)).and_then(|rows| manifest.record(number, rows));
            match recorded {
                Ok(()) => progress.advance(1, manifest.rows_done()),
                Err(message) => {
                    failure = Some(message);
                    break;
                }
            }
        }
        drop(writes);
        progress.clear();
        if let Some(message) = failure {
            return Err(format!("{message} (the same command resumes the export)"));
        }
        let rows = manifest.rows_done();
        remove_unfinished(dir).map_err(failed)?;
        manifest.remove()?;
        Ok(rows)
    }

    /// Writes a file; returns its number of rows.
    async fn write(&self, part: &Part, on_rows: &(dyn Fn(u64) + Sync)) -> Result<u64> {
        let name = format!("part{}", part.number);
        self.parts.register_table(name.clone(), Arc::clone(&part.table) as _)?;
        let plan = self.context.sql(&self.statement(&name, part)).await?.create_physical_plan().await?;
        let done = collect(Arc::clone(&plan), self.context.task_ctx());
        tokio::pin!(done);
        loop {
            tokio::select! {
                outcome = &mut done => {
                    outcome?;
                    break;
                }
                () = self.env.clock.sleep(UPDATE_EVERY) => on_rows(rows_read(&plan)),
            }
        }
        self.parts.deregister_table(&name)?;
        Ok(rows_read(&plan))
    }

    fn statement(&self, name: &str, part: &Part) -> String {
        let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
        let options: Vec<String> =
            self.options.iter().map(|(key, value)| format!("{} {}", quoted(key), quoted(value))).collect();
        let options = match options.is_empty() {
            true => String::new(),
            false => format!(" OPTIONS ({})", options.join(", ")),
        };
        let file = quoted(&part.file.to_string_lossy());
        let format = part.format.extension().to_ascii_uppercase();
        format!("COPY {CATALOG}.parts.{name} TO {file} STORED AS {format}{options}")
    }
}

/// Creates a directory durably. One that exists may have been created by a killed run.
fn create_directory(dir: &Path) -> std::io::Result<()> {
    let (existed, parents) = (dir.is_dir(), durable::directories_of(&std::path::absolute(dir)?));
    std::fs::create_dir_all(dir)?;
    for parent in parents {
        match durable::sync(&parent) {
            // No run of this user has created the directory there.
            Err(error) if existed && error.kind() == ErrorKind::PermissionDenied => {}
            synced => synced?,
        }
    }
    Ok(())
}

/// Whether a directory has files other than a manifest that was not complete.
fn has_files(dir: &Path) -> std::io::Result<bool> {
    for entry in std::fs::read_dir(dir)? {
        if entry?.file_name().to_string_lossy() != manifest::TEMPORARY_NAME {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Removes what killed runs wrote: `part-00000.csv#1` is the name of an unfinished file.
fn remove_unfinished(dir: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(PART_PREFIX) && name.contains('#') {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// The rows that the scans of a plan have returned.
fn rows_read(plan: &Arc<dyn ExecutionPlan>) -> u64 {
    let own = match plan.downcast_ref::<GrampusScan>() {
        Some(scan) => scan.metrics().and_then(|metrics| metrics.output_rows()).unwrap_or(0) as u64,
        None => 0,
    };
    own + plan.children().into_iter().map(rows_read).sum::<u64>()
}
