//! Reading past the page cache: from the disk into memory that the caller keeps, without a copy in between.
//!
//! The system wants offset, length and memory in multiples of what the disk has as its least; a page is enough for
//! all. So the pages around what is asked for are read, and the bytes asked for are a part of them.
//!
//! A read of a block or two is handed to the kernel, which tells when it has ended ([`Aio`]). Longer ones, and what the
//! kernel could not do without waiting, wait on the pool.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use base::BoxFuture;
use base::pages::{PAGE_BYTES, Pages};
use bytes::Bytes;
use rustix::io::{Errno, pread};

use super::aio::Aio;
use super::handle::{Handle, end_of, error_of};
use crate::{Error, FilePath, FileReader, Result};

/// Reads of more take the disk so long that it does not matter which thread waits for it, and the kernel may cut them in parts.
const AIO_BYTES_MAX: usize = 256 << 10;

/// Whether reads past the page cache work on an open file; some file systems say so only when asked to read.
pub(super) fn can_read(file: impl AsFd) -> bool {
    read_pages(file.as_fd(), &mut Pages::new(PAGE_BYTES), 0, PAGE_BYTES).is_ok()
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
        let (from, whole) = (offset - skipped as u64, skipped + len);
        let mut pages = self.begun(Pages::new(whole), from).await;
        if pages.as_ref().len() < whole {
            pages = self.waited_for(pages, from, whole).await?;
        }
        if pages.as_ref().len() < whole {
            return Err(Error::PastEnd { path: self.path.clone(), end });
        }
        Ok(Bytes::from_owner(pages).slice(skipped..skipped + len))
    }

    /// `pages`, filled from `from` on as far as can be without a thread that waits.
    async fn begun(&self, pages: Pages, from: u64) -> Pages {
        let aio = if pages.capacity() > AIO_BYTES_MAX { None } else { Aio::of_thread() };
        let Some(aio) = aio else { return pages };
        match aio.read(&self.handle, pages, from) {
            Ok(ended) => ended.await.expect("the kernel tells of each end, and the runtime is there"),
            Err(unfilled) => unfilled,
        }
    }

    /// `pages`, filled from `from` on up to `whole` bytes by a thread that waits; fewer where the file ends.
    async fn waited_for(&self, mut pages: Pages, from: u64, whole: usize) -> Result<Pages> {
        let handle = self.handle.clone();
        let read = move || read_pages(handle.fd(), &mut pages, from, whole).map(|()| pages);
        self.handle.pool().run(read).await.map_err(|errno| error_of(&self.path, "read", errno))
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

/// Fills `pages` up to `len` bytes at least from `offset` on, a multiple of [`PAGE_BYTES`] like what is filled already; less where the
/// file ends.
fn read_pages(file: BorrowedFd<'_>, pages: &mut Pages, offset: u64, len: usize) -> rustix::io::Result<()> {
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
    Ok(())
}
