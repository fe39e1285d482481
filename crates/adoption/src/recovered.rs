//! What HBase's log splitting left in the directory of a region, to be replayed when it opens.

use cell::region::RegionInfo;
use fs::{FilePath, FileSystem};
use layout::RootDir;

use crate::Result;
use crate::scratch::{list, walk};

/// The number of files with edits in `recovered.edits`. Its other files have sequence ids.
///
/// # Errors
/// File system errors.
pub(crate) async fn count_edits(fs: &dyn FileSystem, root: &RootDir, region: &RegionInfo) -> Result<u64> {
    let files = list(fs, &root.recovered_edits_dir(region)).await?;
    let is_edits = |name: &str| name.trim_start_matches('-').parse::<u64>().is_ok();
    Ok(files.iter().filter(|entry| is_edits(&entry.name)).count() as u64)
}

/// The directory of store files that were split from logs (`hbase.wal.split.to.hfile`), if it has
/// any.
///
/// # Errors
/// File system errors.
pub(crate) async fn hfiles(
    fs: &dyn FileSystem,
    root: &RootDir,
    region: &RegionInfo,
) -> Result<Option<FilePath>> {
    let dir = root.region_dir(region).join("recovered.hfiles");
    let has_files = walk(fs, &dir).await?.iter().any(|(_, entry)| !entry.is_dir);
    Ok(has_files.then_some(dir))
}
