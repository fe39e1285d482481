//! Writing front to back, each append at the writer's own offset.
//!
//! Invariants:
//!
//! * after a failed sync nothing is appended or synced any more: the kernel may have dropped the pages and would
//!   report the next sync as good;
//! * a call whose future was dropped before it ended may still be at work, so no other may follow it;
//! * an append that failed leaves nothing behind the end: what it wrote is cut.

use std::os::fd::AsFd;
use std::sync::Arc;

use base::BoxFuture;
use bytes::Bytes;
use rustix::io::{Errno, retry_on_intr};

use super::blocks::{Aligned, Blocks};
use super::handle::{Handle, error_of};
use crate::{Error, FilePath, FileWriter, Result, Storage, Sync};

// Zeros are written in steps of this size, so that most calls of `reserve` have nothing to do.
const RESERVE_STEP_BYTES: u64 = 1024 * 1024;
static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];

const SYNC_FAILED: &str = "an earlier sync of this file failed";
const CUT_FAILED: &str = "the remains of a failed append could not be cut";
const DROPPED: &str = "an earlier call was given up before it ended";

pub(super) struct LocalWriter {
    handle: Arc<Handle>,
    path: FilePath,
    len: u64,
    // Bytes of the end mark that stands at `len`.
    end_mark_len: usize,
    // Bytes of the file on disk: an end mark and zeros from `len` on.
    len_on_disk: u64,
    storage: Storage,
    blocks: Blocks,
    // Why nothing more can be done with this file.
    broken: Option<&'static str>,
}

impl LocalWriter {
    pub(super) fn new(handle: Arc<Handle>, path: FilePath, storage: Storage) -> LocalWriter {
        LocalWriter {
            handle,
            path,
            len: 0,
            end_mark_len: 0,
            len_on_disk: 0,
            storage,
            blocks: Blocks::default(),
            broken: None,
        }
    }

    // Runs `job` on the pool, if the file is sound; it counts as unsound for as long as the job runs.
    async fn run<T: Send + 'static>(
        &mut self,
        operation: &'static str,
        job: impl FnOnce(&Handle) -> T + Send + 'static,
    ) -> Result<T> {
        if let Some(reason) = self.broken {
            return Err(Error::io(&self.path, operation, reason));
        }
        self.broken = Some(DROPPED);
        let handle = self.handle.clone();
        let done = self.handle.pool().run(move || job(&handle)).await;
        self.broken = None;
        Ok(done)
    }

    async fn append_all(&mut self, bytes: Bytes, kept: usize, then: Then) -> Result<()> {
        let offset = self.len;
        let (head, end_mark_len) = (self.end_mark_len.min(bytes.len()), bytes.len() - kept);
        let aligned = self.aligned(&bytes, then);
        let appended = bytes.clone();
        let done = self.run("append", move |handle| {
            if let (Some(aligned), Some(file)) = (&aligned, handle.uncached())
                && let Some(synced) = aligned.write_synced(file)
            {
                // The disk had no room for the blocks: nothing was reported as written that was not, so that this is
                // a failed write, not a failed sync.
                return match synced {
                    Err(errno @ (Errno::NOSPC | Errno::DQUOT)) => (Err(cut(handle, offset, errno)), Ok(())),
                    synced => (Ok(aligned.end()), synced),
                };
            }
            let written = write_or_cut(handle, &bytes, head, offset);
            let written = written.map(|()| offset + bytes.len() as u64);
            let synced = match (&written, then) {
                (Ok(_), Then::Sync) => rustix::fs::fdatasync(handle.fd()),
                _ => Ok(()),
            };
            (written, synced)
        });
        let (written, synced) = done.await?;
        self.settle("append", written)?;
        self.blocks.appended(&appended[..kept], self.len);
        self.len += kept as u64;
        self.end_mark_len = end_mark_len;
        self.synced(synced)
    }

    /// What to write past the page cache, if it is to go that way.
    fn aligned(&self, bytes: &[u8], then: Then) -> Option<Aligned> {
        // What is not synced may as well wait in the page cache.
        let is_possible = then == Then::Sync && self.handle.uncached().is_some();
        is_possible.then(|| self.blocks.with(bytes, self.len, self.len_on_disk)).flatten()
    }

    /// Takes note of a sync: one that failed is the last.
    fn synced(&mut self, synced: rustix::io::Result<()>) -> Result<()> {
        synced.map_err(|errno| {
            self.broken = Some(SYNC_FAILED);
            error_of(&self.path, "sync", errno)
        })
    }

    /// The bytes of an append, with its end mark where the file has one.
    fn marked(&self, bytes: Bytes, kept: usize) -> Bytes {
        // Also before anything is reserved: once zeros stand behind it, the mark must have been there.
        if self.storage == Storage::Log { bytes } else { bytes.slice(..kept) }
    }

    async fn reserve_to(&mut self, end: u64) -> Result<()> {
        let from = self.len_on_disk;
        let written = self.run("reserve", move |handle| {
            let mut at = from;
            while at < end {
                let step = &ZEROS[..(end - at).min(ZEROS.len() as u64) as usize];
                write_all(handle, step, at).map_err(|errno| cut(handle, from, errno))?;
                at += step.len() as u64;
            }
            Ok(end)
        });
        let written = written.await?;
        self.settle("reserve", written)
    }

    // Takes note of what a write left on disk, which tells up to where.
    fn settle(
        &mut self,
        operation: &'static str,
        written: std::result::Result<u64, WriteFailed>,
    ) -> Result<()> {
        match written {
            Ok(end) => {
                self.len_on_disk = self.len_on_disk.max(end);
                Ok(())
            }
            Err(WriteFailed { errno, len_on_disk }) => {
                self.len_on_disk = len_on_disk.unwrap_or(self.len_on_disk);
                self.broken = len_on_disk.is_none().then_some(CUT_FAILED);
                Err(error_of(&self.path, operation, errno))
            }
        }
    }
}

// What follows an append in the same job.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    Nothing,
    Sync,
}

// A write that failed, and how long the file is now; `None` if what was written could not be cut.
struct WriteFailed {
    errno: Errno,
    len_on_disk: Option<u64>,
}

// The first `head` bytes, which overwrite an end mark, go last: a process killed in between leaves the mark.
fn write_or_cut(
    handle: &Handle,
    bytes: &[u8],
    head: usize,
    offset: u64,
) -> std::result::Result<(), WriteFailed> {
    let (head, rest) = bytes.split_at(head);
    write_all(handle, rest, offset + head.len() as u64)
        .and_then(|()| write_all(handle, head, offset))
        .map_err(|errno| cut(handle, offset, errno))
}

/// Fills an empty file with zeros.
pub(super) fn write_zeros(file: impl AsFd, bytes: u64) -> rustix::io::Result<()> {
    let mut at = 0;
    while at < bytes {
        let step = &ZEROS[..(bytes - at).min(ZEROS.len() as u64) as usize];
        at += retry_on_intr(|| rustix::io::pwrite(&file, step, at))? as u64;
    }
    Ok(())
}

fn cut(handle: &Handle, len: u64, errno: Errno) -> WriteFailed {
    let cut = retry_on_intr(|| rustix::fs::ftruncate(handle.fd(), len));
    WriteFailed { errno, len_on_disk: cut.is_ok().then_some(len) }
}

fn write_all(handle: &Handle, mut bytes: &[u8], mut offset: u64) -> rustix::io::Result<()> {
    while !bytes.is_empty() {
        match retry_on_intr(|| rustix::io::pwrite(handle.fd(), bytes, offset))? {
            0 => return Err(Errno::IO),
            len => {
                offset += len as u64;
                bytes = &bytes[len..];
            }
        }
    }
    Ok(())
}

impl FileWriter for LocalWriter {
    fn path(&self) -> &FilePath {
        &self.path
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn append(&mut self, bytes: Bytes) -> BoxFuture<'_, Result<()>> {
        let kept = bytes.len();
        Box::pin(self.append_all(bytes, kept, Then::Nothing))
    }

    fn append_with_end(&mut self, bytes: Bytes, kept: usize) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.append_all(self.marked(bytes, kept), kept, Then::Nothing))
    }

    // One job of the pool, for each costs two changes of thread, and a log does this for every group.
    fn append_and_sync(&mut self, bytes: Bytes, kept: usize, reach: Sync) -> BoxFuture<'_, Result<()>> {
        // What is written is seen by all at once.
        let then = if reach == Sync::Visible { Then::Nothing } else { Then::Sync };
        Box::pin(self.append_all(self.marked(bytes, kept), kept, then))
    }

    fn sync(&mut self, reach: Sync) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            if reach == Sync::Visible {
                // What is written is seen by all at once; only a file that is broken must say so.
                return self.broken.map_or(Ok(()), |reason| Err(Error::io(&self.path, "sync", reason)));
            }
            // Not repeated when interrupted either: a sync has one answer.
            let synced = self.run("sync", |handle| rustix::fs::fdatasync(handle.fd())).await?;
            self.synced(synced)
        })
    }

    fn reserve(&mut self, bytes: u64) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let end = self.len.saturating_add(bytes);
            if self.storage != Storage::Log || end <= self.len_on_disk {
                return Ok(());
            }
            self.reserve_to(end.next_multiple_of(RESERVE_STEP_BYTES)).await
        })
    }

    fn close(mut self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        Box::pin(async move {
            // A failed sync says nothing against cutting; a call that may still be writing does.
            if self.broken == Some(SYNC_FAILED) {
                self.broken = None;
            }
            let (len, reserved) = (self.len, self.len_on_disk > self.len);
            let cut = self.run("close", move |handle| match reserved {
                true => retry_on_intr(|| rustix::fs::ftruncate(handle.fd(), len)),
                false => Ok(()),
            });
            let cut = cut.await?;
            cut.map_err(|errno| error_of(&self.path, "close", errno))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;

    use base::pool::Pool;
    use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags};

    use super::*;

    fn writer(fd: OwnedFd) -> LocalWriter {
        let handle = Handle::new(fd, Arc::new(Pool::new("fs", 1)));
        LocalWriter::new(handle, FilePath::new("f"), Storage::Log)
    }

    #[tokio::test]
    async fn a_full_device() {
        let fd = rustix::fs::open("/dev/full", OFlags::WRONLY, Mode::empty()).unwrap();
        let mut writer = writer(fd);
        let full = writer.append(Bytes::from_static(b"x")).await;
        assert!(matches!(full, Err(Error::NoSpace { .. })), "{full:?}");
        assert_eq!(writer.len(), 0);
        // A device cannot be cut, so the writer cannot know what stands behind the end.
        let broken = writer.append(Bytes::from_static(b"x")).await.unwrap_err();
        assert!(broken.to_string().contains(CUT_FAILED), "{broken}");
    }

    #[tokio::test]
    async fn a_failed_sync_is_the_last() {
        // A device that takes bytes and knows no sync.
        let fd = rustix::fs::open("/dev/null", OFlags::WRONLY, Mode::empty()).unwrap();
        let mut writer = writer(fd);
        writer.append(Bytes::from_static(b"x")).await.unwrap();
        assert!(writer.sync(Sync::Disk).await.is_err());
        for refused in [
            writer.sync(Sync::Disk).await,
            writer.sync(Sync::Visible).await,
            writer.append(Bytes::from_static(b"x")).await,
            writer.reserve(10).await,
        ] {
            assert!(refused.unwrap_err().to_string().contains(SYNC_FAILED));
        }
        Box::new(writer).close().await.unwrap();
    }

    #[tokio::test]
    async fn a_failed_sync_behind_an_append_is_the_last_too() {
        let fd = rustix::fs::open("/dev/null", OFlags::WRONLY, Mode::empty()).unwrap();
        let mut writer = writer(fd);
        writer.append_and_sync(Bytes::from_static(b"x"), 1, Sync::Visible).await.unwrap();
        assert!(writer.append_and_sync(Bytes::from_static(b"x"), 1, Sync::Disk).await.is_err());
        let refused = writer.append_and_sync(Bytes::from_static(b"x"), 1, Sync::Visible).await;
        assert!(refused.unwrap_err().to_string().contains(SYNC_FAILED));
    }

    #[tokio::test]
    async fn a_failed_append_leaves_nothing_behind_the_end() {
        // A file that may not grow beyond 1 MB: a longer append writes up to there, then fails.
        let file = rustix::fs::memfd_create("f", MemfdFlags::ALLOW_SEALING).unwrap();
        rustix::fs::ftruncate(&file, 1_000_000).unwrap();
        rustix::fs::fcntl_add_seals(&file, SealFlags::GROW).unwrap();
        let mut writer = writer(file.try_clone().unwrap());
        writer.append(Bytes::from(vec![1; 600_000])).await.unwrap();
        for _ in 0..2 {
            let refused = writer.append(Bytes::from(vec![2; 600_000])).await.unwrap_err();
            assert!(!refused.to_string().contains(CUT_FAILED), "{refused}");
            assert_eq!(writer.len(), 600_000);
            assert_eq!(rustix::fs::fstat(&file).unwrap().st_size, 600_000);
        }
        writer.sync(Sync::Disk).await.unwrap();
    }
}
