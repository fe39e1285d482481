//! What can go wrong with a region, told apart by what the caller does about it.

use std::sync::Arc;

use bytes::Bytes;
use cell::cell::Malformed;
use fs::FilePath;

/// Why a region did not do what was asked.
///
/// Cheap to clone: one failure often answers many waiting calls.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The region is closing, closed or has failed: the client asks meta again.
    #[error("region {region} is not served here")]
    NotServing {
        /// The region's full name.
        region: Arc<str>,
    },
    /// The row lies in another region: the client asks meta again.
    #[error("row {} is not in region {region}", row.escape_ascii())]
    WrongRegion {
        /// The region's full name.
        region: Arc<str>,
        /// The row asked for.
        row: Bytes,
    },
    /// The table has no such family: asking again is useless.
    #[error("Column family {} does not exist in region {region}", family.escape_ascii())]
    NoSuchFamily {
        /// The region's full name.
        region: Arc<str>,
        /// The family asked for.
        family: Bytes,
    },
    /// Too much waits to be written out: try again a little later.
    #[error("region {region} is too busy: {what}")]
    TooBusy {
        /// The region's full name.
        region: Arc<str>,
        /// Which limit is reached.
        what: String,
    },
    /// The table is read only: asking again is useless.
    #[error("region {region} is read only")]
    ReadOnly {
        /// The region's full name.
        region: Arc<str>,
    },
    /// The request itself is wrong: asking again is useless.
    #[error("{what}")]
    BadRequest {
        /// What is wrong with it.
        what: String,
    },
    /// Parts of the request exclude each other, of which HBase says so in words that a client takes for a passing fault.
    #[error("{what}")]
    Incompatible {
        /// Which parts.
        what: &'static str,
    },
    /// A row is larger than a read of it may be: asking for it in one piece again is useless.
    #[error("{what}")]
    RowTooBig {
        /// Which row, and the limit.
        what: String,
    },
    /// There is no memory for the answer at this moment: try again later, or ask for less.
    #[error("no room for an answer of more than {bytes} bytes")]
    NoRoom {
        /// Bytes it had when the room was used up.
        bytes: usize,
    },
    /// The client has disconnected, so the rest of the answer is not needed.
    #[error("the client has disconnected")]
    Abandoned,
    /// Stored bytes fail their check: retrying this copy is useless, a person is wanted.
    #[error("corrupt {file} at {offset}: {what}")]
    Corrupt {
        /// The damaged file.
        file: FilePath,
        /// Where in it.
        offset: u64,
        /// What does not hold.
        what: String,
    },
    /// The data asks for something that is not implemented.
    #[error("{what} is not supported")]
    Unsupported {
        /// What it is.
        what: String,
    },
    /// The file system failed; the operation had no effect that is visible.
    #[error(transparent)]
    Fs(#[from] fs::Error),
    /// The log failed: whether the change is durable is not known, and the region serves no more.
    #[error("the log failed: {message}")]
    Log {
        /// The log's words.
        message: Arc<str>,
    },
}

/// The result of a region's operation.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// A request that cannot be answered, whoever asks.
    pub fn bad_request(what: impl Into<String>) -> Error {
        Error::BadRequest { what: what.into() }
    }

    /// Bytes of `file` that are not what they should be.
    pub fn corrupt(file: &FilePath, offset: u64, what: impl Into<String>) -> Error {
        Error::Corrupt { file: file.clone(), offset, what: what.into() }
    }

    /// Whether the disk is full, or the process has no descriptors left: nothing is broken, but only a change outside
    /// helps.
    pub fn is_exhaustion(&self) -> bool {
        matches!(self, Error::Fs(fs::Error::NoSpace { .. } | fs::Error::NoDescriptor { .. }))
    }

    /// A log that does not take or keep what it is given.
    pub fn log(message: impl std::fmt::Display) -> Error {
        Error::Log { message: message.to_string().into() }
    }
}

impl From<Malformed> for Error {
    fn from(malformed: Malformed) -> Error {
        Error::BadRequest { what: malformed.to_string() }
    }
}

impl From<hfile::Error> for Error {
    fn from(error: hfile::Error) -> Error {
        match error {
            hfile::Error::Corrupt { file, offset, what } => Error::corrupt(&file, offset, what),
            hfile::Error::Unsupported { file, what } => {
                Error::Unsupported { what: format!("{file}: {what}") }
            }
            hfile::Error::Fs(error) => Error::Fs(error),
        }
    }
}

impl From<layout::Error> for Error {
    fn from(error: layout::Error) -> Error {
        match error {
            layout::Error::Fs(error) => Error::Fs(error),
            layout::Error::Corrupt { file, what } => Error::corrupt(&file, 0, what),
            other => Error::Unsupported { what: other.to_string() },
        }
    }
}

impl From<wal::Error> for Error {
    /// For logs that are read. What happens to the log that is written goes through [`Error::log`].
    fn from(error: wal::Error) -> Error {
        match error {
            wal::Error::Damaged { file, offset, what } => Error::corrupt(&file, offset, what),
            wal::Error::Unsupported { file, what } => Error::Unsupported { what: format!("{file}: {what}") },
            wal::Error::Fs(error) => Error::Fs(error),
            other => Error::log(other),
        }
    }
}
