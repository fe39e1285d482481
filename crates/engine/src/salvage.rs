//! Lets a region open without damaged or missing files, once an operator has accepted the loss.

use cell::region::RegionInfo;
use cell::schema::TableDescriptor;
use fs::{FilePath, FileStatus, FileSystem};
use layout::RootDir;
use layout::store::{StoreFileName, check_family};
use tracing::warn;

use crate::error::{Error, Result};
use crate::region::open_listed;

/// Moves the store files of a closed region that cannot be opened to the same path below `corrupt`,
/// and forgets which files are missing. Returns the paths of both. A file that can be opened stays,
/// even with damaged blocks, because its other rows are served.
///
/// # Errors
/// Those of the file system. A repeated call continues where the failed one stopped.
pub async fn accept_loss(
    fs: &dyn FileSystem,
    root: &RootDir,
    info: &RegionInfo,
    table: &TableDescriptor,
) -> Result<Vec<FilePath>> {
    root.write_region_info(fs, info).await?;
    let mut lost = missing_files(fs, root, info, table).await?;
    for family in table.families.keys() {
        let dir = root.family_dir(info, family);
        for status in files_in(fs, &dir).await? {
            let path = dir.join(&status.name);
            if can_be_opened(fs, root, info, family, status).await? {
                continue;
            }
            set_aside(fs, root, &path).await?;
            if !lost.contains(&path) {
                lost.push(path);
            }
        }
    }
    root.write_inventory(fs, info, None).await?;
    Ok(lost)
}

/// The files of the inventory that are missing or empty.
async fn missing_files(
    fs: &dyn FileSystem,
    root: &RootDir,
    info: &RegionInfo,
    table: &TableDescriptor,
) -> Result<Vec<FilePath>> {
    let mut missing = Vec::new();
    let Some(inventory) = root.read_inventory(fs, info).await? else { return Ok(missing) };
    for family in table.families.keys() {
        check_family(&root.region_dir(info), family)?;
        let dir = root.family_dir(info, family);
        for name in inventory.of_family(family) {
            let path = dir.join(name);
            if fs.stat(&path).await?.is_none_or(|status| status.len == 0 && !may_be_empty(name)) {
                missing.push(path);
            }
        }
    }
    Ok(missing)
}

/// Whether an empty file is valid: the name of a link contains everything.
fn may_be_empty(name: &str) -> bool {
    matches!(StoreFileName::parse(name), Some(StoreFileName::Link { .. }))
}

async fn files_in(fs: &dyn FileSystem, dir: &FilePath) -> Result<Vec<FileStatus>> {
    match fs.list(dir).await {
        Ok(entries) => Ok(entries.into_iter().filter(|entry| !entry.is_dir).collect()),
        Err(fs::Error::NotFound { .. }) => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}

/// Whether a file can be opened, or is not a store file at all.
async fn can_be_opened(
    fs: &dyn FileSystem,
    root: &RootDir,
    info: &RegionInfo,
    family: &[u8],
    status: FileStatus,
) -> Result<bool> {
    let is_empty = status.len == 0;
    let name = StoreFileName::parse(&status.name);
    let opened = match root.describe_store_file(fs, info, family, status).await {
        Ok(Some(listed)) => open_listed(fs, root, None, info, family, &listed).await.map(|_| true),
        Ok(None) => Ok(!(is_empty && matches!(name, Some(StoreFileName::Own { .. })))),
        Err(error) => Err(error.into()),
    };
    match opened {
        Err(Error::Corrupt { .. }) => Ok(false),
        other => other,
    }
}

async fn set_aside(fs: &dyn FileSystem, root: &RootDir, path: &FilePath) -> Result<()> {
    let below_root = path.as_str().strip_prefix(root.path().as_str()).unwrap_or(path.as_str());
    let aside = root.corrupt_dir().join(below_root.trim_start_matches('/'));
    warn!(file = %path, %aside, "moving a damaged store file aside; its rows are lost");
    fs.make_dirs(&aside.parent()).await?;
    fs.rename(path, &aside).await?;
    fs.sync_dir(&aside.parent()).await?;
    Ok(fs.sync_dir(&path.parent()).await?)
}
