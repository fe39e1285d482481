//! Directories: listing and recursive deletion.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::{DIR_FLAGS, error_of, os_path};
use crate::{Error, FilePath, FileStatus, Result};

// Each level holds a directory open; HBase's root directory is about eight levels deep.
const DEPTH_MAX: usize = 128;

pub(super) fn status(name: String, stat: &Stat) -> FileStatus {
    let is_dir = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    let len = if is_dir { 0 } else { u64::try_from(stat.st_size).unwrap_or(0) };
    // A time before 1970 counts as 1970.
    let seconds = u64::try_from(stat.st_mtime).unwrap_or(0);
    let modified_ms = seconds.saturating_mul(1000).saturating_add(stat.st_mtime_nsec / 1_000_000);
    FileStatus { name, is_dir, len, modified_ms, link: None }
}

/// The status of `name` in `dir`, or `None` if it does not exist. Links are followed; the status of
/// a link whose target is missing has the length 0.
pub(super) fn status_at(
    dir: impl AsFd,
    name: impl rustix::path::Arg + Copy,
    shown: String,
) -> rustix::io::Result<Option<FileStatus>> {
    let found = match rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => found,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        Err(errno) => return Err(errno),
    };
    if FileType::from_raw_mode(found.st_mode) != FileType::Symlink {
        return Ok(Some(status(shown, &found)));
    }
    let target = rustix::fs::readlinkat(&dir, name, Vec::new())?;
    let link = Some(target.to_string_lossy().into());
    match rustix::fs::statat(&dir, name, AtFlags::empty()) {
        Ok(followed) => Ok(Some(FileStatus { link, ..status(shown, &followed) })),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(Some(FileStatus { len: 0, link, ..status(shown, &found) })),
        Err(errno) => Err(errno),
    }
}

pub(super) fn list(root: &OwnedFd, path: &FilePath) -> Result<Vec<FileStatus>> {
    let failed = |errno| error_of(path, "list", errno);
    let dir = rustix::fs::openat(root, os_path(path), DIR_FLAGS, Mode::empty()).map_err(failed)?;
    let mut found = Vec::new();
    for entry in Dir::read_from(&dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if matches!(entry.file_name().to_bytes(), b"." | b"..") {
            continue;
        }
        // A name that is not UTF-8 is not Grampus's; listed so that the operator can find it.
        let shown = entry.file_name().to_string_lossy().into_owned();
        // A missing entry was deleted since the directory was read.
        found.extend(status_at(&dir, entry.file_name(), shown).map_err(failed)?);
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

pub(super) fn delete(root: &OwnedFd, path: &FilePath) -> Result<()> {
    if *path == FilePath::root() {
        return Err(Error::io(path, "delete", "cannot delete the root directory"));
    }
    match delete_at(root, os_path(path), 0) {
        Ok(()) | Err(Errno::NOENT | Errno::NOTDIR) => Ok(()),
        Err(errno) => Err(error_of(path, "delete", errno)),
    }
}

pub(super) fn delete_empty_dir(root: &OwnedFd, path: &FilePath) -> Result<()> {
    match rustix::fs::unlinkat(root, os_path(path), AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(error_of(path, "delete", errno)),
    }
}

fn delete_at(parent: impl AsFd, name: impl rustix::path::Arg + Copy, depth: usize) -> rustix::io::Result<()> {
    match rustix::fs::unlinkat(&parent, name, AtFlags::empty()) {
        // Linux returns ISDIR, POSIX PERM.
        Err(Errno::ISDIR | Errno::PERM) if depth < DEPTH_MAX => {}
        other => return other,
    }
    // A link to a directory was unlinked above; this opens the directory itself.
    let dir = rustix::fs::openat(&parent, name, DIR_FLAGS | OFlags::NOFOLLOW, Mode::empty())?;
    for entry in Dir::read_from(&dir)? {
        let entry = entry?;
        if matches!(entry.file_name().to_bytes(), b"." | b"..") {
            continue;
        }
        match delete_at(&dir, entry.file_name(), depth + 1) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno),
        }
    }
    rustix::fs::unlinkat(&parent, name, AtFlags::REMOVEDIR)
}
