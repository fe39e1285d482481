//! The archive: store files that nobody needs any more, kept until a cleaner finds that no snapshot and no link has
//! them. A file is moved there by a rename, never deleted in place.
//!
//! Source: HBase `HFileArchiver`.

use cell::region::RegionInfo;
use cell::schema::TableName;
use fs::{FilePath, FileSystem};

use crate::{Result, RootDir, corrupt, file};

impl RootDir {
    /// Takes store files of a family out of a region's inventory and moves them to the archive; those that are there
    /// already stay there. When this returns, they are there even after a power cut.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if the archive has another file of that name; what the file system
    /// said. The rest can be moved by another call.
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
        self.forget_files(fs, region, family, names).await?;
        let from = self.family_dir(region, family);
        move_files(fs, &from, &self.archive_family_dir(region, family), names).await
    }

    /// Moves all store files of a family of a region to the archive and removes the family's directory. Done already, in
    /// part or in whole: goes on from there.
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
        self.forget_family(fs, region, family).await?;
        move_all(fs, &dir, &self.archive_family_dir(region, family)).await?;
        fs.delete(&dir).await?;
        match fs.sync_dir(&dir.parent()).await {
            Err(fs::Error::NotFound { .. }) => Ok(()), // The region is gone too.
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
            // Hidden directories and recovered.edits hold nothing that a snapshot or a link could need.
            if !family.is_dir || family.name.starts_with('.') || family.name == "recovered.edits" {
                continue;
            }
            move_all(fs, &dir.join(&family.name), &archive.join(&family.name)).await?;
        }
        Ok(fs.delete(&dir).await?)
    }
}

async fn move_all(fs: &dyn FileSystem, from: &FilePath, to: &FilePath) -> Result<()> {
    let entries = file::list(fs, from).await?;
    let names: Vec<&str> =
        entries.iter().filter(|entry| !entry.is_dir).map(|entry| entry.name.as_str()).collect();
    move_files(fs, from, to, &names).await
}

async fn move_files(fs: &dyn FileSystem, from: &FilePath, to: &FilePath, names: &[&str]) -> Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    fs.make_dirs(to).await?;
    for name in names {
        move_file(fs, &from.join(name), &to.join(name)).await?;
    }
    // First where they are needed: a file may for a moment have two names, never none.
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
            // As HBase does it: the one that was there first steps aside under its time.
            let aside = to.parent().join(&format!("{}.{}", to.name(), target.modified_ms));
            fs.rename(to, &aside).await?;
            Ok(fs.rename(from, to).await?)
        }
        (Some(source), Some(target)) => {
            Err(corrupt(to, format!("has {} bytes, the file to be put there {}", target.len, source.len)))
        }
    }
}
