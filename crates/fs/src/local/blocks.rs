//! Writing past the page cache: what a log appends and syncs goes to the disk from here, in whole blocks, and never
//! through pages that the kernel has to find, fill, mark and write back first.
//!
//! Short ones go where the file has bytes already (zeros that were reserved), so that nothing about it changes but what is
//! in it. Long ones may also make it longer: what a sync then takes more is little of what they cost, and zeros before each
//! would be as much again to write. Blocks are written whole: the first one again with what it held, the last one with
//! zeros behind its end.

use std::io::IoSlice;
use std::os::fd::BorrowedFd;

use base::pages::{LARGE_PAGE_BYTES, PAGE_BYTES, Pages};
use rustix::io::{Errno, ReadWriteFlags, pwritev2};

use crate::LONG_APPEND_BYTES;

const BLOCK_BYTES: u64 = PAGE_BYTES as u64;

/// Longer appends go by way of the page cache: there is no memory at hand to copy them to.
const BYTES_MAX: usize = LARGE_PAGE_BYTES - 2 * PAGE_BYTES;

/// The blocks of a file from the last one that is not full.
#[derive(Default)]
pub(super) struct Blocks {
    /// The bytes of the last block, as far as they are appended.
    last: Vec<u8>,
}

/// What is to be written to a place in a file.
pub(super) struct Aligned {
    pages: Pages,
    offset: u64,
}

impl Blocks {
    /// The blocks that hold `bytes` at the end of the file, which is at `len` and has its bytes reserved up to
    /// `reserved`. `None` if they are better written the other way.
    pub(super) fn with(&self, bytes: &[u8], len: u64, reserved: u64) -> Option<Aligned> {
        let whole = self.last.len() + bytes.len();
        let offset = len - self.last.len() as u64;
        let end = offset + whole.next_multiple_of(PAGE_BYTES) as u64;
        let has_place = end <= reserved || bytes.len() >= LONG_APPEND_BYTES;
        if bytes.is_empty() || bytes.len() > BYTES_MAX || !has_place {
            return None;
        }
        let mut pages = Pages::new(whole);
        let zeros = pages.capacity() - whole;
        for part in [&self.last[..], bytes, &[0; PAGE_BYTES][..zeros]] {
            let filled = pages.fill(|spare| Ok::<_, Errno>(spare[..part.len()].write_copy_of_slice(part)));
            debug_assert_eq!(filled, Ok(part.len()));
        }
        Some(Aligned { pages, offset })
    }

    /// Takes note that `kept` were appended to a file that was `len` bytes long.
    pub(super) fn appended(&mut self, kept: &[u8], len: u64) {
        let end = len + kept.len() as u64;
        let in_last = (end % BLOCK_BYTES) as usize;
        if in_last <= kept.len() {
            self.last.clear();
            self.last.extend_from_slice(&kept[kept.len() - in_last..]);
        } else {
            self.last.extend_from_slice(kept);
        }
    }
}

impl Aligned {
    /// Where the file ends at least, once they are written.
    pub(super) fn end(&self) -> u64 {
        self.offset + self.pages.capacity() as u64
    }

    /// Writes the blocks to a file that is open without its pages, and syncs them, all in one call. `None` if that cannot be done to this
    /// file (a disk may want larger blocks): then nothing was.
    ///
    /// The kernel hands all of it to the disk before it lets the process end, so that one killed meanwhile leaves the old end or the
    /// new one. Of an error is not known whether it was the write's or the sync's: it counts as a sync's.
    pub(super) fn write_synced(&self, file: BorrowedFd<'_>) -> Option<rustix::io::Result<()>> {
        let blocks = self.pages.as_ref();
        let mut at = 0;
        loop {
            // Not repeated when interrupted: a sync has one answer. A short write is continued, for the next call
            // gives the reason: a full disk, or a fault.
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
    fn the_last_block_is_written_again_with_what_it_held() {
        let file = rustix::fs::memfd_create("f", MemfdFlags::empty()).unwrap();
        let mut expected = vec![1; LEN as usize];
        // An end mark, and zeros.
        expected.extend_from_slice(&[0xee; 8]);
        expected.resize(10 * PAGE_BYTES, 0);
        assert_eq!(rustix::io::pwrite(&file, &expected, 0), Ok(expected.len()));
        let bytes = [2; 2 * PAGE_BYTES];
        let aligned = blocks().with(&bytes, LEN, 10 * BLOCK_BYTES).unwrap();
        assert_eq!(aligned.write_synced(file.as_fd()), Some(Ok(())));
        expected[LEN as usize..][..bytes.len()].copy_from_slice(&bytes);
        let mut found = vec![0; 11 * PAGE_BYTES];
        let len = rustix::io::pread(&file, &mut found, 0).unwrap();
        assert!(found[..len] == expected);
    }

    #[test]
    fn an_error_is_told_and_what_cannot_be_done_is_not_one() {
        let aligned = blocks().with(&[2], LEN, 10 * BLOCK_BYTES).unwrap();
        let sealed = rustix::fs::memfd_create("f", MemfdFlags::ALLOW_SEALING).unwrap();
        rustix::fs::fcntl_add_seals(&sealed, SealFlags::WRITE).unwrap();
        assert_eq!(aligned.write_synced(sealed.as_fd()), Some(Err(Errno::PERM)));
        // A device that knows no such writes.
        let device = rustix::fs::open("/dev/full", OFlags::WRONLY, Mode::empty()).unwrap();
        assert_eq!(aligned.write_synced(device.as_fd()), None);
    }

    #[test]
    fn what_does_not_fit_goes_the_other_way() {
        let mut blocks = Blocks::default();
        blocks.appended(&[1; 4090], 0);
        assert!(blocks.with(&[2; 10], 4090, 2 * BLOCK_BYTES).is_some());
        assert!(blocks.with(&[2; 10], 4090, BLOCK_BYTES).is_none(), "nothing reserved");
        assert!(blocks.with(&[], 4090, 2 * BLOCK_BYTES).is_none());
        assert!(blocks.with(&[2; BYTES_MAX + 1], 4090, 1000 * BLOCK_BYTES).is_none());
    }

    #[test]
    fn what_is_long_may_make_the_file_longer() {
        let mut blocks = Blocks::default();
        blocks.appended(&[1; 10], 0);
        assert!(blocks.with(&[2; LONG_APPEND_BYTES - 1], 10, 0).is_none());
        let aligned = blocks.with(&[2; LONG_APPEND_BYTES], 10, 0).unwrap();
        assert_eq!(aligned.end(), LONG_APPEND_BYTES as u64 + BLOCK_BYTES);
    }
}
