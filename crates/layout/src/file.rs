//! Small files: read whole, replaced at once.

use bytes::Bytes;
use fs::{FilePath, FileStatus, FileSystem, Storage, Sync};

use crate::{Result, corrupt};

/// No small file is larger; keeps a damaged or foreign one from taking the memory.
const SMALL_FILE_BYTES_MAX: u64 = 16 << 20;

/// All of a file.
pub(crate) async fn read(fs: &dyn FileSystem, path: &FilePath) -> Result<Bytes> {
    read_up_to(fs, path, SMALL_FILE_BYTES_MAX).await
}

/// All of a file that has at most `bytes_max`.
pub(crate) async fn read_up_to(fs: &dyn FileSystem, path: &FilePath, bytes_max: u64) -> Result<Bytes> {
    let file = fs.open(path).await?;
    let len = file.len();
    if len > bytes_max {
        return Err(corrupt(path, format!("{len} bytes are too many for such a file")));
    }
    Ok(file.read_at(0, len as usize).await?)
}

/// Makes a file at `tmp`, which may be left from an earlier attempt, and renames it to `path`. When this returns, the
/// file is on disk; before, `path` is as it was.
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

/// Makes a file with its bytes on disk; its name is not synced.
pub(crate) async fn write(fs: &dyn FileSystem, path: &FilePath, content: Bytes) -> Result<()> {
    let mut writer = fs.create(path, Storage::Data).await?;
    if !content.is_empty() {
        writer.append(content).await?;
    }
    writer.sync(Sync::Disk).await?;
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
