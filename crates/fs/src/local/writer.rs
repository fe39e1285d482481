//! Sequential writing, each append at the writer's own offset.
//!
//! Invariants:
//!
//! * after a failed sync nothing is appended or synced any more: the kernel may have dropped the
//!   pages and would report success for the next sync;
//! * a call whose future was dropped before completion may still be running, so no other call may
//!   follow it;
//! * a failed append leaves nothing after the end: its bytes are truncated.

use std::os::fd::AsFd;
use std::sync::Arc;

use base::BoxFuture;
use bytes::Bytes;
use rustix::io::{Errno, retry_on_intr};

use super::blocks::{Blocks, DirectWrite};
use super::handle::{Handle, error_of};
use crate::{AccessPattern, Error, FilePath, FileWriter, Result, SyncLevel};

// Zeros are written in steps of this size, so that most calls of `reserve` have nothing to do.
const RESERVE_STEP_BYTES: u64 = 1024 * 1024;
static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];

const SYNC_FAILED: &str = "an earlier sync of this file failed";
const TRUNCATE_FAILED: &str = "a failed append could not be truncated";
const DROPPED: &str = "an earlier call was cancelled before it ended";

pub(super) struct LocalWriter {
    handle: Arc<Handle>,
    path: FilePath,
    len: u64,
    // Bytes of the end mark at `len`.
    end_mark_len: usize,
    // Length of the file on disk, with an end mark and zeros from `len` on.
    len_on_disk: u64,
    access: AccessPattern,
    blocks: Blocks,
    // Why the file refuses further calls.
    broken: Option<&'static str>,
}

impl LocalWriter {
    pub(super) fn new(handle: Arc<Handle>, path: FilePath, access: AccessPattern) -> LocalWriter {
        LocalWriter {
            handle,
            path,
            len: 0,
            end_mark_len: 0,
            len_on_disk: 0,
            access,
            blocks: Blocks::default(),
            broken: None,
        }
    }

    // Runs `job` on the pool, if the file is usable. The file counts as broken while the job runs.
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

    async fn append_all(&mut self, bytes: Bytes, content_len: usize, then: AfterAppend) -> Result<()> {
        debug_assert!(content_len <= bytes.len(), "the content of an append is a prefix of its bytes");
        let offset = self.len;
        let (head, end_mark_len) = (self.end_mark_len.min(bytes.len()), bytes.len() - content_len);
        let direct = self.direct_write(&bytes, then);
        let appended = bytes.clone();
        let done = self.run("append", move |handle| {
            if let (Some(direct), Some(file)) = (&direct, handle.uncached())
                && let Some(synced) = direct.write_synced(file)
            {
                // The disk had no space for the blocks. No unwritten bytes were reported as
                // written, so this is a failed write and not a failed sync.
                return match synced {
                    Err(errno @ (Errno::NOSPC | Errno::DQUOT)) => {
                        (Err(truncate_failed(handle, offset, errno)), Ok(()))
                    }
                    synced => (Ok(direct.end()), synced),
                };
            }
            let written = write_or_truncate(handle, &bytes, head, offset);
            let written = written.map(|()| offset + bytes.len() as u64);
            let synced = match (&written, then) {
                (Ok(_), AfterAppend::Sync) => rustix::fs::fdatasync(handle.fd()),
                _ => Ok(()),
            };
            (written, synced)
        });
        let (written, synced) = done.await?;
        self.record_write("append", written)?;
        self.blocks.appended(&appended[..content_len], self.len);
        self.len += content_len as u64;
        self.end_mark_len = end_mark_len;
        debug_assert!(self.len + end_mark_len as u64 <= self.len_on_disk, "appended bytes are in the file");
        self.record_sync(synced)
    }

    /// The blocks for a direct write, if the append should use one.
    fn direct_write(&self, bytes: &[u8], then: AfterAppend) -> Option<DirectWrite> {
        // Unsynced bytes can stay in the page cache.
        let is_possible = then == AfterAppend::Sync && self.handle.uncached().is_some();
        is_possible.then(|| self.blocks.with(bytes, self.len, self.len_on_disk)).flatten()
    }

    /// Records the result of a sync: after a failure there is no other.
    fn record_sync(&mut self, synced: rustix::io::Result<()>) -> Result<()> {
        synced.map_err(|errno| {
            self.broken = Some(SYNC_FAILED);
            error_of(&self.path, "sync", errno)
        })
    }

    /// The bytes of an append, including its end mark if the file has end marks.
    fn with_end_mark(&self, bytes: Bytes, content_len: usize) -> Bytes {
        // Also before anything is reserved: the mark must precede any zeros.
        if self.access == AccessPattern::Log { bytes } else { bytes.slice(..content_len) }
    }

    async fn reserve_to(&mut self, end: u64) -> Result<()> {
        let from = self.len_on_disk;
        let written = self.run("reserve", move |handle| {
            let mut at = from;
            while at < end {
                let step = &ZEROS[..(end - at).min(ZEROS.len() as u64) as usize];
                write_all(handle, step, at).map_err(|errno| truncate_failed(handle, from, errno))?;
                at += step.len() as u64;
            }
            Ok(end)
        });
        let written = written.await?;
        self.record_write("reserve", written)
    }

    // Records the result of a write, which includes the length on disk.
    fn record_write(
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
                self.broken = len_on_disk.is_none().then_some(TRUNCATE_FAILED);
                Err(error_of(&self.path, operation, errno))
            }
        }
    }
}

// What follows an append in the same job.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AfterAppend {
    Nothing,
    Sync,
}

// A failed write and the file's length after it; the length is `None` if the written bytes could
// not be truncated.
struct WriteFailed {
    errno: Errno,
    len_on_disk: Option<u64>,
}

// The first `head` bytes, which overwrite an end mark, are written last: a process killed in
// between leaves the mark.
fn write_or_truncate(
    handle: &Handle,
    bytes: &[u8],
    head: usize,
    offset: u64,
) -> std::result::Result<(), WriteFailed> {
    let (head, rest) = bytes.split_at(head);
    write_all(handle, rest, offset + head.len() as u64)
        .and_then(|()| write_all(handle, head, offset))
        .map_err(|errno| truncate_failed(handle, offset, errno))
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

fn truncate_failed(handle: &Handle, len: u64, errno: Errno) -> WriteFailed {
    let truncated = retry_on_intr(|| rustix::fs::ftruncate(handle.fd(), len));
    WriteFailed { errno, len_on_disk: truncated.is_ok().then_some(len) }
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
        let content_len = bytes.len();
        Box::pin(self.append_all(bytes, content_len, AfterAppend::Nothing))
    }

    fn append_with_end(&mut self, bytes: Bytes, content_len: usize) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.append_all(self.with_end_mark(bytes, content_len), content_len, AfterAppend::Nothing))
    }

    // A single pool job: each job costs two thread switches, and a log does this for every batch.
    fn append_and_sync(
        &mut self,
        bytes: Bytes,
        content_len: usize,
        durability: SyncLevel,
    ) -> BoxFuture<'_, Result<()>> {
        // Written bytes are visible to all readers immediately.
        let then = if durability == SyncLevel::Visible { AfterAppend::Nothing } else { AfterAppend::Sync };
        Box::pin(self.append_all(self.with_end_mark(bytes, content_len), content_len, then))
    }

    fn sync(&mut self, durability: SyncLevel) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            if durability == SyncLevel::Visible {
                // Written bytes are visible to all readers immediately; only a broken file reports
                // an error.
                return self.broken.map_or(Ok(()), |reason| Err(Error::io(&self.path, "sync", reason)));
            }
            // Not retried when interrupted: a sync has a single result.
            let synced = self.run("sync", |handle| rustix::fs::fdatasync(handle.fd())).await?;
            self.record_sync(synced)
        })
    }

    fn reserve(&mut self, bytes: u64) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let end = self.len.saturating_add(bytes);
            if self.access != AccessPattern::Log || end <= self.len_on_disk {
                return Ok(());
            }
            self.reserve_to(end.next_multiple_of(RESERVE_STEP_BYTES)).await
        })
    }

    fn close(mut self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        Box::pin(async move {
            // Truncating is safe after a failed sync, but not while a dropped call may still be
            // writing.
            if self.broken == Some(SYNC_FAILED) {
                self.broken = None;
            }
            let (len, reserved) = (self.len, self.len_on_disk > self.len);
            let truncated = self.run("close", move |handle| match reserved {
                true => retry_on_intr(|| rustix::fs::ftruncate(handle.fd(), len)),
                false => Ok(()),
            });
            let truncated = truncated.await?;
            truncated.map_err(|errno| error_of(&self.path, "close", errno))
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
        LocalWriter::new(handle, FilePath::new("f"), AccessPattern::Log)
    }

    #[tokio::test]
    async fn a_full_device() {
        let fd = rustix::fs::open("/dev/full", OFlags::WRONLY, Mode::empty()).unwrap();
        let mut writer = writer(fd);
        let full = writer.append(Bytes::from_static(b"x")).await;
        assert!(matches!(full, Err(Error::NoSpace { .. })), "{full:?}");
        assert_eq!(writer.len(), 0);
        // A device cannot be truncated, so the writer cannot know the bytes after the end.
        let broken = writer.append(Bytes::from_static(b"x")).await.unwrap_err();
        assert!(broken.to_string().contains(TRUNCATE_FAILED), "{broken}");
    }

    #[tokio::test]
    async fn a_failed_sync_is_the_last() {
        // A device that accepts bytes and does not support sync.
        let fd = rustix::fs::open("/dev/null", OFlags::WRONLY, Mode::empty()).unwrap();
        let mut writer = writer(fd);
        writer.append(Bytes::from_static(b"x")).await.unwrap();
        assert!(writer.sync(SyncLevel::Disk).await.is_err());
        for refused in [
            writer.sync(SyncLevel::Disk).await,
            writer.sync(SyncLevel::Visible).await,
            writer.append(Bytes::from_static(b"x")).await,
            writer.reserve(10).await,
        ] {
            assert!(refused.unwrap_err().to_string().contains(SYNC_FAILED));
        }
        Box::new(writer).close().await.unwrap();
    }

    #[tokio::test]
    async fn a_failed_sync_after_an_append_is_also_the_last() {
        let fd = rustix::fs::open("/dev/null", OFlags::WRONLY, Mode::empty()).unwrap();
        let mut writer = writer(fd);
        writer.append_and_sync(Bytes::from_static(b"x"), 1, SyncLevel::Visible).await.unwrap();
        assert!(writer.append_and_sync(Bytes::from_static(b"x"), 1, SyncLevel::Disk).await.is_err());
        let refused = writer.append_and_sync(Bytes::from_static(b"x"), 1, SyncLevel::Visible).await;
        assert!(refused.unwrap_err().to_string().contains(SYNC_FAILED));
    }

    #[tokio::test]
    async fn a_failed_append_leaves_nothing_after_the_end() {
        // A file that cannot grow beyond 1 MB: a longer append writes up to there, then fails.
        let file = rustix::fs::memfd_create("f", MemfdFlags::ALLOW_SEALING).unwrap();
        rustix::fs::ftruncate(&file, 1_000_000).unwrap();
        rustix::fs::fcntl_add_seals(&file, SealFlags::GROW).unwrap();
        let mut writer = writer(file.try_clone().unwrap());
        writer.append(Bytes::from(vec![1; 600_000])).await.unwrap();
        for _ in 0..2 {
            let refused = writer.append(Bytes::from(vec![2; 600_000])).await.unwrap_err();
            assert!(!refused.to_string().contains(TRUNCATE_FAILED), "{refused}");
            assert_eq!(writer.len(), 600_000);
            assert_eq!(rustix::fs::fstat(&file).unwrap().st_size, 600_000);
        }
        writer.sync(SyncLevel::Disk).await.unwrap();
    }
}
