//! Reads a file forward in large pieces, and returns a few bytes at a time from memory.

use std::sync::Arc;

use bytes::Bytes;
use fs::{FilePath, FileReader};

/// The part of a file that is in memory. It moves forward as the file is read.
///
/// A slice keeps the whole buffer in memory: copy bytes that are retained for long. The buffer is
/// replaced, never changed.
pub(crate) struct Window {
    file: Arc<dyn FileReader>,
    // No byte from this offset on is read.
    len: u64,
    // Offset of the first byte in memory.
    at: u64,
    loaded: Bytes,
    piece_bytes: usize,
}

impl Window {
    /// A window that reads `piece_bytes` at a time.
    pub(crate) fn new(file: Arc<dyn FileReader>, piece_bytes: usize) -> Window {
        Window { len: file.len(), file, at: 0, loaded: Bytes::new(), piece_bytes }
    }

    pub(crate) fn path(&self) -> &FilePath {
        self.file.path()
    }

    /// The length of the file, or less after [`cut`](Self::cut).
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Reads the file as if it ended at `end`. The bytes after it may be unreadable.
    pub(crate) fn cut(&mut self, end: u64) {
        self.len = self.len.min(end);
    }

    /// Bytes read at a time.
    pub(crate) fn piece_bytes(&self) -> usize {
        self.piece_bytes
    }

    /// The bytes in memory from `offset` on; empty if there are none.
    #[inline]
    pub(crate) fn loaded(&self, offset: u64) -> &[u8] {
        match offset.checked_sub(self.at) {
            Some(skip) if skip <= self.loaded.len() as u64 => &self.loaded[skip as usize..],
            _ => &[],
        }
    }

    /// The `len` bytes at `offset`, which the file must have.
    #[inline]
    pub(crate) async fn fill(&mut self, offset: u64, len: usize) -> fs::Result<&[u8]> {
        if self.loaded(offset).len() < len {
            let want = self.piece_bytes;
            self.load(offset, len, want).await?;
        }
        Ok(&self.loaded(offset)[..len])
    }

    /// As `fill`, but if the file must be read, reads `want` bytes (fewer at its end).
    pub(crate) async fn fill_ahead(&mut self, offset: u64, len: usize, want: usize) -> fs::Result<()> {
        if self.loaded(offset).len() < len {
            self.load(offset, len, want).await?;
        }
        Ok(())
    }

    async fn load(&mut self, offset: u64, len: usize, want: usize) -> fs::Result<()> {
        let left = usize::try_from(self.len().saturating_sub(offset)).unwrap_or(usize::MAX);
        let want = want.min(left).max(len);
        // Free the old piece before the next one is read, so that only one is in memory.
        self.loaded = Bytes::new();
        self.loaded = self.file.read_at(offset, want).await?;
        self.at = offset;
        Ok(())
    }

    /// The `len` bytes at `offset`, which an earlier `fill` loaded, without copying them.
    pub(crate) fn slice(&self, offset: u64, len: usize) -> Bytes {
        let skip = (offset - self.at) as usize;
        self.loaded.slice(skip..skip + len)
    }
}

#[cfg(test)]
mod tests {
    use fs::FileSystem;
    use fs::memory::MemoryFs;

    use super::*;

    #[tokio::test]
    async fn no_byte_after_the_cut_is_read() {
        let (memory, path) = (MemoryFs::new(), FilePath::new("log"));
        memory.put(&path, "readable, unreadable");
        let mut window = Window::new(memory.open(&path).await.unwrap(), 100);
        window.cut(8);
        window.fill_ahead(2, 1, 100).await.unwrap();
        assert_eq!((window.len(), window.loaded(2)), (8, &b"adable"[..]));
    }
}
