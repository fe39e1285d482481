//! The paths in a root directory, and the small files in it.
//!
//! The layout is HBase's own: HBase can open what this crate writes, and this crate reads what
//! HBase wrote. Changes are atomic: a file or a table is created elsewhere, synced, and renamed
//! into place.
//!
//! * [`RootDir`]: the paths;
//! * [`identity`]: the owner of the directory: `hbase.version`, `hbase.id`, and the marker of this
//!   project;
//! * [`ownership`]: whether HBase or this project may open the directory;
//! * [`descriptor`]: table descriptors; [`region`]: `.regioninfo` and sequence id files;
//! * [`table`]: creating, listing and removing tables; [`store`]: names and lists of store files;
//! * [`tracker`]: which files belong to a store, and how that changes;
//! * [`link`]: files shared by tables; [`mod@reference`]: files of which regions share parts;
//! * [`mob`]: files of large values;
//! * [`inventory`]: the store files that a region must have; [`bulk_load`]: a bulk load that may be
//!   incomplete; [`staging`]: directories of files to load;
//! * [`daughter`]: regions built from files of other regions; [`snapshot`]: the files of a table at
//!   one point in time;
//! * [`archive`]: obsolete files are moved there, never deleted in place; [`cleaning`]: the
//!   archived files that may be removed.
//!
//! Does not depend on the contents of HFiles and logs, Java class names, or sockets.

pub mod archive;
pub mod bulk_load;
pub mod cleaning;
pub mod daughter;
pub mod descriptor;
mod file;
pub mod identity;
pub mod inventory;
pub mod link;
pub mod mob;
pub mod ownership;
pub mod reference;
pub mod region;
mod root;
pub mod snapshot;
pub mod staging;
pub mod store;
pub mod table;
pub mod tracker;

pub use bulk_load::{BulkLoadRecord, LoadedFile};
pub use identity::Identity;
pub use inventory::Inventory;
pub use link::FileLink;
pub use reference::Reference;
pub use root::RootDir;
pub use tracker::{FileListTracker, RenameTracker, StoreDir, StoreFileTracker};

use fs::FilePath;

/// Why a part of the root directory cannot be used. The variants differ in the remedy.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The file system failed.
    #[error(transparent)]
    Fs(#[from] fs::Error),
    /// Stored bytes are invalid.
    #[error("corrupt {file}: {what}")]
    Corrupt {
        /// The file or directory.
        file: FilePath,
        /// What is wrong with it.
        what: String,
    },
    /// A feature that HBase has and this project lacks.
    #[error("{file}: {what} is not supported yet")]
    Unsupported {
        /// The file or directory.
        file: FilePath,
        /// The unsupported feature.
        what: String,
    },
    /// A directory with content that this project did not create. It may belong to a running
    /// cluster.
    #[error(
        "{dir} contains {found:?} but not {marker:?}: refusing to use a directory that Grampus did not create"
    )]
    NotOurs {
        /// The root directory.
        dir: FilePath,
        /// An entry in it.
        found: String,
        /// The name of the missing marker file.
        marker: &'static str,
    },
    /// The directory is on its way from HBase to this project or back.
    #[error("{dir}: {what}")]
    Unfinished {
        /// The root directory.
        dir: FilePath,
        /// What was interrupted, and what completes it.
        what: &'static str,
    },
    /// Created by a newer version of this project.
    #[error("{file} has format {format}; this version supports formats up to {known}")]
    TooNew {
        /// The file that states the format.
        file: FilePath,
        /// Its format.
        format: u32,
        /// The newest supported format.
        known: u32,
    },
}

/// The result of an operation on the root directory.
pub type Result<T> = std::result::Result<T, Error>;

fn corrupt(file: &FilePath, what: impl ToString) -> Error {
    Error::Corrupt { file: file.clone(), what: what.to_string() }
}
