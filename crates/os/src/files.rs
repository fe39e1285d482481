//! Files outside the data directory: the limit of open files, and configuration files.
#![allow(
    clippy::disallowed_methods,
    reason = "these files are not in the data directory; the user chooses their paths"
)]

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use rustix::process::{Resource, getrlimit, setrlimit};

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
