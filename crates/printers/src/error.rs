//! Why a file cannot be printed.

/// Why a file cannot be printed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store file cannot be read.
    #[error(transparent)]
    HFile(#[from] hfile::Error),
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] wal::Error),
    /// The snapshot cannot be read.
    #[error(transparent)]
    Layout(#[from] layout::Error),
    /// The file system.
    #[error(transparent)]
    FileSystem(#[from] fs::Error),
    /// The output cannot be written.
    #[error("cannot write the output: {0}")]
    Output(#[from] std::io::Error),
}
