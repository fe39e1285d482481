//! An open file, and the conversion of system errors.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use base::pool::Pool;
use rustix::io::Errno;

use crate::{Error, FilePath, Result};

/// An open file that is closed on the pool: the last close of a deleted file frees its blocks,
/// which takes time.
pub(super) struct Handle {
    // Only `drop` takes them.
    fd: Option<OwnedFd>,
    uncached: Option<OwnedFd>,
    pool: Arc<Pool>,
}

impl Handle {
    pub(super) fn new(fd: OwnedFd, pool: Arc<Pool>) -> Arc<Handle> {
        Handle::with_uncached(fd, None, pool)
    }

    /// The same for a file that may have a second descriptor for direct I/O.
    pub(super) fn with_uncached(fd: OwnedFd, uncached: Option<OwnedFd>, pool: Arc<Pool>) -> Arc<Handle> {
        Arc::new(Handle { fd: Some(fd), uncached, pool })
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_ref().expect("only drop takes it").as_fd()
    }

    /// The descriptor for direct I/O, if there is one.
    pub(super) fn uncached(&self) -> Option<BorrowedFd<'_>> {
        self.uncached.as_ref().map(AsFd::as_fd)
    }

    pub(super) fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let both = (self.fd.take(), self.uncached.take());
        self.pool.execute(move || drop(both));
    }
}

/// The end offset of a read of `len` bytes at `offset`. Checks it against the file's `file_len`
/// before any memory is allocated.
pub(super) fn end_of(path: &FilePath, offset: u64, len: usize, file_len: u64) -> Result<u64> {
    let end = offset.saturating_add(len as u64);
    if end > file_len {
        return Err(Error::PastEnd { path: path.clone(), end });
    }
    Ok(end)
}

/// Converts a system error at `path`.
pub(super) fn error_of(path: &FilePath, operation: &'static str, errno: Errno) -> Error {
    let path = path.clone();
    match errno {
        Errno::NOENT | Errno::NOTDIR => Error::NotFound { path },
        Errno::EXIST => Error::AlreadyExists { path },
        Errno::NOSPC | Errno::DQUOT => Error::NoSpace { path },
        Errno::MFILE | Errno::NFILE => Error::NoDescriptor { path, operation },
        errno => Error::Io { path, operation, message: errno.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_mapped_by_their_remedy() {
        let path = FilePath::new("f");
        let of = |errno| error_of(&path, "append", errno);
        assert!(matches!(of(Errno::NOENT), Error::NotFound { .. }));
        assert!(matches!(of(Errno::NOTDIR), Error::NotFound { .. }));
        assert!(matches!(of(Errno::EXIST), Error::AlreadyExists { .. }));
        assert!(matches!(of(Errno::NOSPC), Error::NoSpace { .. }));
        assert!(matches!(of(Errno::DQUOT), Error::NoSpace { .. }));
        assert!(of(Errno::MFILE).to_string().contains("ulimit -n"));
        assert!(of(Errno::IO).to_string().starts_with("f: append failed: "));
    }
}
