//! What goes wrong with a file, told apart by what the caller can do.

use fs::FilePath;

/// Why a file cannot be read or written.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// Stored bytes fail their check, also when read a second time: this copy of the file is useless.
    #[error("corrupt {file} at {offset}: {what}")]
    Corrupt {
        /// The file.
        file: FilePath,
        /// Where in the file the damaged part starts (a block, the trailer).
        offset: u64,
        /// The first thing found wrong.
        what: &'static str,
    },
    /// The file is sound as far as can be seen, but uses something that is not built in.
    #[error("{file}: {what} is not supported")]
    Unsupported {
        /// The file.
        file: FilePath,
        /// The feature, by HBase's name for it.
        what: String,
    },
    /// The file system failed.
    #[error(transparent)]
    Fs(#[from] fs::Error),
}

/// The result of an operation on a file.
pub type Result<T> = std::result::Result<T, Error>;

/// What is wrong with some bytes, before it is known which file they are of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// They contradict themselves or their checksum.
    Damaged(&'static str),
    /// They ask for a feature that is not built in.
    Unsupported(String),
}

impl Fault {
    /// Says where the bytes were.
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

/// The result of taking bytes apart.
pub(crate) type Parsed<T> = std::result::Result<T, Fault>;
