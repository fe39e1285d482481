//! A log file that is renamed when it is full, so that logs take a bounded amount of disk space.
#![allow(clippy::disallowed_methods, reason = "the process's log is not a file of the store")]

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A log file. A full file is renamed to `NAME.1`, the file before it to `NAME.2`, and so on; the
/// oldest one is removed.
///
/// A line that cannot be written, for example because the disk is full, goes to standard error.
pub struct LogFile {
    path: PathBuf,
    bytes_max: u64,
    // Renamed files that are kept, at least one.
    old_files_max: u32,
    file: File,
    len: u64,
}

impl LogFile {
    /// Opens the file, or creates it, and appends to it. Keeps `old_files_max` full files, at least
    /// one, of about `bytes_max` bytes each.
    ///
    /// # Errors
    /// The system's error.
    pub fn open(path: &Path, bytes_max: u64, old_files_max: u32) -> io::Result<LogFile> {
        let file = append_to(path)?;
        let len = file.metadata()?.len();
        Ok(LogFile { path: path.to_path_buf(), bytes_max, old_files_max: old_files_max.max(1), file, len })
    }

    /// Renames the files and starts a new one. If a file cannot be renamed, the current one grows.
    fn rotate(&mut self) -> io::Result<()> {
        // The next attempt is after as many bytes again, so that a failure is not repeated at each
        // line.
        self.len = 0;
        for number in (1..self.old_files_max).rev() {
            match fs::rename(self.numbered(number), self.numbered(number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        fs::rename(&self.path, self.numbered(1))?;
        self.file = append_to(&self.path)?;
        Ok(())
    }

    fn numbered(&self, number: u32) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        path.push(format!(".{number}"));
        path.into()
    }
}

impl Write for LogFile {
    /// Writes a whole line, to this file or to standard error.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let is_full = self.len > 0 && self.len + line.len() as u64 > self.bytes_max;
        let rotated = if is_full { self.rotate() } else { Ok(()) };
        match self.file.write_all(line) {
            Ok(()) => self.len += line.len() as u64,
            Err(_) => io::stderr().write_all(line)?,
        }
        if let Err(error) = rotated {
            let path = self.path.display();
            let _ = writeln!(self.file, "cannot rename the full log file {path}: {error}; it grows");
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_files_are_renamed_and_the_oldest_is_removed() {
        let dir = std::env::temp_dir().join(format!("grampus-log-file-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let path = dir.join("grampus.log");
        // Opened twice: what was written before counts.
        for lines in [["1\n", "2\n"], ["3\n", "4\n"], ["5\n", "6\n"], ["7\n", "8\n"]] {
            let mut log = LogFile::open(&path, 6, 1).unwrap();
            for line in lines {
                log.write_all(line.as_bytes()).unwrap();
            }
        }
        let read = |name: &str| fs::read_to_string(dir.join(name)).ok();
        assert_eq!(read("grampus.log").as_deref(), Some("7\n8\n"));
        assert_eq!(read("grampus.log.1").as_deref(), Some("4\n5\n6\n"));
        assert_eq!(read("grampus.log.2"), None);
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_line_longer_than_a_file_is_written() {
        let dir = std::env::temp_dir().join(format!("grampus-long-line-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let path = dir.join("grampus.log");
        let mut log = LogFile::open(&path, 6, 2).unwrap();
        log.write_all(b"0123456789\n").unwrap();
        log.write_all(b"abc\n").unwrap();
        assert_eq!(fs::read(dir.join("grampus.log.1")).unwrap(), b"0123456789\n");
        assert_eq!(fs::read(&path).unwrap(), b"abc\n");
        fs::remove_dir_all(&dir).unwrap();
    }
}
