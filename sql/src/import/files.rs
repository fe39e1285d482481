//! The files of an import: which ones, and their format.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use crate::import::compression::Compression;

/// The format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Apache Parquet
    Parquet,
    /// Arrow IPC, the file or the stream format
    Arrow,
    /// Comma-separated values, quoted as in RFC 4180
    Csv,
    /// One JSON object in each line
    Json,
}

impl Format {
    /// The format that the end of a file name states, before that of a compression.
    pub fn of_name(path: &Path) -> Option<Format> {
        match Compression::of_name(path).1.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "parquet" | "pq" => Some(Format::Parquet),
            "arrow" | "arrows" | "ipc" | "feather" => Some(Format::Arrow),
            "csv" | "tsv" => Some(Format::Csv),
            "json" | "jsonl" | "ndjson" => Some(Format::Json),
            _ => None,
        }
    }

    /// The usual end of file names, without the dot.
    pub fn extension(self) -> &'static str {
        match self {
            Format::Parquet => "parquet",
            Format::Arrow => "arrow",
            Format::Csv => "csv",
            Format::Json => "json",
        }
    }

    /// Whether values are text without a type.
    pub fn is_text(self) -> bool {
        matches!(self, Format::Csv | Format::Json)
    }
}

/// A file to import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataFile {
    /// Its path, as it is shown in messages.
    pub path: PathBuf,
    /// Its format.
    pub format: Format,
    /// Its compression.
    pub compression: Compression,
    /// Its length in bytes.
    pub size: u64,
    /// When it was written, in milliseconds since the epoch. With the size, it recognizes a changed
    /// file.
    pub modified_ms: u64,
}

/// Finds the files below `paths`: files, directories (with all files of a known format below them),
/// and patterns with `*` and `?` in their last part. Without `format`, the names state it.
///
/// # Errors
/// A message: a path is missing, a pattern matches nothing, a format is unknown.
pub fn find(paths: &[PathBuf], format: Option<Format>) -> Result<Vec<DataFile>, String> {
    let mut files = Vec::new();
    for path in paths {
        let before = files.len();
        match std::fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => add_directory(path, format, &mut files)?,
            Ok(metadata) => files.push(data_file(path, &metadata, format)?),
            Err(error) => match name_pattern(path) {
                Some((dir, pattern)) => add_matching(dir, pattern, format, &mut files)?,
                None => return Err(format!("cannot read {}: {error}", path.display())),
            },
        }
        if files.len() == before {
            return Err(format!(
                "{} has no files to import; their names must end with .parquet, .arrow, .csv or .json (text also with .gz or .zst), or use --format",
                path.display()
            ));
        }
    }
    Ok(files)
}

/// The directory and the pattern of a path whose last part has wildcards.
fn name_pattern(path: &Path) -> Option<(&Path, &str)> {
    let pattern = path.file_name()?.to_str()?;
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    pattern.contains(['*', '?']).then_some((dir, pattern))
}

/// Adds the files below a directory, sorted by path.
fn add_directory(dir: &Path, format: Option<Format>, files: &mut Vec<DataFile>) -> Result<(), String> {
    for path in sorted_entries(dir)? {
        let metadata = metadata(&path)?;
        if metadata.is_dir() {
            add_directory(&path, format, files)?;
        } else if format.is_some() || Format::of_name(&path).is_some() {
            files.push(data_file(&path, &metadata, format)?);
        }
    }
    Ok(())
}

fn add_matching(
    dir: &Path,
    pattern: &str,
    format: Option<Format>,
    files: &mut Vec<DataFile>,
) -> Result<(), String> {
    for path in sorted_entries(dir)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let metadata = metadata(&path)?;
        if metadata.is_file() && matches(pattern.as_bytes(), name.as_bytes()) {
            files.push(data_file(&path, &metadata, format)?);
        }
    }
    Ok(())
}

/// The entries of a directory, without those that are hidden or belong to another program's
/// bookkeeping (`_SUCCESS`).
fn sorted_entries(dir: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |error: std::io::Error| format!("cannot read {}: {error}", dir.display());
    let entries = std::fs::read_dir(dir).map_err(failed)?;
    let mut paths = entries
        .map(|entry| entry.map(|entry| entry.path()).map_err(failed))
        .collect::<Result<Vec<_>, String>>()?;
    paths.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        !name.starts_with(['.', '_'])
    });
    paths.sort();
    Ok(paths)
}

fn metadata(path: &Path) -> Result<Metadata, String> {
    std::fs::metadata(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

fn data_file(path: &Path, metadata: &Metadata, format: Option<Format>) -> Result<DataFile, String> {
    let format = format.or_else(|| Format::of_name(path)).ok_or_else(|| {
        format!(
            "{}: unknown format; the name must end with .parquet, .arrow, .csv or .json, or use --format",
            path.display()
        )
    })?;
    let (compression, _) = Compression::of_name(path);
    if compression != Compression::None && !format.is_text() {
        return Err(format!("{}: only CSV and JSON may be compressed: decompress it first", path.display()));
    }
    let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    Ok(DataFile {
        path: path.to_path_buf(),
        format,
        compression,
        size: metadata.len(),
        modified_ms: modified.map_or(0, |time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
    })
}

/// Whether a name matches a pattern of `*` and `?`. Takes at most the product of both lengths.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut in_name) = (0, 0);
    // The last star, and the position in the name up to which it matches.
    let mut star = None;
    while in_name < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, in_name));
                at += 1;
            }
            Some(byte) if *byte == b'?' || *byte == name[in_name] => {
                at += 1;
                in_name += 1;
            }
            _ => match star {
                Some((star_at, matched)) => {
                    star = Some((star_at, matched + 1));
                    at = star_at + 1;
                    in_name = matched + 1;
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_patterns() {
        for (pattern, name, expected) in [
            ("*.csv", "a.csv", true),
            ("*.csv", "a.csv.gz", false),
            ("a*b*c", "aXbbYc", true),
            ("a*b*c", "aXbbY", false),
            ("part-?", "part-1", true),
            ("part-?", "part-", false),
            ("*", "", true),
            ("", "a", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
        }
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "a test's own files")]
    fn directories_and_patterns_are_expanded_in_order() {
        let root = std::env::temp_dir().join(format!("grampus-import-files-{}", std::process::id()));
        std::fs::create_dir_all(root.join("sub")).unwrap();
        for name in ["b.csv", "a.parquet", "sub/c.json.gz", "_SUCCESS", ".hidden.csv", "notes.txt"] {
            std::fs::write(root.join(name), b"x").unwrap();
        }
        let names = |paths: &[PathBuf], format| {
            find(paths, format).map(|files| {
                let name = |file: &DataFile| file.path.strip_prefix(&root).unwrap().display().to_string();
                files.iter().map(name).collect::<Vec<_>>()
            })
        };
        assert_eq!(
            names(std::slice::from_ref(&root), None).unwrap(),
            ["a.parquet", "b.csv", "sub/c.json.gz"]
        );
        assert_eq!(names(&[root.join("*.csv")], None).unwrap(), ["b.csv"]);
        assert_eq!(names(&[root.join("notes.txt")], Some(Format::Csv)).unwrap(), ["notes.txt"]);
        assert!(names(&[root.join("notes.txt")], None).unwrap_err().contains("--format"));
        assert!(names(&[root.join("*.arrow")], None).unwrap_err().contains("no files"));
        assert!(names(&[root.join("missing.csv")], None).unwrap_err().contains("cannot read"));
        std::fs::write(root.join("a.parquet.gz"), b"x").unwrap();
        assert!(names(&[root.join("a.parquet.gz")], None).unwrap_err().contains("only CSV and JSON"));
        std::fs::remove_dir_all(&root).unwrap();
    }
}
