//! Reading past the page cache: from the disk into memory that the caller keeps, without a copy in between.
//!
//! The system wants offset, length and memory in whole pages. So the pages around what is asked for are read, and the bytes
//! asked for are a part of them.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::Arc;

use base::BoxFuture;
use bytes::Bytes;
use rustix::io::{pread, retry_on_intr};

use super::handle::{Handle, error_of};
use crate::{Error, FilePath, FileReader, Result};

/// What offsets, lengths and addresses are multiples of: enough for every disk with blocks of 512 or 4096 bytes.
const PAGE_LEN: usize = 4096;

/// Whether reads past the page cache work on an open file; some file systems say so only when asked to read.
pub(super) fn can_read(file: impl AsFd) -> bool {
    Pages::read(file.as_fd(), 0, PAGE_LEN).is_ok()
}

/// A file that is read past the page cache.
pub(super) struct DirectReader {
    handle: Arc<Handle>,
    path: FilePath,
    len: u64,
}

impl DirectReader {
    pub(super) fn new(handle: Arc<Handle>, path: FilePath, len: u64) -> DirectReader {
        DirectReader { handle, path, len }
    }

    async fn read(&self, offset: u64, len: usize) -> Result<Bytes> {
        let end = offset.saturating_add(len as u64);
        let past_end = || Error::PastEnd { path: self.path.clone(), end };
        // Checked before room is made: no more than the file has.
        if end > self.len {
            return Err(past_end());
        }
        if len == 0 {
            return Ok(Bytes::new());
        }
        let skipped = (offset % PAGE_LEN as u64) as usize;
        let handle = self.handle.clone();
        let read = move || Pages::read(handle.fd(), offset - skipped as u64, skipped + len);
        let pages =
            self.handle.pool().run(read).await.map_err(|errno| error_of(&self.path, "read", errno))?;
        if pages.filled < skipped + len {
            return Err(past_end());
        }
        Ok(Bytes::from_owner(pages).slice(skipped..skipped + len))
    }
}

impl FileReader for DirectReader {
    fn path(&self) -> &FilePath {
        &self.path
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, len: usize) -> BoxFuture<'_, Result<Bytes>> {
        Box::pin(self.read(offset, len))
    }

    fn spare_bytes(&self) -> usize {
        // Half a page before and half a page behind, on average.
        PAGE_LEN
    }
}

/// Whole pages of memory, the first bytes of which were read.
struct Pages {
    start: NonNull<u8>,
    layout: Layout,
    filled: usize,
}

// SAFETY: the memory is owned, and not written to any more once it is shared.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Pages {
    /// Reads at least `len` bytes, which must not be 0, from `offset`, a multiple of [`PAGE_LEN`]; fewer where the file ends.
    fn read(file: BorrowedFd<'_>, offset: u64, len: usize) -> rustix::io::Result<Pages> {
        let mut pages = Pages::new(len);
        while pages.filled < len {
            let at = offset + pages.filled as u64;
            let read = retry_on_intr(|| pread(file, pages.spare(), at).map(|(read, _)| read.len()))?;
            pages.filled += read;
            // In the middle of a page only at the end of the file, from where no further read could go on.
            if read % PAGE_LEN != 0 || read == 0 {
                break;
            }
        }
        Ok(pages)
    }

    fn new(len: usize) -> Pages {
        assert!(len > 0, "no pages for no bytes");
        let layout = Layout::from_size_align(len.next_multiple_of(PAGE_LEN), PAGE_LEN)
            .expect("the length is one of memory");
        // SAFETY: the layout is not empty.
        let Some(start) = NonNull::new(unsafe { alloc(layout) }) else { handle_alloc_error(layout) };
        Pages { start, layout, filled: 0 }
    }

    /// What was not read into yet.
    fn spare(&mut self) -> &mut [MaybeUninit<u8>] {
        // SAFETY: allocated with this length, and borrowed as `self` is; need not be initialized.
        let all = unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().cast(), self.layout.size()) };
        &mut all[self.filled..]
    }
}

impl AsRef<[u8]> for Pages {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the first `filled` bytes were read into, and nothing writes while `self` is borrowed.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.filled) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and given back once.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}
