//! Errors of files, distinguished by what the caller can do.

use fs::FilePath;

/// The reason why a file cannot be read or written.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// Stored bytes failed their check twice. This copy of the file is unusable.
    #[error("corrupt {file} at {offset}: {what}")]
    Corrupt {
        /// The file.
        file: FilePath,
        /// Offset of the damaged part (a block, the trailer).
        offset: u64,
        /// The first defect found.
        what: &'static str,
    },
    /// The file appears valid, but uses a feature that is not supported.
    #[error("{file}: {what} is not supported")]
    Unsupported {
        /// The file.
        file: FilePath,
        /// HBase's name of the feature.
        what: String,
    },
    /// A file system error.
    #[error(transparent)]
    Fs(#[from] fs::Error),
}

/// The result of an operation on a file.
pub type Result<T> = std::result::Result<T, Error>;

/// A defect of some bytes, before their file is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The bytes are inconsistent or fail their checksum.
    Damaged(&'static str),
    /// The bytes use an unsupported feature.
    Unsupported(String),
}

impl Fault {
    /// Adds the file and offset of the bytes.
    pub(crate) fn at(self, file: &FilePath, offset: u64) -> Error {
        match self {
            Fault::Damaged(what) => Error::Corrupt { file: file.clone(), offset, what },
            Fault::Unsupported(what) => Error::Unsupported { file: file.clone(), what },
        }
    }
}

impl From<cell::cell::Malformed> for Fault {
    fn from(malformed: cell::cell::Malformed) -> Fault {
        Fault::Damaged(malformed.0)
    }
}

/// The result of parsing bytes.
pub(crate) type Parsed<T> = std::result::Result<T, Fault>;
