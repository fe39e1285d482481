//! What goes wrong with a log, told apart by what the caller can do about it.

use fs::FilePath;

/// The result of an operation on a log.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong with a log.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// Bytes that were durable once fail their check: the log must not be replayed as if it ended here.
    #[error("log {file} is damaged at {offset}: {what}")]
    Damaged {
        /// The log.
        file: FilePath,
        /// Where the first entry (or the header) that fails begins.
        offset: u64,
        /// What was found.
        what: &'static str,
    },
    /// The log is sound as far as can be told, but uses what is not supported here (encryption, other codecs).
    #[error("log {file} cannot be read here: {what}")]
    Unsupported {
        /// The log.
        file: FilePath,
        /// What it uses.
        what: String,
    },
    /// The file system failed.
    #[error(transparent)]
    Fs(#[from] fs::Error),
    /// One edit is larger than an entry can be; others go on.
    #[error("an edit of {bytes} bytes is larger than a log entry can be")]
    TooLarge {
        /// Bytes of its cells.
        bytes: u64,
    },
    /// The log was closed: nothing is appended any more.
    #[error("the log is closed")]
    Closed,
    /// A write failed, and so did the same write to a new file: the log takes nothing more.
    #[error("the log stopped: {cause}")]
    Stopped {
        /// The error of the second try.
        cause: fs::Error,
    },
}
