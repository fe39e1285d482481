//! Reading at any offset: immediately from the page cache, else on the pool.

use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base::BoxFuture;
use base::pages::Pages;
use bytes::Bytes;
use rustix::io::{Errno, ReadWriteFlags};

use super::handle::{Handle, end_of, error_of};
use crate::{Error, FilePath, FileReader, Result};

// A longer copy takes long enough (about 50 µs) that it should not block a thread that serves other
// connections.
const INLINE_BYTES_MAX: usize = 256 * 1024;

/// Whether non-blocking reads work on a file system; shared by its readers.
#[derive(Debug, Default)]
pub(super) struct ReadPath {
    blocking_only: AtomicBool,
}

impl ReadPath {
    // Reads up to `len` bytes if they are in the page cache.
    fn read_cached(&self, handle: &Handle, pages: &mut Pages, offset: u64, len: usize) {
        if len > INLINE_BYTES_MAX || self.blocking_only.load(Ordering::Relaxed) {
            return;
        }
        let read = pages.fill(|spare| {
            // `preadv2` accepts only initialized memory.
            let zeroed = zeroed(&mut spare[..len]);
            let mut parts = [IoSliceMut::new(zeroed)];
            let read = rustix::io::preadv2(handle.fd(), &mut parts, offset, ReadWriteFlags::NOWAIT)?;
            Ok(&mut zeroed[..read])
        });
        if let Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) = read {
            self.blocking_only.store(true, Ordering::Relaxed);
        }
        // Any other error: not in the page cache, or a real error, which the blocking read meets
        // again.
    }
}

fn zeroed(spare: &mut [MaybeUninit<u8>]) -> &mut [u8] {
    spare.fill(MaybeUninit::new(0));
    // SAFETY: all of it was just written.
    unsafe { spare.assume_init_mut() }
}

pub(super) struct LocalReader {
    handle: Arc<Handle>,
    path: FilePath,
    len: u64,
    reads: Arc<ReadPath>,
}

impl LocalReader {
    pub(super) fn new(handle: Arc<Handle>, path: FilePath, len: u64, reads: Arc<ReadPath>) -> LocalReader {
        LocalReader { handle, path, len, reads }
    }

    async fn read(&self, offset: u64, len: usize) -> Result<Bytes> {
        let end = end_of(&self.path, offset, len, self.len)?;
        if len == 0 {
            return Ok(Bytes::new());
        }
        let mut pages = Pages::new(len);
        self.reads.read_cached(&self.handle, &mut pages, offset, len);
        if pages.as_ref().len() < len {
            let handle = self.handle.clone();
            let filled = self.handle.pool().run(move || {
                let read = read_exact(&handle, &mut pages, offset, len);
                (pages, read)
            });
            let (filled, read) = filled.await;
            pages = filled;
            if !read.map_err(|errno| error_of(&self.path, "read", errno))? {
                return Err(Error::PastEnd { path: self.path.clone(), end });
            }
        }
        Ok(Bytes::from_owner(pages))
    }
}

// Reads up to `len` bytes of the file from `offset`, of which `pages` already has a prefix. Returns
// false if the file ends earlier.
fn read_exact(handle: &Handle, pages: &mut Pages, offset: u64, len: usize) -> rustix::io::Result<bool> {
    loop {
        let have = pages.as_ref().len();
        if have == len {
            return Ok(true);
        }
        let at = offset + have as u64;
        let read = pages
            .fill(|spare| rustix::io::pread(handle.fd(), &mut spare[..len - have], at).map(|(read, _)| read));
        match read {
            Ok(0) => return Ok(false),
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

impl FileReader for LocalReader {
    fn path(&self) -> &FilePath {
        &self.path
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, len: usize) -> BoxFuture<'_, Result<Bytes>> {
        Box::pin(self.read(offset, len))
    }
}
