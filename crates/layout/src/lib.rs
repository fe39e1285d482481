//! Layer 2: what lies where in a root directory, and the small files in it.
//!
//! The directory is HBase's own: HBase opens what is written here, and what HBase wrote is read. Changes appear at once
//! or not at all: a file or a table is made elsewhere, synced, and renamed to its place.
//!
//! * [`RootDir`]: the paths;
//! * [`identity`]: whose directory it is: `hbase.version`, `hbase.id`, and the mark that this project made it;
//! * [`descriptor`]: table descriptors; [`region`]: `.regioninfo` and sequence id files;
//! * [`table`]: making, listing and removing tables; [`store`]: names and lists of store files;
//! * [`link`]: files that two tables have; [`mod@reference`]: files that two regions have a part of each;
//! * [`inventory`]: which store files a region must have;
//! * [`daughter`]: regions made of the files of others; [`snapshot`]: which files a table had at a moment;
//! * [`archive`]: files that nobody needs go there, none is deleted in place; [`cleaning`]: which of them may be removed.
//!
//! Knows nothing about: the insides of HFiles and logs, Java class names, sockets.

pub mod archive;
pub mod cleaning;
pub mod daughter;
pub mod descriptor;
mod file;
pub mod identity;
pub mod inventory;
pub mod link;
pub mod reference;
pub mod region;
mod root;
pub mod snapshot;
pub mod store;
pub mod table;

pub use identity::Identity;
pub use inventory::Inventory;
pub use link::FileLink;
pub use reference::Reference;
pub use root::RootDir;

use fs::FilePath;

/// Why a part of the root directory cannot be used, told apart by what can be done about it.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The file system failed.
    #[error(transparent)]
    Fs(#[from] fs::Error),
    /// Stored bytes are not what they should be.
    #[error("corrupt {file}: {what}")]
    Corrupt {
        /// The file or directory.
        file: FilePath,
        /// What is wrong with it.
        what: String,
    },
    /// HBase has this and this project has not.
    #[error("{file}: {what} is not supported yet")]
    Unsupported {
        /// The file or directory.
        file: FilePath,
        /// What it is.
        what: String,
    },
    /// A directory with content that this project did not make. It may belong to a running cluster.
    #[error("{dir} holds {found:?} but not {marker:?}: Grampus did not make it and does not touch it")]
    NotOurs {
        /// The root directory.
        dir: FilePath,
        /// Something that is in it.
        found: String,
        /// What is missing.
        marker: &'static str,
    },
    /// Made by a newer version of this project.
    #[error("{file} has format {format}; this version knows formats up to {known}")]
    TooNew {
        /// The file that says so.
        file: FilePath,
        /// Its format.
        format: u32,
        /// The newest one known here.
        known: u32,
    },
}

/// The result of an operation on the root directory.
pub type Result<T> = std::result::Result<T, Error>;

fn corrupt(file: &FilePath, what: impl ToString) -> Error {
    Error::Corrupt { file: file.clone(), what: what.to_string() }
}
