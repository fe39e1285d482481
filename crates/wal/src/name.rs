//! Names of log files: `<prefix>.<file number>[<suffix>]`, such as
//! `host%2C16020%2C1700000000000.1700000000123.meta`.

use fs::FilePath;

/// The parts of a log's name. Logs with the same prefix and suffix are ordered by number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogName {
    /// The server's name, URL-encoded (and HBase's group, if it has several).
    pub prefix: String,
    /// Empty, or `.meta` for the log of `hbase:meta`.
    pub suffix: String,
    /// About the time of creation, in milliseconds since the epoch. Always greater than the number
    /// of the previous log.
    pub number: u64,
}

/// Suffix of the logs of `hbase:meta`.
pub const META_SUFFIX: &str = ".meta";

impl LogName {
    /// Parses a file name; `None` if it is not the name of a log.
    pub fn parse(name: &str) -> Option<LogName> {
        let (stem, suffix) = match name.strip_suffix(META_SUFFIX) {
            Some(stem) => (stem, META_SUFFIX),
            None => (name, ""),
        };
        let (prefix, number) = stem.rsplit_once('.')?;
        if prefix.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        Some(LogName { prefix: prefix.into(), suffix: suffix.into(), number: number.parse().ok()? })
    }

    /// Parses the last part of a path.
    pub fn of(path: &FilePath) -> Option<LogName> {
        LogName::parse(path.name())
    }
}

/// The kinds of logs. A server writes the edits of `hbase:meta` to logs of their own, so that they
/// can be fenced and read before the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LogKind {
    /// The logs of `hbase:meta`.
    Meta,
    /// The logs of all other tables.
    User,
}

impl LogKind {
    /// The kind of the log of this name.
    pub fn of(name: &str) -> LogKind {
        if name.ends_with(META_SUFFIX) { LogKind::Meta } else { LogKind::User }
    }
}

impl std::fmt::Display for LogName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}{}", self.prefix, self.number, self.suffix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_and_formatted() {
        for (text, prefix, number, suffix) in [
            ("h%2C16020%2C17.1700000000123", "h%2C16020%2C17", 1_700_000_000_123, ""),
            ("h%2C16020%2C17.5.meta", "h%2C16020%2C17", 5, ".meta"),
            ("h%2C1%2C2.h%2C1%2C2.regiongroup-0.9", "h%2C1%2C2.h%2C1%2C2.regiongroup-0", 9, ""),
        ] {
            let name = LogName::parse(text).unwrap();
            assert_eq!((name.prefix.as_str(), name.number, name.suffix.as_str()), (prefix, number, suffix));
            assert_eq!(name.to_string(), text);
        }
        for text in ["", "x", "x.", ".5", "x.y", "x.+5", "x.99999999999999999999999", "x.5.old"] {
            assert_eq!(LogName::parse(text), None, "{text}");
        }
    }
}
