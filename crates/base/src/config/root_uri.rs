//! The location of the root directory.

use std::fmt;
use std::path::PathBuf;

/// Where the root directory is (`hbase.rootdir`): a local directory, or a URI of another file
/// system.
///
/// The server resolves it to a file system, and rejects schemes that it does not support.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RootUri {
    /// A directory of this machine: a path, or a URI with the scheme `file`.
    Local(PathBuf),
    /// A directory of another file system.
    Other {
        /// The scheme, such as `hdfs`.
        scheme: String,
        /// Host and port, or the name of a service; empty for the scheme's default.
        authority: String,
        /// The absolute path.
        path: String,
    },
}

impl RootUri {
    /// Whether it is on another file system.
    pub fn is_remote(&self) -> bool {
        matches!(self, RootUri::Other { .. })
    }

    /// Parses a path or a URI. `None` if it is neither, or names a host for a local directory.
    pub fn parse(text: &str) -> Option<RootUri> {
        if text.is_empty() || text.contains('\0') {
            return None;
        }
        match text.split_once(':') {
            // The text before the colon is not a scheme, as in `./a:b`.
            Some((scheme, _)) if scheme.contains(['/', '.']) => Some(RootUri::Local(text.into())),
            Some((scheme, rest)) => {
                let (authority, path) = match rest.strip_prefix("//") {
                    Some(rest) => rest.split_at(rest.find('/')?),
                    None => ("", rest),
                };
                let is_absolute = path.starts_with('/');
                match scheme {
                    "file" => (is_absolute && matches!(authority, "" | "localhost"))
                        .then(|| RootUri::Local(path.into())),
                    _ => is_absolute.then(|| RootUri::Other {
                        scheme: scheme.to_owned(),
                        authority: authority.to_owned(),
                        path: path.to_owned(),
                    }),
                }
            }
            None => Some(RootUri::Local(text.into())),
        }
    }
}

impl fmt::Display for RootUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RootUri::Local(dir) => dir.display().fmt(f),
            RootUri::Other { scheme, authority, path } => write!(f, "{scheme}://{authority}{path}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_directory_is_a_path_or_a_file_uri() {
        let check = |text: &str, path: &str| {
            assert_eq!(RootUri::parse(text), Some(RootUri::Local(path.into())), "{text}");
        };
        check("./grampus-data", "./grampus-data");
        check("/var/lib/grampus", "/var/lib/grampus");
        check("file:///var/lib/grampus", "/var/lib/grampus");
        check("file:/var/lib/grampus", "/var/lib/grampus");
        check("file://localhost/var/lib", "/var/lib");
        check("./odd:name", "./odd:name");
        for text in ["", "file://host/x", "file:relative", "a\0b", "hdfs://nn", "hdfs:relative"] {
            assert_eq!(RootUri::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn another_file_system_is_named_by_its_scheme() {
        for (text, scheme, authority) in [
            ("hdfs://nn:8020/hbase", "hdfs", "nn:8020"),
            ("s3a://bucket/hbase", "s3a", "bucket"),
            ("viewfs:///hbase", "viewfs", ""),
        ] {
            let uri = RootUri::parse(text).unwrap();
            let expected =
                RootUri::Other { scheme: scheme.into(), authority: authority.into(), path: "/hbase".into() };
            assert_eq!(uri, expected);
            assert_eq!(uri.to_string(), text);
        }
    }
}
