//! `grampus hfile`, `grampus wal` and `grampus snapshot`: print files without a server.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use base::pool::Pool;
use base::text::from_string_binary;
use fs::FilePath;
use fs::local::LocalFs;
use printers::{
    Error, HFileOptions, HFilePrinter, LogFilter, LogForm, LogPrinter, SnapshotOptions, SnapshotPrinter,
};

use crate::arguments::{HFileArguments, SnapshotArguments, WalArguments};
use crate::directory::{self, Directory, Failure};

/// Threads that read files.
const READERS: usize = 1;

/// Prints HFiles.
///
/// # Errors
/// One line that names the file that cannot be read.
pub fn hfile(arguments: &HFileArguments) -> Result<(), String> {
    let options = HFileOptions {
        verbose: arguments.verbose,
        keys: arguments.keys,
        values: arguments.values,
        metadata: arguments.metadata,
        index: arguments.index,
        block_headers: arguments.block_headers,
        statistics: arguments.statistics,
        ranges: arguments.ranges,
        checks_rows: arguments.checks_rows,
        checks_family: arguments.checks_family,
        row: arguments.row.as_deref().map(bytes),
    };
    let pool = Arc::new(Pool::new("print", READERS));
    let (mut out, mut warnings) = (BufWriter::new(io::stdout().lock()), io::stderr());
    let mut printer = HFilePrinter::new(&options, &mut out, &mut warnings);
    os::block_on(async {
        for name in arguments.file.iter().chain(&arguments.files) {
            let file = OpenPath::of(name, &pool)?;
            let printed = printer.print(&file.fs, &file.path, &file.shown).await;
            printed.map_err(|error| failed(name, &error))?;
        }
        printer.finish().map_err(|error| error.to_string())
    })?;
    out.flush().map_err(|error| error.to_string())
}

/// Prints logs.
///
/// # Errors
/// One line that names the log that cannot be read.
pub fn wal(arguments: &WalArguments) -> Result<(), String> {
    let filter = LogFilter {
        tables: arguments.tables.iter().map(|table| table.clone().into_bytes()).collect(),
        region: arguments.region.clone().map(String::into_bytes),
        seq_id: arguments.sequence,
        row: arguments.row.as_deref().map(bytes),
        row_prefix: arguments.row_prefix.as_deref().map(bytes),
        offset: arguments.offset,
    };
    let form = LogForm { json: arguments.json, values: arguments.values, rows_only: arguments.rows_only };
    let pool = Arc::new(Pool::new("print", READERS));
    let mut out = BufWriter::new(io::stdout().lock());
    let mut printer = LogPrinter::new(&filter, form, &mut out);
    os::block_on(async {
        for name in &arguments.files {
            let file = OpenPath::of(name, &pool)?;
            let printed = printer.print(&file.fs, &file.path).await;
            printed.map_err(|error| failed(name, &error))?;
        }
        Ok::<(), String>(())
    })?;
    out.flush().map_err(|error| error.to_string())
}

/// Prints snapshots.
pub fn snapshot(arguments: &SnapshotArguments) -> ExitCode {
    let dir = arguments.dir.as_ref().or(arguments.remote_dir.as_ref()).map_or("", String::as_str);
    let print = async |directory| print_snapshots(&directory, arguments).await;
    directory::exit_code(match local_path(dir) {
        Some(path) if !path.is_dir() => Err(Failure::Failed(format!("{dir}: not a directory"))),
        _ => directory::run(dir, &arguments.place, print),
    })
}

async fn print_snapshots(directory: &Directory, arguments: &SnapshotArguments) -> Result<u8, Failure> {
    let (mut out, mut warnings) = (BufWriter::new(io::stdout().lock()), io::stderr());
    let mut printer = SnapshotPrinter::new(&*directory.fs, &directory.root, &mut out, &mut warnings);
    let options = SnapshotOptions {
        files: arguments.files,
        statistics: arguments.stats,
        schema: arguments.schema,
        bytes: arguments.size_in_bytes,
    };
    let printed = match &arguments.snapshot {
        Some(name) if !arguments.list_snapshots => match printer.print(name, options).await {
            Ok(false) => return Err(Failure::Failed(format!("Snapshot '{name}' not found!"))),
            printed => printed.map(|_| ()),
        },
        _ => printer.list().await,
    };
    printed.and_then(|()| Ok(out.flush()?)).map_err(|error| Failure::Failed(error.to_string()))?;
    Ok(0)
}

/// The path of a local directory; `None` for a URI of another file system.
fn local_path(dir: &str) -> Option<PathBuf> {
    match dir.strip_prefix("file:") {
        Some(path) => Some(Path::new("/").join(path.trim_start_matches('/'))),
        None => (!dir.contains("://")).then(|| dir.into()),
    }
}

fn bytes(text: &str) -> Vec<u8> {
    from_string_binary(text.as_bytes())
}

fn failed(name: &str, error: &Error) -> String {
    format!("{name}: {error}")
}

/// A file and the directory that it is read from.
struct OpenPath {
    fs: LocalFs,
    path: FilePath,
    // The name in the form of Hadoop's paths, as HBase's printer shows it.
    shown: String,
}

impl OpenPath {
    fn of(name: &str, pool: &Arc<Pool>) -> Result<OpenPath, String> {
        let local = match name.split_once(':') {
            Some(("file", path)) => Path::new("/").join(path.trim_start_matches('/')),
            Some((scheme, _)) if name.contains("://") => {
                return Err(format!("{name}: {scheme}:// is not supported here; fetch the file first"));
            }
            _ => std::path::absolute(name).map_err(|error| format!("{name}: {error}"))?,
        };
        let (Some(directory), Some(file)) = (local.parent(), local.file_name()) else {
            return Err(format!("{name}: not a file"));
        };
        let fs = LocalFs::new(directory, pool.clone()).map_err(|error| format!("{name}: {error}"))?;
        let file: PathBuf = file.into();
        Ok(OpenPath {
            fs,
            path: FilePath::new(&file.to_string_lossy()),
            shown: format!("file:{}", local.display()),
        })
    }
}
