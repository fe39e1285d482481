//! A path inside a [`FileSystem`](crate::FileSystem).

use std::fmt;
use std::sync::Arc;

/// A `/`-separated path relative to the root of its file system; the root itself is the empty path.
///
/// Cheap to clone. Parts are never empty, `.` or `..`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FilePath(Arc<str>);

impl FilePath {
    /// The root directory.
    pub fn root() -> FilePath {
        FilePath("".into())
    }

    /// Parses a path; leading, trailing and doubled slashes are dropped.
    ///
    /// # Panics
    /// If a part is `.` or `..`. Paths come from our own code; `layout` checks names from untrusted
    /// input.
    pub fn new(text: &str) -> FilePath {
        let parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty()).collect();
        assert!(parts.iter().all(|part| *part != "." && *part != ".."), "path {text} leaves its root");
        FilePath(parts.join("/").into())
    }

    /// The path of `name` (which may contain slashes) below this one.
    pub fn join(&self, name: &str) -> FilePath {
        FilePath::new(&format!("{}/{name}", self.0))
    }

    /// The parent directory; the root for a top-level name and for the root itself.
    pub fn parent(&self) -> FilePath {
        FilePath(self.0.rsplit_once('/').map_or("", |(dir, _)| dir).into())
    }

    /// The last part; empty for the root.
    pub fn name(&self) -> &str {
        self.0.rsplit_once('/').map_or(&*self.0, |(_, name)| name)
    }

    /// Whether this is `dir` itself or a path below it.
    pub fn is_at_or_below(&self, dir: &FilePath) -> bool {
        match self.0.strip_prefix(&*dir.0) {
            Some(rest) => rest.is_empty() || rest.starts_with('/') || dir.0.is_empty(),
            None => false,
        }
    }

    /// The path as text, without a leading slash.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "/" } else { &self.0 })
    }
}

impl fmt::Debug for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
