//! Direct reads: from the disk into the caller's memory, without the page cache and without a copy.
//!
//! The system requires offset, length and memory address to be multiples of the disk's block size;
//! a page is sufficient for all disks. So the pages around the requested bytes are read, and the
//! result is a slice of them.
//!
//! The kernel performs a read of one or two blocks asynchronously ([`Aio`]). Longer reads, and
//! reads that the kernel could not do without waiting, block on the pool.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use base::BoxFuture;
use base::pages::{PAGE_BYTES, Pages};
use bytes::Bytes;
use rustix::io::{Errno, pread};

use super::aio::Aio;
use super::handle::{Handle, end_of, error_of};
use crate::{Error, FilePath, FileReader, Result};

/// Longer reads take the disk so long that the thread that waits for them does not matter, and the
/// kernel may split them.
const AIO_BYTES_MAX: usize = 256 << 10;

/// Whether direct reads work on an open file; some file systems fail only on the first read.
pub(super) fn can_read(file: impl AsFd) -> bool {
    read_pages(file.as_fd(), &mut Pages::new(PAGE_BYTES), 0, PAGE_BYTES).is_ok()
}

/// A file that is read with direct I/O.
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
        let mut pages = self.read_async(Pages::new(whole), from).await;
        if pages.as_ref().len() < whole {
            pages = self.read_blocking(pages, from, whole).await?;
        }
        if pages.as_ref().len() < whole {
            return Err(Error::PastEnd { path: self.path.clone(), end });
        }
        Ok(Bytes::from_owner(pages).slice(skipped..skipped + len))
    }

    /// Fills `pages` from offset `from`, up to where that needs no blocked thread.
    async fn read_async(&self, pages: Pages, from: u64) -> Pages {
        let aio = if pages.capacity() > AIO_BYTES_MAX { None } else { Aio::thread_queue() };
        let Some(aio) = aio else { return pages };
        match aio.read(&self.handle, pages, from) {
            Ok(ended) => ended.await.expect("the kernel reports each completion, and the runtime is alive"),
            Err(unfilled) => unfilled,
        }
    }

    /// Fills `pages` from offset `from` up to `whole` bytes on a pool thread; fewer if the file
    /// ends earlier.
    async fn read_blocking(&self, mut pages: Pages, from: u64, whole: usize) -> Result<Pages> {
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

    fn read_overhead_bytes(&self) -> usize {
        // Half a page before and half a page after the requested bytes, on average.
        PAGE_BYTES
    }
}

/// Fills `pages` with at least `len` bytes from `offset`; fewer if the file ends earlier. `offset`
/// and the filled length are multiples of [`PAGE_BYTES`].
fn read_pages(file: BorrowedFd<'_>, pages: &mut Pages, offset: u64, len: usize) -> rustix::io::Result<()> {
    while pages.as_ref().len() < len {
        let at = offset + pages.as_ref().len() as u64;
        let read = match pages.fill(|spare| pread(file, spare, at).map(|(read, _)| read)) {
            Err(Errno::INTR) => continue,
            read => read?,
        };
        // A read ends within a page only at the end of the file, where no further read can
        // continue.
        if read % PAGE_BYTES != 0 || read == 0 {
            break;
        }
    }
    Ok(())
}
