//! Errors of a region, classified by what the caller does about them.

use std::sync::Arc;

use bytes::Bytes;
use cell::cell::Malformed;
use fs::FilePath;

/// Why a region did not perform a request.
///
/// Cheap to clone: one failure often ends many waiting calls.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The region is closing, closed, or has failed. The client looks it up in meta again.
    #[error("region {region} is not online on this server")]
    NotServing {
        /// The region's full name.
        region: Arc<str>,
    },
    /// The row belongs to another region. The client looks it up in meta again.
    #[error("row {} is not in region {region}", row.escape_ascii())]
    WrongRegion {
        /// The region's full name.
        region: Arc<str>,
        /// The requested row.
        row: Bytes,
    },
    /// The table has no such family. Retrying is useless.
    #[error("Column family {} does not exist in region {region}", family.escape_ascii())]
    NoSuchFamily {
        /// The region's full name.
        region: Arc<str>,
        /// The requested family.
        family: Bytes,
    },
    /// Too much data waits to be flushed. The client retries a little later.
    #[error("region {region} is too busy: {what}")]
    TooBusy {
        /// The region's full name.
        region: Arc<str>,
        /// Which limit is reached.
        what: String,
    },
    /// The table is read only. Retrying is useless.
    #[error("region {region} is read only")]
    ReadOnly {
        /// The region's full name.
        region: Arc<str>,
    },
    /// The request is invalid. Retrying is useless.
    #[error("{what}")]
    BadRequest {
        /// What is wrong with it.
        what: String,
    },
    /// Parts of the request exclude each other. HBase reports this with an exception that clients
    /// treat as transient.
    #[error("{what}")]
    Incompatible {
        /// Which parts.
        what: &'static str,
    },
    /// A row exceeds the size limit of a read. Retrying it in one piece is useless.
    #[error("{what}")]
    RowTooBig {
        /// Which row, and the limit.
        what: String,
    },
    /// There is not enough memory for the response now. The client retries later, or requests less.
    #[error("out of memory for a response of more than {bytes} bytes")]
    OutOfMemory {
        /// Bytes of the response when memory ran out.
        bytes: usize,
    },
    /// The client has disconnected, so the rest of the response is not needed.
    #[error("the client has disconnected")]
    Abandoned,
    /// Stored bytes fail their check. Retrying this copy is useless; an operator must intervene.
    #[error("corrupt {file} at {offset}: {what}")]
    Corrupt {
        /// The damaged file.
        file: FilePath,
        /// The offset in it, in bytes.
        offset: u64,
        /// Which check failed.
        what: String,
    },
    /// A reference to a MOB file cannot be resolved. Retrying is useless; an operator must
    /// intervene, or the client requests empty values instead.
    #[error("{what}")]
    MobMissing {
        /// Which value, and why.
        what: String,
    },
    /// The data requires something that is not implemented.
    #[error("{what} is not supported")]
    Unsupported {
        /// The unsupported feature.
        what: String,
    },
    /// The file system failed. The operation had no visible effect.
    #[error(transparent)]
    Fs(#[from] fs::Error),
    /// The log failed. It is unknown whether the change is durable, and the region stops serving.
    #[error("the log failed: {message}")]
    Log {
        /// The log's error message.
        message: Arc<str>,
    },
}

/// The result of a region operation.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// [`Error::BadRequest`]: the request is invalid.
    pub fn bad_request(what: impl Into<String>) -> Error {
        Error::BadRequest { what: what.into() }
    }

    /// [`Error::Corrupt`]: the bytes of `file` at `offset` are invalid.
    pub fn corrupt(file: &FilePath, offset: u64, what: impl Into<String>) -> Error {
        Error::Corrupt { file: file.clone(), offset, what: what.into() }
    }

    /// Whether the disk is full or the process is out of file descriptors. Nothing is damaged, but
    /// only an external change helps.
    pub fn is_exhaustion(&self) -> bool {
        matches!(self, Error::Fs(fs::Error::NoSpace { .. } | fs::Error::NoDescriptor { .. }))
    }

    /// [`Error::Log`]: the log failed to accept or store an edit.
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
    /// For logs that are read. Failures of the log that is written go through [`Error::log`].
    fn from(error: wal::Error) -> Error {
        match error {
            wal::Error::Damaged { file, offset, what } => Error::corrupt(&file, offset, what),
            wal::Error::Unsupported { file, what } => Error::Unsupported { what: format!("{file}: {what}") },
            wal::Error::Fs(error) => Error::Fs(error),
            other => Error::log(other),
        }
    }
}
