//! Direct writes: synced appends of a log go to the disk in whole blocks, and not through the page
//! cache, whose pages the kernel has to find, fill, mark and write back.
//!
//! A short append is written directly only where the file already has bytes (reserved zeros), so
//! that only its contents change. A long append may also extend the file: that adds little to the
//! cost of its sync, and zeros in advance would double the bytes written. Blocks are written whole:
//! the first one is rewritten with its earlier contents, and the last one is padded with zeros.

use std::io::IoSlice;
use std::os::fd::BorrowedFd;

use base::pages::{LARGE_PAGE_BYTES, PAGE_BYTES, Pages};
use rustix::io::{Errno, ReadWriteFlags, pwritev2};

use crate::LONG_APPEND_BYTES;

const BLOCK_BYTES: u64 = PAGE_BYTES as u64;

/// Longer appends go through the page cache: there is no pooled memory of that size to copy them
/// to.
const BYTES_MAX: usize = LARGE_PAGE_BYTES - 2 * PAGE_BYTES;

/// The end of a file, from its last block that is not full.
#[derive(Default)]
pub(super) struct Blocks {
    /// The appended bytes of the last block.
    last: Vec<u8>,
}

/// Blocks to be written at an offset of a file.
pub(super) struct DirectWrite {
    pages: Pages,
    offset: u64,
}

impl Blocks {
    /// The blocks that contain `bytes` at the end of the file, whose length is `len` and whose
    /// bytes are reserved up to `reserved`. `None` if the append should go through the page cache.
    pub(super) fn with(&self, bytes: &[u8], len: u64, reserved: u64) -> Option<DirectWrite> {
        let whole = self.last.len() + bytes.len();
        let offset = len - self.last.len() as u64;
        debug_assert!(offset.is_multiple_of(BLOCK_BYTES), "direct writes begin with a block");
        let end = offset + whole.next_multiple_of(PAGE_BYTES) as u64;
        let is_allowed = end <= reserved || bytes.len() >= LONG_APPEND_BYTES;
        if bytes.is_empty() || bytes.len() > BYTES_MAX || !is_allowed {
            return None;
        }
        let mut pages = Pages::new(whole);
        let zeros = pages.capacity() - whole;
        for part in [&self.last[..], bytes, &[0; PAGE_BYTES][..zeros]] {
            let filled = pages.fill(|spare| Ok::<_, Errno>(spare[..part.len()].write_copy_of_slice(part)));
            debug_assert_eq!(filled, Ok(part.len()));
        }
        Some(DirectWrite { pages, offset })
    }

    /// Records that `content` was appended to a file of `len` bytes.
    pub(super) fn appended(&mut self, content: &[u8], len: u64) {
        let end = len + content.len() as u64;
        let in_last = (end % BLOCK_BYTES) as usize;
        if in_last <= content.len() {
            self.last.clear();
            self.last.extend_from_slice(&content[content.len() - in_last..]);
        } else {
            self.last.extend_from_slice(content);
        }
        debug_assert_eq!(self.last.len(), in_last, "all bytes of the last block are known");
    }
}

impl DirectWrite {
    /// Minimum length of the file after the write.
    pub(super) fn end(&self) -> u64 {
        self.offset + self.pages.capacity() as u64
    }

    /// Writes the blocks to a file that is open for direct I/O, and syncs them in the same call.
    /// `None` if the file does not support this (a disk may require larger blocks); then nothing
    /// was written.
    ///
    /// The kernel passes all blocks to the disk before the process can end. So a process killed
    /// meanwhile leaves either the old end or the new one. It is unknown whether an error is the
    /// write's or the sync's, so it counts as the sync's.
    pub(super) fn write_synced(&self, file: BorrowedFd<'_>) -> Option<rustix::io::Result<()>> {
        let blocks = self.pages.as_ref();
        let mut at = 0;
        loop {
            // Not retried when interrupted: a sync has a single result. A short write is continued,
            // because the next call returns the reason: a full disk, or a fault.
            let rest = IoSlice::new(&blocks[at..]);
            match pwritev2(file, &[rest], self.offset + at as u64, ReadWriteFlags::DSYNC) {
                Ok(len) if at + len == blocks.len() => return Some(Ok(())),
                Ok(len) if len > 0 && len.is_multiple_of(PAGE_BYTES) => at += len,
                Ok(_) => return Some(Err(Errno::IO)),
                Err(Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS) if at == 0 => return None,
                Err(errno) => return Some(Err(errno)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags};

    use super::*;

    const LEN: u64 = 3 * BLOCK_BYTES + 1000;

    /// Blocks of a file of `LEN` bytes.
    fn blocks() -> Blocks {
        let mut blocks = Blocks::default();
        blocks.appended(&[1; 1000], LEN - 1000);
        blocks
    }

    #[test]
    fn the_last_block_is_rewritten_with_its_contents() {
        let file = rustix::fs::memfd_create("f", MemfdFlags::empty()).unwrap();
        let mut expected = vec![1; LEN as usize];
        // An end mark, and zeros.
        expected.extend_from_slice(&[0xee; 8]);
        expected.resize(10 * PAGE_BYTES, 0);
        assert_eq!(rustix::io::pwrite(&file, &expected, 0), Ok(expected.len()));
        let bytes = [2; 2 * PAGE_BYTES];
        let direct_write = blocks().with(&bytes, LEN, 10 * BLOCK_BYTES).unwrap();
        assert_eq!(direct_write.write_synced(file.as_fd()), Some(Ok(())));
        expected[LEN as usize..][..bytes.len()].copy_from_slice(&bytes);
        let mut found = vec![0; 11 * PAGE_BYTES];
        let len = rustix::io::pread(&file, &mut found, 0).unwrap();
        assert!(found[..len] == expected);
    }

    #[test]
    fn an_error_is_reported_and_an_unsupported_write_is_not_one() {
        let direct_write = blocks().with(&[2], LEN, 10 * BLOCK_BYTES).unwrap();
        let sealed = rustix::fs::memfd_create("f", MemfdFlags::ALLOW_SEALING).unwrap();
        rustix::fs::fcntl_add_seals(&sealed, SealFlags::WRITE).unwrap();
        assert_eq!(direct_write.write_synced(sealed.as_fd()), Some(Err(Errno::PERM)));
        // A device without support for such writes.
        let device = rustix::fs::open("/dev/full", OFlags::WRONLY, Mode::empty()).unwrap();
        assert_eq!(direct_write.write_synced(device.as_fd()), None);
    }

    #[test]
    fn unreserved_short_appends_are_not_direct() {
        let mut blocks = Blocks::default();
        blocks.appended(&[1; 4090], 0);
        assert!(blocks.with(&[2; 10], 4090, 2 * BLOCK_BYTES).is_some());
        assert!(blocks.with(&[2; 10], 4090, BLOCK_BYTES).is_none(), "no space is reserved");
        assert!(blocks.with(&[], 4090, 2 * BLOCK_BYTES).is_none());
        assert!(blocks.with(&[2; BYTES_MAX + 1], 4090, 1000 * BLOCK_BYTES).is_none());
    }

    #[test]
    fn a_long_append_may_extend_the_file() {
        let mut blocks = Blocks::default();
        blocks.appended(&[1; 10], 0);
        assert!(blocks.with(&[2; LONG_APPEND_BYTES - 1], 10, 0).is_none());
        let direct_write = blocks.with(&[2; LONG_APPEND_BYTES], 10, 0).unwrap();
        assert_eq!(direct_write.end(), LONG_APPEND_BYTES as u64 + BLOCK_BYTES);
    }
}
