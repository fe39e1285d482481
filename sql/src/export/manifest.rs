//! The parts of an export to a directory, and which of them are finished, in a file of the
//! directory.
//!
//! ```text
//! grampus export 1
//! table sales
//! columns id VARCHAR row raw; amount BIGINT f:amount bytes_long
//! format parquet
//! part 6e 6f
//! done 0 1042
//! ```
//!
//! An export of a directory or of a snapshot has a line `source` after the format. A `part` line is
//! a range of row keys in hexadecimal, with `-` for an open end. A `done` line is the number of a
//! finished part, and its rows. The file is removed at the end of the export.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use client::columns::RowRange;

use crate::declaration::{Declaration, DeclaredColumn};
use crate::import::files::Format;

/// Its name. Programs that read directories of Parquet skip names that begin with `_`.
pub const FILE_NAME: &str = "_grampus_export";

/// Its name while it is written.
pub const TEMPORARY_NAME: &str = "_grampus_export.new";

/// The state of an export to a directory.
#[derive(Debug)]
pub struct Manifest {
    path: PathBuf,
    file: File,
    parts: Vec<RowRange>,
    /// The rows of finished parts, by number.
    done: BTreeMap<usize, u64>,
}

impl Manifest {
    /// The manifest of an interrupted export; `None` if the directory has none.
    ///
    /// # Errors
    /// A message: it cannot be read, or is of another export.
    pub fn open(dir: &Path, header: &str) -> Result<Option<Manifest>, String> {
        let path = dir.join(FILE_NAME);
        let failed = |error: std::io::Error| format!("cannot read {}: {error}", path.display());
        let mut file = match OpenOptions::new().read(true).write(true).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(failed)?;
        // An interrupted line does not count.
        let complete = text.rfind('\n').map_or(0, |end| end + 1);
        let rest = text[..complete].strip_prefix(header).ok_or_else(|| {
            format!(
                "{} is of an export of another table or source, with other columns, or of another format; use another directory",
                path.display()
            )
        })?;
        let (mut parts, mut done) = (Vec::new(), BTreeMap::new());
        for line in rest.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let read = match words[..] {
                ["part", start, stop] => range(start, stop).map(|range| parts.push(range)),
                ["done", part, rows] => part.parse().ok().zip(rows.parse().ok()).map(|(part, rows)| {
                    done.insert(part, rows);
                }),
                _ => None,
            };
            read.ok_or_else(|| format!("{}: invalid line {line:?}; remove the directory", path.display()))?;
        }
        file.set_len(complete as u64).and_then(|()| file.seek(SeekFrom::End(0))).map_err(failed)?;
        Ok(Some(Manifest { path, file, parts, done }))
    }

    /// A manifest for a new export. Written under another name and renamed, so that it is complete.
    ///
    /// # Errors
    /// A message.
    #[allow(clippy::disallowed_methods, reason = "a file of the user's, not of the store's")]
    pub fn create(dir: &Path, header: &str, parts: Vec<RowRange>) -> Result<Manifest, String> {
        let path = dir.join(FILE_NAME);
        let failed = |error: std::io::Error| format!("cannot write {}: {error}", path.display());
        let mut text = header.to_string();
        for RowRange { start, stop } in &parts {
            text.push_str(&format!("part {} {}\n", hex(start), hex(stop)));
        }
        let temporary = dir.join(TEMPORARY_NAME);
        let mut file = File::create(&temporary).map_err(failed)?;
        file.write_all(text.as_bytes())
            .and_then(|()| file.sync_data())
            .and_then(|()| std::fs::rename(&temporary, &path))
            .map_err(failed)?;
        Ok(Manifest { path, file, parts, done: BTreeMap::new() })
    }

    /// The ranges of all parts.
    pub fn parts(&self) -> &[RowRange] {
        &self.parts
    }

    /// Whether a part is finished.
    pub fn is_done(&self, part: usize) -> bool {
        self.done.contains_key(&part)
    }

    /// The rows of all finished parts.
    pub fn rows_done(&self) -> u64 {
        self.done.values().sum()
    }

    /// The number of finished parts.
    pub fn parts_done(&self) -> usize {
        self.done.len()
    }

    /// Records a finished part.
    ///
    /// # Errors
    /// A message.
    pub fn record(&mut self, part: usize, rows: u64) -> Result<(), String> {
        let written = self.file.write_all(format!("done {part} {rows}\n").as_bytes());
        written.map_err(|error| format!("cannot write {}: {error}", self.path.display()))?;
        self.done.insert(part, rows);
        Ok(())
    }

    /// Removes the file.
    ///
    /// # Errors
    /// A message.
    pub fn remove(self) -> Result<(), String> {
        std::fs::remove_file(&self.path)
            .map_err(|error| format!("cannot remove {}: {error}", self.path.display()))
    }
}

/// The first lines of the manifest of an export, which must be the same when it is resumed.
/// `origin` is the directory that is read, if it is not a cluster.
pub fn header(declaration: &Declaration, format: Format, origin: Option<&str>) -> String {
    let columns: Vec<String> = declaration.columns.iter().map(DeclaredColumn::to_text).collect();
    let (table, columns, format) = (&declaration.table, columns.join("; "), format.extension());
    let source = origin.map(|origin| format!("source {origin}\n")).unwrap_or_default();
    format!("grampus export 1\ntable {table}\ncolumns {columns}\nformat {format}\n{source}")
}

fn hex(bytes: &[u8]) -> String {
    match bytes.is_empty() {
        true => "-".into(),
        false => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}

fn range(start: &str, stop: &str) -> Option<RowRange> {
    Some(RowRange { start: unhex(start)?, stop: unhex(stop)? })
}

fn unhex(text: &str) -> Option<Bytes> {
    if text == "-" {
        return Some(Bytes::new());
    }
    let pair = |at: usize| text.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
    (0..text.len()).step_by(2).map(pair).collect::<Option<Vec<u8>>>().map(Bytes::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::declaration::tests::declared;

    #[test]
    fn a_manifest_survives_an_interruption() {
        let dir = std::env::temp_dir().join(format!("grampus-export-manifest-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let sql = "CREATE EXTERNAL TABLE t (id VARCHAR PRIMARY KEY, a INT) STORED AS GRAMPUS LOCATION 't'";
        let declaration = declared(sql, &["f"]).unwrap();
        let csv = header(&declaration, Format::Csv, None);
        assert!(Manifest::open(&dir, &csv).unwrap().is_none());
        let middle = Bytes::from_static(b"m\x00");
        let parts = vec![
            RowRange { start: Bytes::new(), stop: middle.clone() },
            RowRange { start: middle, stop: Bytes::new() },
        ];
        let mut manifest = Manifest::create(&dir, &csv, parts.clone()).unwrap();
        manifest.record(1, 42).unwrap();
        manifest.file.write_all(b"done 0 4").unwrap();
        drop(manifest);
        let manifest = Manifest::open(&dir, &csv).unwrap().unwrap();
        assert_eq!(manifest.parts(), parts);
        assert_eq!((manifest.is_done(0), manifest.is_done(1), manifest.rows_done()), (false, true, 42));
        let others = [(Format::Json, None), (Format::Csv, Some("directory /d"))];
        for other in others.map(|(format, origin)| header(&declaration, format, origin)) {
            assert!(Manifest::open(&dir, &other).unwrap_err().contains("another format"));
        }
        manifest.remove().unwrap();
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
