//! The purpose of a read or write, by which a scheduler orders the requests of a device.

use std::sync::Arc;

use base::BoxFuture;
use bytes::Bytes;

use crate::{FilePath, FileReader, Result};

/// The purpose of a read or write. Earlier classes are more urgent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IoClass {
    /// Appends to a log and their syncs: a client waits for each.
    Log,
    /// Reads for a call of a client. The class of reads that state none.
    Read,
    /// Writes of a flush, which frees memory. The class of data files that state none.
    Flush,
    /// Reads and writes of a compaction.
    Compaction,
    /// Reads and writes that move a file to another volume.
    Move,
    /// Reads that only verify checksums.
    Scrub,
}

impl IoClass {
    /// The classes, most urgent first.
    pub const ALL: [IoClass; 6] =
        [IoClass::Log, IoClass::Read, IoClass::Flush, IoClass::Compaction, IoClass::Move, IoClass::Scrub];

    /// Whether no call of a client and no memory waits for requests of this class.
    pub fn is_background(self) -> bool {
        self >= IoClass::Compaction
    }

    /// A view of an open file whose reads have this class.
    pub fn reader(self, file: Arc<dyn FileReader>) -> Arc<dyn FileReader> {
        Arc::new(ClassReader { inner: file, class: self })
    }

    /// Position in [`IoClass::ALL`].
    pub(crate) fn index(self) -> usize {
        self as usize
    }
}

/// See [`IoClass::reader`].
struct ClassReader {
    inner: Arc<dyn FileReader>,
    class: IoClass,
}

impl FileReader for ClassReader {
    fn path(&self) -> &FilePath {
        self.inner.path()
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn read_at(&self, offset: u64, len: usize) -> BoxFuture<'_, Result<Bytes>> {
        self.inner.read_for(self.class, offset, len)
    }

    fn read_for(&self, class: IoClass, offset: u64, len: usize) -> BoxFuture<'_, Result<Bytes>> {
        self.inner.read_for(class, offset, len)
    }

    fn read_overhead_bytes(&self) -> usize {
        self.inner.read_overhead_bytes()
    }

    fn sequential_read_bytes(&self) -> usize {
        self.inner.sequential_read_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_is_the_position_in_the_list() {
        for (position, class) in IoClass::ALL.into_iter().enumerate() {
            assert_eq!(class.index(), position);
        }
        assert!(IoClass::ALL.is_sorted());
    }
}
