//! The HFiles of a directory.

use std::collections::BTreeSet;

use bytes::Bytes;
use cell::schema::{Compression, TableDescriptor};
use fs::{FilePath, FileSystem};
use hfile::{OpenOptions, Reader};

/// A file to load.
#[derive(Clone, Debug)]
pub(super) struct FoundFile {
    pub(super) family: Bytes,
    pub(super) path: FilePath,
    pub(super) bytes: u64,
    pub(super) first_row: Bytes,
    pub(super) last_row: Bytes,
    pub(super) compression: Compression,
}

/// The files of `dir`: `FAMILY/FILE`. As in HBase, names that start with `_` or `.` are skipped,
/// and files without cells, too.
///
/// # Errors
/// A one-line message; a file that is not an HFile is an error.
pub(super) async fn find(fs: &dyn FileSystem, dir: &FilePath) -> Result<Vec<FoundFile>, String> {
    let mut found = Vec::new();
    for family in visible(fs, dir).await?.into_iter().filter(|entry| entry.is_dir) {
        let family_dir = dir.join(&family.name);
        for file in visible(fs, &family_dir).await?.into_iter().filter(|entry| !entry.is_dir) {
            let family = family.name.clone().into();
            found.extend(describe(fs, family, family_dir.join(&file.name)).await?);
        }
    }
    Ok(found)
}

/// Opens a file. `None` if it has no cells.
///
/// # Errors
/// A one-line message.
pub(super) async fn describe(
    fs: &dyn FileSystem,
    family: Bytes,
    path: FilePath,
) -> Result<Option<FoundFile>, String> {
    let reader = Reader::open(fs, &path, 0, OpenOptions::default()).await;
    let reader = reader.map_err(|error| format!("/{path}: not a readable HFile: {error}"))?;
    let (Some(first), Some(last)) = (reader.first_row(), reader.last_row()) else { return Ok(None) };
    Ok(Some(FoundFile {
        family,
        bytes: reader.len(),
        first_row: Bytes::copy_from_slice(first),
        last_row: Bytes::copy_from_slice(last),
        compression: reader.trailer().compression,
        path,
    }))
}

/// Removes files whose directory is not a family of the table. Returns the names of these
/// directories.
pub(super) fn remove_unmatched(files: &mut Vec<FoundFile>, table: &TableDescriptor) -> Vec<String> {
    let is_family = |file: &FoundFile| table.families.contains_key(&file.family);
    let unmatched: BTreeSet<String> = files
        .iter()
        .filter(|file| !is_family(file))
        .map(|file| file.family.escape_ascii().to_string())
        .collect();
    files.retain(is_family);
    unmatched.into_iter().collect()
}

async fn visible(fs: &dyn FileSystem, dir: &FilePath) -> Result<Vec<fs::FileStatus>, String> {
    let mut entries = fs.list(dir).await.map_err(|error| format!("/{error}"))?;
    entries.retain(|entry| !entry.name.starts_with(['_', '.']));
    Ok(entries)
}
