//! Small files: read as a whole, replaced atomically.

use bytes::Bytes;
use fs::{AccessPattern, FilePath, FileStatus, FileSystem, SyncLevel};

use crate::{Result, corrupt};

/// Maximum size of a small file; prevents a corrupt or foreign file from exhausting memory.
const SMALL_FILE_BYTES_MAX: u64 = 16 << 20;

/// Reads a whole file.
pub(crate) async fn read(fs: &dyn FileSystem, path: &FilePath) -> Result<Bytes> {
    read_up_to(fs, path, SMALL_FILE_BYTES_MAX).await
}

/// Reads a whole file of at most `bytes_max` bytes.
pub(crate) async fn read_up_to(fs: &dyn FileSystem, path: &FilePath, bytes_max: u64) -> Result<Bytes> {
    let file = fs.open(path).await?;
    let len = file.len();
    if len > bytes_max {
        return Err(corrupt(path, format!("file is too large ({len} bytes)")));
    }
    Ok(file.read_at(0, len as usize).await?)
}

/// Creates a file at `tmp`, replacing any leftover of an earlier attempt, and renames it to `path`.
/// On return, the file is durable. Until then `path` is unchanged.
pub(crate) async fn replace(
    fs: &dyn FileSystem,
    tmp: &FilePath,
    path: &FilePath,
    content: Bytes,
) -> Result<()> {
    fs.delete(tmp).await?;
    write(fs, tmp, content).await?;
    fs.rename(tmp, path).await?;
    fs.sync_dir(&path.parent()).await?;
    if tmp.parent() != path.parent() {
        fs.sync_dir(&tmp.parent()).await?;
    }
    Ok(())
}

/// Creates a file with durable contents; its directory entry is not synced.
pub(crate) async fn write(fs: &dyn FileSystem, path: &FilePath, content: Bytes) -> Result<()> {
    let mut writer = fs.create(path, AccessPattern::Data).await?;
    if !content.is_empty() {
        writer.append(content).await?;
    }
    writer.sync(SyncLevel::Disk).await?;
    Ok(writer.close().await?)
}

/// The entries of a directory; none if it does not exist.
pub(crate) async fn list(fs: &dyn FileSystem, dir: &FilePath) -> Result<Vec<FileStatus>> {
    match fs.list(dir).await {
        Ok(entries) => Ok(entries),
        Err(fs::Error::NotFound { .. }) => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}
