//! Writing past the page cache: what a log appends and syncs goes to the disk from here, in whole blocks, and never
//! through pages that the kernel has to find, fill, mark and write back first.
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
    /// The blocks that hold `bytes` at the end of the file, which is at `len` and has its bytes reserved up to
    /// `reserved`. `None` if they are better written the other way.
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
    /// Writes the blocks to a file that is open without its pages.
    pub(super) fn write(&self, file: BorrowedFd<'_>) -> rustix::io::Result<()> {
        self.write_by(|blocks, offset| retry_on_intr(|| pwrite(file, blocks, offset)))
    }

    /// The first block goes last: a process killed before that leaves the file with the end it had.
    fn write_by(
        &self,
        mut write: impl FnMut(&[u8], u64) -> rustix::io::Result<usize>,
    ) -> rustix::io::Result<()> {
        let (first, rest) = self.pages.as_ref().split_at(PAGE_BYTES);
        write_blocks(&mut write, rest, self.offset + BLOCK_BYTES)?;
        write_blocks(&mut write, first, self.offset)
    }
}

fn write_blocks(
    write: &mut impl FnMut(&[u8], u64) -> rustix::io::Result<usize>,
    mut blocks: &[u8],
    mut offset: u64,
) -> rustix::io::Result<()> {
    while !blocks.is_empty() {
        let len = write(blocks, offset)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    const LEN: u64 = 3 * BLOCK_BYTES + 1000;
    const MARK_LEN: usize = 8;

    /// A file of `LEN` bytes with an end mark behind them, and zeros; and three blocks to write to its end.
    fn before() -> (Vec<u8>, Aligned) {
        let mut blocks = Blocks::default();
        blocks.appended(&[1; 1000], LEN - 1000);
        let mut file = vec![1; LEN as usize];
        file.extend_from_slice(&[0xee; MARK_LEN]);
        file.resize(10 * PAGE_BYTES, 0);
        let bytes = [2; 2 * PAGE_BYTES];
        (file, blocks.with(&bytes, LEN, MARK_LEN, 10 * BLOCK_BYTES).unwrap())
    }

    /// Writes to `file` until `writes` of at most `most` bytes were done; then the disk fails.
    fn write_some(
        aligned: &Aligned,
        file: &mut [u8],
        mut writes: usize,
        most: usize,
    ) -> rustix::io::Result<()> {
        aligned.write_by(|blocks, offset| {
            writes = writes.checked_sub(1).ok_or(Errno::IO)?;
            let (len, at) = (blocks.len().min(most), offset as usize);
            assert!(at.is_multiple_of(PAGE_BYTES) && blocks.len().is_multiple_of(PAGE_BYTES));
            file[at..at + len].copy_from_slice(&blocks[..len]);
            Ok(len)
        })
    }

    #[test]
    fn a_write_that_ends_early_leaves_the_end_where_it_was() {
        let (old, aligned) = before();
        for writes in 0..3 {
            let mut file = old.clone();
            let written = write_some(&aligned, &mut file, writes, PAGE_BYTES);
            assert_eq!(written, Err(Errno::IO), "after {writes}");
            let mark_end = LEN as usize + MARK_LEN;
            assert_eq!(file[..mark_end], old[..mark_end], "after {writes}");
        }
        let mut file = old;
        write_some(&aligned, &mut file, 3, PAGE_BYTES).unwrap();
        let end = LEN as usize + 2 * PAGE_BYTES;
        assert!(file[..LEN as usize].iter().all(|&byte| byte == 1));
        assert!(file[LEN as usize..end].iter().all(|&byte| byte == 2));
        assert!(file[end..].iter().all(|&byte| byte == 0));
    }

    #[test]
    fn a_write_of_half_a_block_is_an_error() {
        let (mut file, aligned) = before();
        assert_eq!(write_some(&aligned, &mut file, 9, 512), Err(Errno::IO));
    }

    #[test]
    fn what_does_not_fit_goes_the_other_way() {
        let mut blocks = Blocks::default();
        blocks.appended(&[1; 4090], 0);
        assert!(blocks.with(&[2; 10], 4090, 6, 2 * BLOCK_BYTES).is_some());
        assert!(blocks.with(&[2; 10], 4090, 7, 2 * BLOCK_BYTES).is_none(), "a mark in two blocks");
        assert!(blocks.with(&[2; 10], 4090, 6, BLOCK_BYTES).is_none(), "nothing reserved");
        assert!(blocks.with(&[], 4090, 6, 2 * BLOCK_BYTES).is_none());
        assert!(blocks.with(&[2; BYTES_MAX + 1], 4090, 6, 100 * BLOCK_BYTES).is_none());
    }
}
