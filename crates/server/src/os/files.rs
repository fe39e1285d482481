//! Files beside the data: how many the process may have open, files of configuration, and files of lines that users
//! ask for.
#![allow(
    clippy::disallowed_methods,
    reason = "these files are no data of ours, and lie where their users say"
)]

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit, setrlimit};
use sinks::{Files, LineFile};

/// Where the system sets no limit, the tables of the kernel do.
const UNLIMITED: u64 = 1 << 20;

/// Raises the soft limit of open files to the hard one; returns the limit that holds then.
pub fn raise_open_files() -> u64 {
    let mut limit = getrlimit(Resource::Nofile);
    let soft = limit.current;
    limit.current = limit.maximum;
    // Refused on systems whose hard limit is more than they allow: the soft one holds on.
    let raised = setrlimit(Resource::Nofile, limit).is_ok();
    let held = if raised { limit.maximum } else { soft };
    held.unwrap_or(UNLIMITED)
}

/// At most `len_max` bytes of a file; none if there is no file. Blocks; for the start of a process.
///
/// # Errors
/// The system's, if the file is there and cannot be read.
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
        Ok(Box::new(Appended { file, path: path.to_owned(), identity }))
    }
}

/// A file that is written at its end, wherever that is by now.
struct Appended {
    file: File,
    path: PathBuf,
    identity: (u64, u64),
}

/// Device and inode: a path's file is another one when they differ.
fn identity(of: &std::fs::Metadata) -> (u64, u64) {
    (of.dev(), of.ino())
}

impl Write for Appended {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl LineFile for Appended {
    fn is_in_place(&self) -> bool {
        std::fs::metadata(&self.path).is_ok_and(|there| identity(&there) == self.identity)
    }
}
