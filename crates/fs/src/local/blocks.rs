//! Writing past the page cache: what a log appends and syncs goes to the disk from here, in whole blocks, and never through
//! pages that the kernel has to find, fill, mark and write back first.
//!
//! The file must have bytes there already (zeros that were reserved), so that nothing about it changes but what is in it.
//! Blocks are written whole: the first one again with what it held, the last one with zeros behind its end.

use std::os::fd::BorrowedFd;

use base::pages::{PAGE_BYTES, Pages};
use rustix::io::{Errno, pwrite, retry_on_intr};

const BLOCK_BYTES: u64 = PAGE_BYTES as u64;

/// Appends of more bytes cost little more by way of the page cache, from where they are quickly read after a crash.
const BYTES_MAX: usize = 64 << 10;

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
    /// The blocks that hold `bytes` at the end of the file, which is at `len` and has its bytes reserved up to `reserved`.
    /// `None` if they are better written the other way.
    ///
    /// The first `mark_len` bytes overwrite an end mark. It must lie in one block, which is written last.
    pub(super) fn with(&self, bytes: &[u8], len: u64, mark_len: usize, reserved: u64) -> Option<Aligned> {
        let whole = self.last.len() + bytes.len();
        let offset = len - self.last.len() as u64;
        let end = offset + whole.next_multiple_of(PAGE_BYTES) as u64;
        let is_split = self.last.len() + mark_len > PAGE_BYTES;
        if bytes.is_empty() || bytes.len() > BYTES_MAX || end > reserved || is_split {
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
    /// Writes the blocks to a file that is open without its pages, the first one last: a process killed in between leaves it as it was.
    pub(super) fn write(&self, file: BorrowedFd<'_>) -> rustix::io::Result<()> {
        let (first, rest) = self.pages.as_ref().split_at(PAGE_BYTES);
        write_blocks(file, rest, self.offset + BLOCK_BYTES)?;
        write_blocks(file, first, self.offset)
    }
}

fn write_blocks(file: BorrowedFd<'_>, mut blocks: &[u8], mut offset: u64) -> rustix::io::Result<()> {
    while !blocks.is_empty() {
        let len = retry_on_intr(|| pwrite(file, blocks, offset))?;
        // Less than a block cannot be gone on from.
        let whole = len - len % PAGE_BYTES;
        if whole == 0 {
            return Err(Errno::IO);
        }
        blocks = &blocks[whole..];
        offset += whole as u64;
    }
    Ok(())
}
