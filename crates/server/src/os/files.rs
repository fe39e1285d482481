//! How many files, sockets among them, the process may have open.

use rustix::process::{Resource, getrlimit, setrlimit};

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
