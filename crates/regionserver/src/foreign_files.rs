//! The files that clients name by a URI, such as those of a bulk load.

use std::sync::Arc;

use base::BoxFuture;
use fs::{FilePath, FileSystem};

/// Where a file is that a client names.
pub enum FoundFile {
    /// In the root directory.
    Own(FilePath),
    /// Elsewhere.
    Foreign(ForeignFile),
}

/// A file outside of the root directory.
pub struct ForeignFile {
    /// The file system.
    pub fs: Arc<dyn FileSystem>,
    /// The path in it.
    pub path: FilePath,
    /// The path of the root directory in `fs`, if a rename can move files there. Then `fs` and the
    /// file system of the server are the same storage.
    pub root: Option<FilePath>,
}

/// Finds files by their URIs, in the form that Hadoop uses.
pub trait ForeignFiles: Send + Sync + 'static {
    /// The URI of a path in the root directory.
    fn uri_of(&self, path: &FilePath) -> String;

    /// Finds a file. Does not check whether it exists.
    ///
    /// # Errors
    /// One line: the URI is invalid, or its file system is not supported.
    fn find<'a>(&'a self, uri: &'a str) -> BoxFuture<'a, Result<FoundFile, String>>;
}

/// Only the files in the root directory, as URIs without a scheme.
pub struct NoForeignFiles;

impl ForeignFiles for NoForeignFiles {
    fn uri_of(&self, path: &FilePath) -> String {
        format!("/{}", path.as_str())
    }

    fn find<'a>(&'a self, uri: &'a str) -> BoxFuture<'a, Result<FoundFile, String>> {
        let path = checked_path(uri);
        Box::pin(std::future::ready(path.map(FoundFile::Own)))
    }
}

/// A path of a client.
///
/// # Errors
/// One line if the path has a part `.` or `..`.
pub fn checked_path(text: &str) -> Result<FilePath, String> {
    match text.split('/').any(|part| part == "." || part == "..") {
        true => Err(format!("path {text} has a part . or ..")),
        false => Ok(FilePath::new(text)),
    }
}
