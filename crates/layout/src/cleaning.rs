//! What may be removed from the archive.
//!
//! A file there is needed while a snapshot names it, while a link leads to it, or while a reference is to a part of it. Links
//! say so beside the file ([`crate::link`]); snapshots and references are looked through. Everything is compared by the
//! file's bare name, which is random and so the same file's wherever it is met. Invariant: what is not understood is needed.
//!
//! Not here: how long files are kept, who asks.
//!
//! Source: HBase `SnapshotHFileCleaner`, `HFileLinkCleaner`, `SnapshotFileCache`.

use std::collections::HashSet;

use fs::{FilePath, FileSystem};

use crate::link::BACK_REFERENCES;
use crate::store::StoreFileName;
use crate::{Result, RootDir, file};

/// A file in the archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchivedFile {
    /// Where it is.
    pub path: FilePath,
    // The directory of its back references.
    back_references: FilePath,
}

/// Names of files that snapshots, links and references lead to.
#[derive(Debug, Default)]
pub struct NeededFiles(HashSet<String>);

impl NeededFiles {
    /// Notes a file of a snapshot or a live store, and the file that it leads to.
    fn add(&mut self, name: &str) {
        match StoreFileName::parse(name) {
            Some(StoreFileName::Link { file, .. }) => {
                self.0.insert(file);
            }
            Some(StoreFileName::Reference { file, .. }) => self.add(&file),
            Some(StoreFileName::Own { .. }) | None => {}
        }
        self.0.insert(name.to_string());
    }

    /// Whether an archived file is needed. One that stepped aside for another of its name has a time behind its own.
    pub fn has(&self, file: &ArchivedFile) -> bool {
        let name = file.path.name();
        let is_aside =
            |(own, time): &(&str, &str)| !own.is_empty() && time.bytes().all(|byte| byte.is_ascii_digit());
        let own = name.rsplit_once('.').filter(is_aside).map(|(own, _)| own);
        self.0.contains(name) || own.is_some_and(|own| self.0.contains(own))
    }
}

impl RootDir {
    /// The store files in the archive.
    ///
    /// # Errors
    /// What the file system said.
    pub async fn archived_files(&self, fs: &dyn FileSystem) -> Result<Vec<ArchivedFile>> {
        let mut files = Vec::new();
        for dir in families_below(fs, &self.archive_dir().join("data")).await? {
            for entry in file::list(fs, &dir).await?.into_iter().filter(|entry| !entry.is_dir) {
                let back_references = dir.join(&format!("{BACK_REFERENCES}{}", entry.name));
                files.push(ArchivedFile { path: dir.join(&entry.name), back_references });
            }
        }
        Ok(files)
    }

    /// The files that snapshots have, and those that links and references in tables lead to.
    ///
    /// # Errors
    /// What the file system said, or a snapshot that cannot be read: then nothing may be removed.
    pub async fn needed_files(&self, fs: &dyn FileSystem) -> Result<NeededFiles> {
        let mut needed = NeededFiles::default();
        for snapshot in self.snapshot_names(fs).await? {
            if !self.has_files(fs, &snapshot).await? {
                continue;
            }
            for region in self.read_snapshot(fs, &snapshot).await?.regions {
                let files = region.families.iter().flat_map(|(_, files)| files);
                files.for_each(|file| needed.add(&file.name));
            }
        }
        for data in [self.data_dir(), self.tmp_dir().join("data")] {
            for dir in families_below(fs, &data).await? {
                let entries = file::list(fs, &dir).await?;
                entries.iter().filter(|entry| !entry.is_dir).for_each(|entry| needed.add(&entry.name));
            }
        }
        Ok(needed)
    }

    /// Removes a file of the archive that nobody needs, and what says who linked to it.
    ///
    /// # Errors
    /// What the file system said.
    pub async fn remove_archived(&self, fs: &dyn FileSystem, file: &ArchivedFile) -> Result<()> {
        fs.delete(&file.path).await?;
        Ok(fs.delete(&file.back_references).await?)
    }

    /// The logs that nobody needs any more.
    ///
    /// # Errors
    /// What the file system said.
    pub async fn old_logs(&self, fs: &dyn FileSystem) -> Result<Vec<FilePath>> {
        let dir = self.old_wals_dir();
        let entries = file::list(fs, &dir).await?;
        Ok(entries.iter().filter(|entry| !entry.is_dir).map(|entry| dir.join(&entry.name)).collect())
    }
}

/// The directories of families below `data/<namespace>/<table>/<region>`.
async fn families_below(fs: &dyn FileSystem, data: &FilePath) -> Result<Vec<FilePath>> {
    let mut dirs = vec![data.clone()];
    for _ in ["namespace", "table", "region", "family"] {
        let mut below = Vec::new();
        for dir in &dirs {
            let entries = file::list(fs, dir).await?.into_iter();
            below.extend(
                entries
                    .filter(|entry| entry.is_dir && !entry.name.starts_with('.'))
                    .map(|e| dir.join(&e.name)),
            );
        }
        dirs = below;
    }
    Ok(dirs)
}
