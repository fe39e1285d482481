//! Reading past the page cache: from the disk into memory that the caller keeps, without a copy in between.
//!
//! The system wants offset, length and memory in multiples of what the disk has as its least; a page is enough for
//! all. So the pages around what is asked for are read, and the bytes asked for are a part of them.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use base::BoxFuture;
use base::pages::{PAGE_BYTES, Pages};
use bytes::Bytes;
use rustix::io::{Errno, pread};

use super::handle::{Handle, end_of, error_of};
use crate::{Error, FilePath, FileReader, Result};

/// Whether reads past the page cache work on an open file; some file systems say so only when asked to read.
pub(super) fn can_read(file: impl AsFd) -> bool {
    read_pages(file.as_fd(), 0, PAGE_BYTES).is_ok()
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
        let end = end_of(&self.path, offset, len, self.len)?;
        if len == 0 {
            return Ok(Bytes::new());
        }
        let skipped = (offset % PAGE_BYTES as u64) as usize;
        let handle = self.handle.clone();
        let read = move || read_pages(handle.fd(), offset - skipped as u64, skipped + len);
        let pages =
            self.handle.pool().run(read).await.map_err(|errno| error_of(&self.path, "read", errno))?;
        if pages.as_ref().len() < skipped + len {
            return Err(Error::PastEnd { path: self.path.clone(), end });
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
        PAGE_BYTES
    }
}

/// Reads at least `len` bytes, which must not be 0, from `offset`, a multiple of [`PAGE_BYTES`]; fewer where the file
/// ends.
fn read_pages(file: BorrowedFd<'_>, offset: u64, len: usize) -> rustix::io::Result<Pages> {
    let mut pages = Pages::new(len);
    while pages.as_ref().len() < len {
        let at = offset + pages.as_ref().len() as u64;
        let read = match pages.fill(|spare| pread(file, spare, at).map(|(read, _)| read)) {
            Err(Errno::INTR) => continue,
            read => read?,
        };
        // In the middle of a page only at the end of the file, from where no further read could go on.
        if read % PAGE_BYTES != 0 || read == 0 {
            break;
        }
    }
    Ok(pages)
}
