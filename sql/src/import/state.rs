//! The state of an import in a file, so that an interrupted import can be resumed.
//!
//! ```text
//! grampus import 1
//! table sales
//! columns id VARCHAR row raw; amount BIGINT f:amount bytes_long
//! timestamp 1732812345678
//! done 5242880 1732810000000 0 4194311 data/sales.csv
//! ```
//!
//! A `done` line is a finished piece: size and time of the file, first position and end of the
//! piece, path. All puts of the import have the timestamp of the state, so a piece that is imported
//! twice writes the same cells twice.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::declaration::{Declaration, DeclaredColumn};
use crate::import::files::DataFile;

const MAGIC: &str = "grampus import 1";

/// The state of an import.
#[derive(Debug)]
pub struct State {
    path: PathBuf,
    file: File,
    done: HashSet<String>,
    timestamp: i64,
}

impl State {
    /// Opens a state file, or creates one. `timestamp` is that of the puts of a new import.
    ///
    /// # Errors
    /// A message: the file cannot be used, or belongs to another import.
    pub fn open(path: &Path, declaration: &Declaration, timestamp: i64) -> Result<State, String> {
        let failed = |error: std::io::Error| format!("cannot use {}: {error}", path.display());
        let mut file = open(path).map_err(failed)?;
        let mut text = String::new();
        match file.read_to_string(&mut text) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::InvalidData => return Err(no_state(path)),
            Err(error) => return Err(failed(error)),
        }
        let header = header(declaration);
        if text.is_empty() {
            let start = format!("{header}timestamp {timestamp}\n");
            file.write_all(start.as_bytes()).and_then(|()| file.sync_data()).map_err(failed)?;
            return Ok(State { path: path.to_path_buf(), file, done: HashSet::new(), timestamp });
        }
        if !text.starts_with(MAGIC) {
            return Err(no_state(path));
        }
        // A line without its end was interrupted; its piece is imported again.
        let complete = text.rfind('\n').map_or(0, |end| end + 1);
        let rest = text[..complete].strip_prefix(&header).ok_or_else(|| {
            format!(
                "{} belongs to an import into another table, or with other columns; use another file",
                path.display()
            )
        })?;
        let mut lines = rest.lines();
        let first = lines.next().and_then(|line| line.strip_prefix("timestamp ")?.parse().ok());
        let timestamp = first.ok_or_else(|| no_state(path))?;
        let done = lines.filter_map(|line| line.strip_prefix("done ").map(str::to_string)).collect();
        file.set_len(complete as u64).and_then(|()| file.seek(SeekFrom::End(0))).map_err(failed)?;
        Ok(State { path: path.to_path_buf(), file, done, timestamp })
    }

    /// The timestamp of all puts of the import.
    pub fn timestamp(&self) -> i64 {
        self.timestamp
    }

    /// Whether a piece is finished.
    pub fn is_done(&self, file: &DataFile, range: (u64, u64)) -> bool {
        self.done.contains(&line(file, range))
    }

    /// Records a finished piece.
    ///
    /// # Errors
    /// A message.
    pub fn record(&mut self, file: &DataFile, range: (u64, u64)) -> Result<(), String> {
        let line = line(file, range);
        let written =
            self.file.write_all(format!("done {line}\n").as_bytes()).and_then(|()| self.file.sync_data());
        written.map_err(|error| format!("cannot write {}: {error}", self.path.display()))?;
        self.done.insert(line);
        Ok(())
    }

    /// Removes the file after a complete import.
    ///
    /// # Errors
    /// A message.
    pub fn remove(self) -> Result<(), String> {
        std::fs::remove_file(&self.path)
            .map_err(|error| format!("cannot remove {}: {error}", self.path.display()))
    }
}

fn open(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
}

fn no_state(path: &Path) -> String {
    format!("{} is not the state of an import; it is not overwritten", path.display())
}

fn header(declaration: &Declaration) -> String {
    let columns: Vec<String> = declaration.columns.iter().map(DeclaredColumn::to_text).collect();
    format!("{MAGIC}\ntable {}\ncolumns {}\n", declaration.table, columns.join("; ")).replace('\r', "\\r")
}

fn line(file: &DataFile, (start, end): (u64, u64)) -> String {
    let path = file.path.to_string_lossy().escape_default().to_string();
    format!("{} {} {start} {end} {path}", file.size, file.modified_ms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::declaration::tests::declared;
    use crate::import::compression::Compression;
    use crate::import::files::Format;

    #[test]
    #[allow(clippy::disallowed_methods, reason = "a test's own files")]
    fn finished_pieces_survive_an_interruption() {
        let path = std::env::temp_dir().join(format!("grampus-import-state-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let sql = "CREATE EXTERNAL TABLE t (id VARCHAR PRIMARY KEY, a INT) STORED AS GRAMPUS LOCATION 't'";
        let declaration = declared(sql, &["f"]).unwrap();
        let file = DataFile {
            path: "a\nb.csv".into(),
            format: Format::Csv,
            compression: Compression::None,
            size: 9,
            modified_ms: 5,
        };
        let mut state = State::open(&path, &declaration, 77).unwrap();
        state.record(&file, (0, 4)).unwrap();
        state.record(&file, (4, 9)).unwrap();
        drop(state);
        // The process died while it wrote the second line.
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, &text[..text.len() - 3]).unwrap();
        let mut state = State::open(&path, &declaration, 99).unwrap();
        assert_eq!((state.timestamp(), state.done.len()), (77, 1));
        assert!(state.is_done(&file, (0, 4)) && !state.is_done(&file, (4, 9)));
        // A file that changed is imported again.
        assert!(!state.is_done(&DataFile { size: 10, ..file.clone() }, (0, 4)));
        state.record(&file, (4, 9)).unwrap();
        drop(state);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        let other = declared(&sql.replace("INT", "BIGINT"), &["f"]).unwrap();
        assert!(State::open(&path, &other, 1).unwrap_err().contains("other columns"));
        std::fs::write(&path, "precious").unwrap();
        assert!(State::open(&path, &declaration, 1).unwrap_err().contains("not overwritten"));
        std::fs::remove_file(&path).unwrap();
    }
}
