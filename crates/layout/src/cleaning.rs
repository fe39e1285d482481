//! Finds the files in the archive that may be removed.
//!
//! An archived file is needed while a snapshot names it, a link points to it, or a reference covers
//! a part of it. A link has a back reference next to the archived file ([`crate::link`]); snapshots
//! and references are searched. Files are compared by their bare names, which are random and
//! therefore unique in every directory. Invariant: what cannot be parsed counts as needed.
//!
//! How long files are retained, and when cleaning runs, is decided elsewhere.
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
    /// The file's path.
    pub path: FilePath,
    // The directory of its back references.
    back_references: FilePath,
}

impl ArchivedFile {
    pub(crate) fn at(path: FilePath) -> ArchivedFile {
        let back_references = path.parent().join(&format!("{BACK_REFERENCES}{}", path.name()));
        ArchivedFile { path, back_references }
    }
}

/// Names of files that snapshots, links and references refer to.
#[derive(Debug, Default)]
pub struct NeededFiles(HashSet<String>);

impl NeededFiles {
    /// Adds a file of a snapshot or a live store, and the file that it refers to.
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

    /// Whether an archived file is needed. A file that was renamed for a newer one of its name has
    /// a time appended to its name.
    pub fn contains(&self, file: &ArchivedFile) -> bool {
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
    /// File system errors.
    pub async fn archived_files(&self, fs: &dyn FileSystem) -> Result<Vec<ArchivedFile>> {
        let mut files = Vec::new();
        for dir in families_below(fs, &self.archive_dir().join("data")).await? {
            for entry in file::list(fs, &dir).await?.into_iter().filter(|entry| !entry.is_dir) {
                files.push(ArchivedFile::at(dir.join(&entry.name)));
            }
        }
        Ok(files)
    }

    /// The files of all snapshots, and the files that links and references in tables refer to.
    ///
    /// # Errors
    /// File system errors, or an unreadable snapshot. In both cases nothing may be removed.
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
        for data in [self.data_dir(), self.tmp_dir().join("data"), self.mob_data_dir()] {
            for dir in families_below(fs, &data).await? {
                let entries = file::list(fs, &dir).await?;
                entries.iter().filter(|entry| !entry.is_dir).for_each(|entry| needed.add(&entry.name));
            }
        }
        Ok(needed)
    }

    /// Removes an archived file that is not needed, and its back references.
    ///
    /// # Errors
    /// File system errors.
    pub async fn remove_archived(&self, fs: &dyn FileSystem, file: &ArchivedFile) -> Result<()> {
        let archive = self.archive_dir().join("data");
        assert!(file.path.as_str().starts_with(archive.as_str()), "only files of the archive are removed");
        fs.delete(&file.path).await?;
        Ok(fs.delete(&file.back_references).await?)
    }

    /// The write-ahead logs that are no longer needed.
    ///
    /// # Errors
    /// File system errors.
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
