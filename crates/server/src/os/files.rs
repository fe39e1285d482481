//! Files outside the data directory: the limit of open files, configuration files, and text files
//! written for the user.
#![allow(
    clippy::disallowed_methods,
    reason = "these files are not in the data directory; the user chooses their paths"
)]

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit, setrlimit};
use sinks::{Files, LineFile};

/// Used where the process has no limit of open files; the kernel's tables still limit them.
const UNLIMITED: u64 = 1 << 20;

/// Raises the soft limit of open files to the hard limit and returns the effective limit.
pub fn raise_open_files() -> u64 {
    let mut limit = getrlimit(Resource::Nofile);
    let soft = limit.current;
    limit.current = limit.maximum;
    // Fails on systems whose hard limit exceeds what they allow; then the soft limit stays
    // effective.
    let raised = setrlimit(Resource::Nofile, limit).is_ok();
    let held = if raised { limit.maximum } else { soft };
    held.unwrap_or(UNLIMITED)
}

/// Reads at most `len_max` bytes of a file; `None` if there is no file. Blocks, so call it only at
/// the start of a process.
///
/// # Errors
/// The system's error, if the file exists but cannot be read.
pub fn read_at_start(path: &Path, len_max: usize) -> io::Result<Option<Vec<u8>>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(len_max as u64).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// Files of this machine.
pub struct LocalFiles;

impl Files for LocalFiles {
    fn append_to(&self, path: &Path) -> io::Result<Box<dyn LineFile>> {
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        let identity = identity(&file.metadata()?);
        Ok(Box::new(AppendFile { file, path: path.to_owned(), identity }))
    }
}

/// A file that every write appends to, even if another process changes its length.
struct AppendFile {
    file: File,
    path: PathBuf,
    identity: (u64, u64),
}

/// Device and inode. If they differ, the path names another file than before.
fn identity(of: &std::fs::Metadata) -> (u64, u64) {
    (of.dev(), of.ino())
}

impl Write for AppendFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl LineFile for AppendFile {
    fn is_in_place(&self) -> bool {
        std::fs::metadata(&self.path).is_ok_and(|there| identity(&there) == self.identity)
    }
}
