//! Errors of a log, distinguished by what the caller can do about them.

use fs::FilePath;

/// The result of an operation on a log.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a log operation failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// Bytes that were durable fail their check. A replay must not treat them as the end of the
    /// log.
    #[error("log {file} is damaged at {offset}: {what}")]
    Damaged {
        /// The log.
        file: FilePath,
        /// Offset of the first entry that fails; 0 for the header.
        offset: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// The log appears intact but uses an unsupported feature (encryption, other codecs).
    #[error("log {file} is not supported: {what}")]
    Unsupported {
        /// The log.
        file: FilePath,
        /// What it uses.
        what: String,
    },
    /// The file system failed.
    #[error(transparent)]
    Fs(#[from] fs::Error),
    /// One edit exceeds the maximum size of an entry. Other edits are not affected.
    #[error("an edit of {bytes} bytes exceeds the maximum size of a log entry")]
    TooLarge {
        /// Bytes of its cells.
        bytes: u64,
    },
    /// The log was closed and takes no more edits.
    #[error("the log is closed")]
    Closed,
    /// A write failed, and so did the same write to a new file. The log takes no more edits.
    #[error("the write-ahead log stopped after a failed write: {cause}")]
    Stopped {
        /// The last error.
        cause: fs::Error,
    },
}
