//! Snapshots of layout version 1, which HBase wrote before 0.99 and still reads: a tree of
//! directories like that of a table, in place of a manifest.
//!
//! ```text
//! .hbase-snapshot/<name>/.snapshotinfo                       its version is 0
//!                       /.tabledesc/.tableinfo.<sequence>    the table
//!                       /<region>/.regioninfo                a region
//!                       /<region>/<family>/<file>            empty, or the content of a reference
//! ```
//!
//! The region of MOB files is one of the regions. Nothing in the tree has the size of a file.
//!
//! Source: HBase `SnapshotManifestV1`.

use bytes::Bytes;
use cell::region::RegionInfo;
use fs::{FilePath, FileStatus, FileSystem};

use super::{Manifest, SnapshotFile, SnapshotRegion};
use crate::reference::Reference;
use crate::store::{StoreFileName, check_family};
use crate::{Result, corrupt, descriptor, file, region};

/// Reads the tree in the directory of a snapshot; `None` if the directory has no table descriptor.
///
/// # Errors
/// [`Error::Corrupt`](crate::Error::Corrupt) for a region of another table, a directory that is no
/// region, or a name of no store file.
pub(super) async fn read(fs: &dyn FileSystem, dir: &FilePath) -> Result<Option<Manifest>> {
    let Some(table) = descriptor::read_in(fs, dir).await? else { return Ok(None) };
    let mut regions = Vec::new();
    for entry in visible_dirs(fs, dir).await? {
        let region_dir = dir.join(&entry.name);
        let info = region::read_info(fs, &region_dir).await?;
        let info = info.ok_or_else(|| corrupt(&region_dir, "has no .regioninfo"))?;
        if info.table != table.name {
            let what = format!("is a region of {} in a snapshot of {}", info.table, table.name);
            return Err(corrupt(&region_dir, what));
        }
        regions.push(read_region(fs, &region_dir, info).await?);
    }
    regions.sort_by(|left, right| left.info.start_key.cmp(&right.info.start_key));
    Ok(Some(Manifest { table, regions }))
}

async fn read_region(fs: &dyn FileSystem, dir: &FilePath, info: RegionInfo) -> Result<SnapshotRegion> {
    let mut families = Vec::new();
    for entry in visible_dirs(fs, dir).await?.into_iter().filter(|entry| !is_edits(entry)) {
        let family_dir = dir.join(&entry.name);
        check_family(&family_dir, entry.name.as_bytes())?;
        let mut files = Vec::new();
        for entry in file::list(fs, &family_dir).await?.into_iter().filter(|entry| !entry.is_dir) {
            files.push(read_file(fs, &family_dir.join(&entry.name)).await?);
        }
        files.sort_by(|left, right| left.name.cmp(&right.name));
        families.push((Bytes::from(entry.name), files));
    }
    Ok(SnapshotRegion { info, families })
}

async fn read_file(fs: &dyn FileSystem, path: &FilePath) -> Result<SnapshotFile> {
    let name = path.name().to_string();
    let reference = match StoreFileName::parse(&name) {
        Some(StoreFileName::Own { .. } | StoreFileName::Link { .. }) => None,
        Some(StoreFileName::Reference { .. }) => Some(Reference::decode(path, &file::read(fs, path).await?)?),
        None => return Err(corrupt(path, "is not a valid store file name")),
    };
    Ok(SnapshotFile { name, len: None, reference })
}

/// Edits that HBase before 0.96 kept in a region's directory. They were in logs then, and a
/// snapshot does not contain logs.
fn is_edits(entry: &FileStatus) -> bool {
    entry.name == region::RECOVERED_EDITS
}

/// The directories in `dir` that are regions or families, sorted by name.
async fn visible_dirs(fs: &dyn FileSystem, dir: &FilePath) -> Result<Vec<FileStatus>> {
    let mut entries = file::list(fs, dir).await?;
    entries.retain(|entry| entry.is_dir && !entry.name.starts_with('.'));
    entries.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(entries)
}
