//! Where the second level of the block cache stores blocks: HBase's `hbase.bucketcache.ioengine`.

use std::path::PathBuf;

/// Engines that store blocks in memory. Source: HBase `BucketCache`.
const IN_MEMORY: [&str; 2] = ["offheap", "pmem:"];

/// The engine of the second level of the block cache.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CacheFiles {
    /// There is no second level.
    #[default]
    None,
    /// Blocks in memory outside of Java's heap. Grampus has one block cache in memory, so there is
    /// no second level either.
    InMemory,
    /// Blocks in files below these directories.
    Paths(Vec<PathBuf>),
}

impl CacheFiles {
    /// The engine with this name, as in HBase.
    pub(super) fn parse(text: &str) -> Option<CacheFiles> {
        if text.is_empty() {
            return Some(CacheFiles::None);
        }
        if IN_MEMORY.iter().any(|engine| text.starts_with(engine)) {
            return Some(CacheFiles::InMemory);
        }
        let (engine, paths) = text.split_once(':')?;
        let paths: Vec<PathBuf> = match engine {
            "file" | "mmap" => vec![path(paths)?],
            "files" => paths.split(',').map(path).collect::<Option<_>>()?,
            _ => return None,
        };
        Some(CacheFiles::Paths(paths))
    }

    /// The directories; none if there is no second level.
    pub fn paths(&self) -> &[PathBuf] {
        match self {
            CacheFiles::Paths(paths) => paths,
            CacheFiles::None | CacheFiles::InMemory => &[],
        }
    }
}

fn path(text: &str) -> Option<PathBuf> {
    let text = text.trim();
    (!text.is_empty() && !text.contains('\0')).then(|| PathBuf::from(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_are_those_of_hbase() {
        let paths = |paths: &[&str]| Some(CacheFiles::Paths(paths.iter().map(PathBuf::from).collect()));
        for (text, expected) in [
            ("", Some(CacheFiles::None)),
            ("offheap", Some(CacheFiles::InMemory)),
            ("pmem:/mnt/pmem", Some(CacheFiles::InMemory)),
            ("file:/mnt/ssd/cache", paths(&["/mnt/ssd/cache"])),
            ("mmap:/mnt/ssd/cache", paths(&["/mnt/ssd/cache"])),
            ("files:/mnt/a, /mnt/b", paths(&["/mnt/a", "/mnt/b"])),
            ("file:", None),
            ("files:/a,,/b", None),
            ("heap", None),
            ("disk:/a", None),
        ] {
            assert_eq!(CacheFiles::parse(text), expected, "{text}");
        }
    }
}
