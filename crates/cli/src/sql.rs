//! `grampus sql`: SQL over the cluster's tables; `grampus export` and `grampus import`: their rows
//! in files.
//!
//! A separate binary, `grampus-sql`, implements it (`sql/` in the repository). Its dependencies are
//! larger than the server, so it has its own build. This process replaces itself with that binary
//! by `exec`: signals, exit status and terminal are those of `grampus-sql`.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;

/// Name of the binary.
const BINARY: &str = "grampus-sql";

/// Arguments for `grampus-sql`, which parses them itself, including --help.
#[derive(Debug, Clone, Args)]
#[command(disable_help_flag = true)]
pub struct SqlArguments {
    /// Options of grampus-sql
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTIONS")]
    pub arguments: Vec<OsString>,
}

/// What `grampus-sql` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SqlCommand {
    /// A shell, a script, or a port for PostgreSQL's clients.
    Sql,
    /// Rows of a table to files.
    Export,
    /// Rows of files to a table.
    Import,
}

impl SqlCommand {
    /// Its name as the first argument of `grampus-sql`.
    fn name(self) -> Option<&'static str> {
        match self {
            SqlCommand::Sql => None,
            SqlCommand::Export => Some("export"),
            SqlCommand::Import => Some("import"),
        }
    }
}

/// Replaces this process with `grampus-sql`.
///
/// # Errors
/// A one-line message for the user: the binary is missing, or cannot be started.
pub fn sql(command: SqlCommand, arguments: &SqlArguments) -> Result<(), String> {
    let own = std::env::current_exe().unwrap_or_default();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let binary = find(own.parent(), &path).ok_or_else(|| {
        let own_dir = own.parent().unwrap_or(Path::new(".")).display().to_string();
        format!(
            "cannot find {BINARY} in {own_dir} or in PATH; build it with \"cd sql && cargo build --release\" in the \
             Grampus sources, and copy sql/target/release/{BINARY} to one of these directories"
        )
    })?;
    // `exec` returns only if it fails.
    let error = Command::new(&binary).args(command.name()).args(&arguments.arguments).exec();
    Err(format!("cannot start {}: {error}", binary.display()))
}

/// Finds the binary: next to this one, or else in `PATH`.
fn find(own_dir: Option<&Path>, path: &OsString) -> Option<PathBuf> {
    let own_dir = own_dir.map(Path::to_path_buf);
    own_dir
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
    fn the_binary_in_the_same_directory_comes_first() {
        let root = std::env::temp_dir().join(format!("grampus-sql-{}", std::process::id()));
        let (own_dir, other) = (root.join("bin"), root.join("other"));
        for folder in [&own_dir, &other] {
            std::fs::create_dir_all(folder).unwrap();
        }
        let path = std::env::join_paths([&own_dir, &other]).unwrap();
        assert_eq!(find(Some(&own_dir), &path), None);
        std::fs::write(other.join(BINARY), b"").unwrap();
        assert_eq!(find(Some(&own_dir), &path), Some(other.join(BINARY)));
        std::fs::write(own_dir.join(BINARY), b"").unwrap();
        assert_eq!(find(Some(&own_dir), &OsString::new()), Some(own_dir.join(BINARY)));
        std::fs::remove_dir_all(&root).unwrap();
    }
}
