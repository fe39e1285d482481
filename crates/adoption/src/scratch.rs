//! Copies parts of a root directory into memory, where logs can be replayed without a change of the
//! directory.

use fs::memory::MemoryFs;
use fs::{FilePath, FileStatus, FileSystem};

use crate::Result;

/// Bytes read at a time.
const PIECE_BYTES: u64 = 4 << 20;

/// The entries of a directory; none if it does not exist.
pub(crate) async fn list(fs: &dyn FileSystem, dir: &FilePath) -> fs::Result<Vec<FileStatus>> {
    match fs.list(dir).await {
        Err(fs::Error::NotFound { .. }) => Ok(Vec::new()),
        listed => listed,
    }
}

/// All files and directories below `dir`, parents first.
///
/// # Errors
/// File system errors.
pub async fn walk(fs: &dyn FileSystem, dir: &FilePath) -> Result<Vec<(FilePath, FileStatus)>> {
    let mut found = Vec::new();
    let mut pending = vec![dir.clone()];
    while let Some(dir) = pending.pop() {
        for status in list(fs, &dir).await? {
            let path = dir.join(&status.name);
            if status.is_dir {
                pending.push(path.clone());
            }
            found.push((path, status));
        }
    }
    found.sort_by(|one, other| one.0.as_str().cmp(other.0.as_str()));
    Ok(found)
}

/// Copies the tree at `from` of a file system to `to` in memory. `wanted` selects the files.
///
/// # Errors
/// Errors of reading.
pub async fn copy_tree(
    fs: &dyn FileSystem,
    from: &FilePath,
    memory: &MemoryFs,
    to: &FilePath,
    wanted: impl Fn(&FilePath) -> bool,
) -> Result<()> {
    memory.make_dirs(to).await?;
    for (path, status) in walk(fs, from).await? {
        let Some(relative) = path.as_str().strip_prefix(from.as_str()) else { continue };
        let target = to.join(relative.trim_start_matches('/'));
        match status.is_dir {
            true => memory.make_dirs(&target).await?,
            false if wanted(&path) => memory.put(&target, read(fs, &path).await?),
            false => {}
        }
    }
    Ok(())
}

/// The contents of a file.
///
/// # Errors
/// Errors of reading.
pub async fn read(fs: &dyn FileSystem, path: &FilePath) -> Result<Vec<u8>> {
    let reader = fs.open(path).await?;
    // The length is not reserved at once: that of an open file on HDFS is what a DataNode claims.
    let mut content = Vec::with_capacity(reader.len().min(PIECE_BYTES) as usize);
    while (content.len() as u64) < reader.len() {
        let len = (reader.len() - content.len() as u64).min(PIECE_BYTES) as usize;
        content.extend_from_slice(&reader.read_at(content.len() as u64, len).await?);
    }
    Ok(content)
}
