//! The archive: obsolete store files, retained until a cleaner finds that no snapshot and no link
//! refers to them. A file is moved there by a rename, never deleted in place.
//!
//! Source: HBase `HFileArchiver`.

use std::collections::HashMap;

use cell::region::RegionInfo;
use cell::schema::TableName;
use fs::{FilePath, FileSystem};

use crate::{Result, RootDir, corrupt, file, region};

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
        self.archive_files_of_region(fs, table, encoded).await?;
        Ok(fs.delete(&self.table_dir(table).join(encoded)).await?)
    }

    /// Moves the store files of a region to the archive. Its directory stays, and is marked before
    /// the first file moves: otherwise the region could be opened without its files.
    pub(crate) async fn archive_files_of_region(
        &self,
        fs: &dyn FileSystem,
        table: &TableName,
        encoded: &str,
    ) -> Result<()> {
        let dir = self.table_dir(table).join(encoded);
        let archive = self.archive_region_dir(table, encoded);
        let mut families = Vec::new();
        for family in families_in(fs, &dir).await? {
            let names = files_in(fs, &dir.join(&family)).await?;
            if !names.is_empty() {
                // A full disk must not prevent the move once the region is marked.
                fs.make_dirs(&archive.join(&family)).await?;
                families.push((family, names));
            }
        }
        region::mark_archiving(fs, &dir).await?;
        for (family, names) in &families {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            move_files(fs, &dir.join(family), &archive.join(family), &names).await?;
        }
        Ok(())
    }
}

/// The families in a region's directory whose files are archived: no snapshot or link can need
/// anything in hidden directories or `recovered.edits`.
async fn families_in(fs: &dyn FileSystem, region_dir: &FilePath) -> Result<Vec<String>> {
    let entries = file::list(fs, region_dir).await?.into_iter();
    let families = entries
        .filter(|entry| entry.is_dir && !entry.name.starts_with('.') && entry.name != "recovered.edits");
    Ok(families.map(|entry| entry.name).collect())
}

/// Checks that `archive` has no different files with the names of those in the directory of a
/// region.
pub(crate) async fn check_region_archive(
    fs: &dyn FileSystem,
    region_dir: &FilePath,
    archive: &FilePath,
) -> Result<()> {
    for family in families_in(fs, region_dir).await? {
        let to = archive.join(&family);
        let archived = file::list(fs, &to).await?.into_iter();
        let archived: HashMap<String, u64> = archived.map(|entry| (entry.name, entry.len)).collect();
        for entry in file::list(fs, &region_dir.join(&family)).await? {
            match archived.get(&entry.name) {
                Some(len) if !entry.is_dir && *len != entry.len => {
                    return Err(conflict(&to.join(&entry.name), *len, entry.len));
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// The archive has another file of this name.
fn conflict(archived: &FilePath, archived_len: u64, len: u64) -> crate::Error {
    corrupt(archived, format!("has {archived_len} bytes, but the file to archive has {len}"))
}

pub(crate) async fn move_all(fs: &dyn FileSystem, from: &FilePath, to: &FilePath) -> Result<()> {
    let names = files_in(fs, from).await?;
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    move_files(fs, from, to, &names).await
}

/// The names of the files in a directory.
async fn files_in(fs: &dyn FileSystem, dir: &FilePath) -> Result<Vec<String>> {
    let entries = file::list(fs, dir).await?.into_iter();
    Ok(entries.filter(|entry| !entry.is_dir).map(|entry| entry.name).collect())
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

/// Moves a file or directory that neither HBase nor this project has created. If its new name is in
/// use, a number is appended. Does nothing if `from` does not exist.
pub(crate) async fn move_unknown(fs: &dyn FileSystem, from: &FilePath, to: &FilePath) -> Result<()> {
    let dir = to.parent();
    fs.make_dirs(&dir).await?;
    let (mut free, mut number) = (to.clone(), 0);
    while fs.stat(&free).await?.is_some() {
        number += 1;
        free = dir.join(&format!("{}.{number}", to.name()));
    }
    match fs.rename(from, &free).await {
        Ok(()) => {}
        Err(fs::Error::NotFound { .. }) => return Ok(()),
        Err(error) => return Err(error.into()),
    }
    fs.sync_dir(&dir).await?;
    Ok(fs.sync_dir(&from.parent()).await?)
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
        (Some(source), Some(target)) => Err(conflict(to, target.len, source.len)),
    }
}
