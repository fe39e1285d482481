//! `grampus sql`: SQL over the cluster's tables.
//!
//! A binary of its own, `grampus-sql`, does it: what it is made of is more than the server is, and is built apart (`sql/` in
//! the repository). This process becomes that one, so that signals, status and terminal are its own.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;

/// The binary's name.
const BINARY: &str = "grampus-sql";

/// What `grampus-sql` is told; it knows its own options, --help among them.
#[derive(Debug, Clone, Args)]
#[command(disable_help_flag = true)]
pub struct SqlArguments {
    /// Options of grampus-sql
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTIONS")]
    pub arguments: Vec<OsString>,
}

/// Becomes `grampus-sql`.
///
/// # Errors
/// One line for a person: it is not there, or cannot be started.
pub fn sql(arguments: &SqlArguments) -> Result<(), String> {
    let own = std::env::current_exe().unwrap_or_default();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let binary = find(own.parent(), &path).ok_or_else(|| {
        let beside = own.parent().unwrap_or(Path::new(".")).display().to_string();
        format!(
            "there is no {BINARY} in {beside} nor in PATH; build it with \"cd sql && cargo build --release\" in the \
             sources of Grampus, and put sql/target/release/{BINARY} there"
        )
    })?;
    // It returns only if it fails.
    let error = Command::new(&binary).args(&arguments.arguments).exec();
    Err(format!("cannot start {}: {error}", binary.display()))
}

/// The binary beside this one, else the first in `PATH`.
fn find(beside: Option<&Path>, path: &OsString) -> Option<PathBuf> {
    let beside = beside.map(Path::to_path_buf);
    beside
        .into_iter()
        .chain(std::env::split_paths(path))
        .map(|folder| folder.join(BINARY))
        .find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::disallowed_methods, reason = "a test's own files")]
    fn the_binary_beside_comes_first() {
        let root = std::env::temp_dir().join(format!("grampus-sql-{}", std::process::id()));
        let (beside, other) = (root.join("beside"), root.join("other"));
        for folder in [&beside, &other] {
            std::fs::create_dir_all(folder).unwrap();
        }
        let path = std::env::join_paths([&beside, &other]).unwrap();
        assert_eq!(find(Some(&beside), &path), None);
        std::fs::write(other.join(BINARY), b"").unwrap();
        assert_eq!(find(Some(&beside), &path), Some(other.join(BINARY)));
        std::fs::write(beside.join(BINARY), b"").unwrap();
        assert_eq!(find(Some(&beside), &OsString::new()), Some(beside.join(BINARY)));
        std::fs::remove_dir_all(&root).unwrap();
    }
}
