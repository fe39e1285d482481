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
        joined("", text)
    }

    /// The path of `name` (which may contain slashes) below this one.
    ///
    /// # Panics
    /// As [`FilePath::new`].
    pub fn join(&self, name: &str) -> FilePath {
        joined(&self.0, name)
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

/// The path of the parts of `text` below the path `base`.
fn joined(base: &str, text: &str) -> FilePath {
    let mut path = String::with_capacity(base.len() + 1 + text.len());
    path.push_str(base);
    for part in text.split('/').filter(|part| !part.is_empty()) {
        assert!(part != "." && part != "..", "path {text} leaves its root");
        if !path.is_empty() {
            path.push('/');
        }
        path.push_str(part);
    }
    FilePath(path.into())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_parts_are_dropped() {
        for (text, expected) in [("", ""), ("/", ""), ("a", "a"), ("/a//b/", "a/b")] {
            assert_eq!(FilePath::new(text).as_str(), expected, "{text}");
            let below = if expected.is_empty() { "dir".to_owned() } else { format!("dir/{expected}") };
            assert_eq!(FilePath::new("dir").join(text).as_str(), below, "{text}");
        }
        assert_eq!(FilePath::root().join("a/b"), FilePath::new("a/b"));
    }

    #[test]
    #[should_panic(expected = "leaves its root")]
    fn no_path_leaves_its_root() {
        FilePath::new("a").join("b/../../c");
    }
}
