//! Reading at any offset: from the page cache at once, else on the pool.

use std::io::IoSliceMut;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base::BoxFuture;
use bytes::Bytes;
use rustix::io::{Errno, ReadWriteFlags, retry_on_intr};

use super::handle::{Handle, error_of};
use crate::{Error, FilePath, FileReader, Result};

// A copy of more takes long enough (some 50 µs) that the thread which serves others should not make it.
const INLINE_BYTES_MAX: usize = 256 * 1024;

/// Whether reads that do not wait work here; one for a file system.
#[derive(Debug, Default)]
pub(super) struct ReadPath {
    waits_only: AtomicBool,
}

impl ReadPath {
    // Reads what is in memory, up to all of `buffer`, and says how much that was.
    fn read_cached(&self, handle: &Handle, buffer: &mut [u8], offset: u64) -> usize {
        if buffer.len() > INLINE_BYTES_MAX || self.waits_only.load(Ordering::Relaxed) {
            return 0;
        }
        match rustix::io::preadv2(handle.fd(), &mut [IoSliceMut::new(buffer)], offset, ReadWriteFlags::NOWAIT)
        {
            Ok(len) => len,
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
                self.waits_only.store(true, Ordering::Relaxed);
                0
            }
            // Not in memory; or a true error, which the read that waits meets again.
            Err(_) => 0,
        }
    }
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
        let end = offset.saturating_add(len as u64);
        // Checked before room is made: no more than the file has.
        if end > self.len {
            return Err(Error::PastEnd { path: self.path.clone(), end });
        }
        let mut buffer = vec![0; len];
        let have = self.reads.read_cached(&self.handle, &mut buffer, offset);
        if have < len {
            let handle = self.handle.clone();
            let filled = self.handle.pool().run(move || {
                let read = read_exact(&handle, &mut buffer[have..], offset + have as u64);
                (buffer, read)
            });
            let (filled, read) = filled.await;
            buffer = filled;
            if !read.map_err(|errno| error_of(&self.path, "read", errno))? {
                return Err(Error::PastEnd { path: self.path.clone(), end });
            }
        }
        Ok(Bytes::from(buffer))
    }
}

// False: the file ends before the buffer is full.
fn read_exact(handle: &Handle, mut buffer: &mut [u8], mut offset: u64) -> rustix::io::Result<bool> {
    while !buffer.is_empty() {
        let len = retry_on_intr(|| rustix::io::pread(handle.fd(), &mut *buffer, offset))?;
        if len == 0 {
            return Ok(false);
        }
        offset += len as u64;
        buffer = &mut buffer[len..];
    }
    Ok(true)
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
