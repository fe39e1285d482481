//! The archive: obsolete store files, retained until a cleaner finds that no snapshot and no link
//! refers to them. A file is moved there by a rename, never deleted in place.
//!
//! Source: HBase `HFileArchiver`.

use cell::region::RegionInfo;
use cell::schema::TableName;
use fs::{FilePath, FileSystem};

use crate::{Result, RootDir, corrupt, file};

impl RootDir {
    /// Removes store files of a family from a region's inventory and moves them to the archive.
    /// Files that are in the archive already stay there. On return, the move is durable.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if the archive has a different file of that name;
    /// file system errors. Another call can move the rest.
    pub async fn archive_store_files(
        &self,
        fs: &dyn FileSystem,
        region: &RegionInfo,
        family: &[u8],
        names: &[&str],
    ) -> Result<()> {
        if names.is_empty() {
            return Ok(());
        }
        self.remove_from_inventory(fs, region, family, names).await?;
        let from = self.family_dir(region, family);
        move_files(fs, &from, &self.archive_family_dir(region, family), names).await
    }

    /// Moves all store files of a family of a region to the archive and removes the family's
    /// directory. Resumes an earlier call that failed or was interrupted.
    ///
    /// # Errors
    /// As for [`RootDir::archive_store_files`].
    pub async fn archive_family(
        &self,
        fs: &dyn FileSystem,
        region: &RegionInfo,
        family: &[u8],
    ) -> Result<()> {
        let dir = self.family_dir(region, family);
        self.remove_family_from_inventory(fs, region, family).await?;
        move_all(fs, &dir, &self.archive_family_dir(region, family)).await?;
        fs.delete(&dir).await?;
        match fs.sync_dir(&dir.parent()).await {
            Err(fs::Error::NotFound { .. }) => Ok(()), // The region's directory does not exist either.
            other => Ok(other?),
        }
    }

    /// Moves the store files of a region to the archive and removes its directory.
    ///
    /// # Errors
    /// As for [`RootDir::archive_store_files`].
    pub async fn archive_region(&self, fs: &dyn FileSystem, table: &TableName, encoded: &str) -> Result<()> {
        let dir = self.table_dir(table).join(encoded);
        let archive = self.archive_region_dir(table, encoded);
        for family in file::list(fs, &dir).await? {
            // No snapshot or link can need anything in hidden directories or recovered.edits.
            if !family.is_dir || family.name.starts_with('.') || family.name == "recovered.edits" {
                continue;
            }
            move_all(fs, &dir.join(&family.name), &archive.join(&family.name)).await?;
        }
        Ok(fs.delete(&dir).await?)
    }
}

pub(crate) async fn move_all(fs: &dyn FileSystem, from: &FilePath, to: &FilePath) -> Result<()> {
    let entries = file::list(fs, from).await?;
    let names: Vec<&str> =
        entries.iter().filter(|entry| !entry.is_dir).map(|entry| entry.name.as_str()).collect();
    move_files(fs, from, to, &names).await
}

pub(crate) async fn move_files(
    fs: &dyn FileSystem,
    from: &FilePath,
    to: &FilePath,
    names: &[&str],
) -> Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    fs.make_dirs(to).await?;
    for name in names {
        move_file(fs, &from.join(name), &to.join(name)).await?;
        fs.satisfy_storage_policy(&to.join(name));
    }
    // Sync the target first: after a power loss a file may have two names, but never none.
    fs.sync_dir(to).await?;
    Ok(fs.sync_dir(from).await?)
}

async fn move_file(fs: &dyn FileSystem, from: &FilePath, to: &FilePath) -> Result<()> {
    let (source, target) = (fs.stat(from).await?, fs.stat(to).await?);
    match (source, target) {
        (None, Some(_)) => Ok(()),
        (None, None) => Err(fs::Error::NotFound { path: from.clone() }.into()),
        (Some(_), None) => Ok(fs.rename(from, to).await?),
        (Some(source), Some(target)) if source.len == target.len => {
            // As in HBase, the older file is renamed: its modification time is appended to its
            // name.
            let aside = to.parent().join(&format!("{}.{}", to.name(), target.modified_ms));
            fs.rename(to, &aside).await?;
            Ok(fs.rename(from, to).await?)
        }
        (Some(source), Some(target)) => {
            Err(corrupt(to, format!("has {} bytes, but the file to archive has {}", target.len, source.len)))
        }
    }
}
