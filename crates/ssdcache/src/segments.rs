//! The segments: files that are written once, from start to end, and deleted as a whole, the oldest
//! first.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use fs::{FilePath, FileReader};

/// Prefix of the names of segments; the number follows as eight hexadecimal digits.
const PREFIX: &str = "grampus-blocks-";

/// The path of the segment with this number.
pub(crate) fn path_of(number: u32) -> FilePath {
    FilePath::new(&format!("{PREFIX}{number:08x}"))
}

/// The number of the segment with this name; `None` for any other file.
pub(crate) fn number_of(name: &str) -> Option<u32> {
    let digits = name.strip_prefix(PREFIX)?;
    let number = u32::from_str_radix(digits, 16).ok()?;
    (path_of(number).name() == name).then_some(number)
}

/// A segment that can be read.
pub(crate) struct Segment {
    pub(crate) reader: Arc<dyn FileReader>,
    /// Index of its directory.
    pub(crate) dir: usize,
    /// Bytes of the file.
    pub(crate) len: u64,
}

/// All segments that can be read, by number.
pub(crate) struct Segments {
    segments: RwLock<BTreeMap<u32, Segment>>,
}

impl Segments {
    pub(crate) fn new() -> Segments {
        Segments { segments: RwLock::default() }
    }

    /// Adds or replaces a segment.
    pub(crate) fn put(&self, number: u32, segment: Segment) {
        self.write().insert(number, segment);
    }

    pub(crate) fn reader(&self, number: u32) -> Option<Arc<dyn FileReader>> {
        self.read().get(&number).map(|segment| segment.reader.clone())
    }

    /// Memory in bytes that a read takes in addition to its bytes.
    pub(crate) fn read_overhead_bytes(&self, number: u32) -> usize {
        self.read().get(&number).map_or(0, |segment| segment.reader.read_overhead_bytes())
    }

    /// Removes a segment and returns it.
    pub(crate) fn remove(&self, number: u32) -> Option<Segment> {
        self.write().remove(&number)
    }

    /// The number of the oldest segment.
    pub(crate) fn oldest(&self) -> Option<u32> {
        self.read().first_key_value().map(|(number, _)| *number)
    }

    /// Bytes of all segments.
    pub(crate) fn bytes(&self) -> u64 {
        self.read().values().map(|segment| segment.len).sum()
    }

    /// Bytes of the segments in each of `dirs` directories.
    pub(crate) fn bytes_by_dir(&self, dirs: usize) -> Vec<u64> {
        let mut bytes = vec![0; dirs];
        self.read().values().for_each(|segment| bytes[segment.dir] += segment.len);
        bytes
    }

    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<u32, Segment>> {
        // Each change of the map is one step, so it is valid after any panic.
        self.segments.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<u32, Segment>> {
        self.segments.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_segments_have_numbers() {
        assert_eq!(number_of(path_of(0).name()), Some(0));
        assert_eq!(number_of(path_of(u32::MAX).name()), Some(u32::MAX));
        for name in
            ["grampus-blocks-", "grampus-blocks-1", "grampus-blocks-0000000A", "x", "bucketcache.data"]
        {
            assert_eq!(number_of(name), None, "{name}");
        }
    }
}
