//! The volumes that the database has had, as a file in the home.
//!
//! If a disk is not mounted, its directory exists and is empty. Without this list, it would become
//! a new volume on the disk below, and its files would be hidden when the disk is mounted again.

use std::collections::BTreeMap;
use std::sync::Arc;

use fs::{AccessPattern, Error, FilePath, FileSystem, Result, SyncLevel};

use crate::volume::Volume;

/// The file: for each volume a line with its id, a space, and its directory.
const FILE: &str = "grampus.volumes";
/// A longer file is not one of ours: it would have thousands of volumes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The volumes that the database has had, by directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownVolumes {
    ids: BTreeMap<String, String>,
}

impl KnownVolumes {
    /// Reads the list; empty if there is none.
    ///
    /// # Errors
    /// Errors of the home, and [`Error::Io`] if the file is damaged.
    pub async fn read(home: &dyn FileSystem) -> Result<KnownVolumes> {
        let path = FilePath::new(FILE);
        if home.stat(&path).await?.is_none() {
            return Ok(KnownVolumes::default());
        }
        let damaged = || Error::io(&path, "read", "is damaged; each line should be an id and a directory");
        let reader = home.open(&path).await?;
        let len = Some(reader.len()).filter(|len| *len <= FILE_BYTES_MAX).ok_or_else(damaged)?;
        let bytes = reader.read_at(0, len as usize).await?;
        let text = std::str::from_utf8(&bytes).map_err(|_| damaged())?;
        let line = |line: &str| line.split_once(' ').map(|(id, dir)| (dir.to_owned(), id.to_owned()));
        let ids = text.lines().map(|text| line(text).ok_or_else(damaged)).collect::<Result<_>>()?;
        Ok(KnownVolumes { ids })
    }

    /// Whether a directory has been a volume.
    pub fn contains(&self, directory: &str) -> bool {
        self.ids.contains_key(directory)
    }

    /// Adds volumes, and makes the list durable if it has changed.
    pub(crate) async fn add(mut self, home: &dyn FileSystem, volumes: &[&Arc<Volume>]) -> Result<()> {
        let before = self.clone();
        let entries = volumes.iter().map(|volume| (volume.directory().to_string(), volume.id().to_owned()));
        self.ids.extend(entries);
        if self == before {
            return Ok(());
        }
        write_file(home, FILE, self.text()).await
    }

    /// The content of the file.
    pub(crate) fn text(&self) -> String {
        self.ids.iter().map(|(directory, id)| format!("{id} {directory}\n")).collect()
    }
}

/// Writes a small file in the root directory, durably. A reader finds the old text or the new one.
pub(crate) async fn write_file(fs: &dyn FileSystem, name: &str, text: String) -> Result<()> {
    let (unfinished, path) = (FilePath::new(&format!("{name}.new")), FilePath::new(name));
    fs.delete(&unfinished).await?;
    let mut writer = fs.create(&unfinished, AccessPattern::Data).await?;
    writer.append(text.into()).await?;
    writer.sync(SyncLevel::Disk).await?;
    writer.close().await?;
    fs.rename(&unfinished, &path).await?;
    fs.sync_dir(&FilePath::root()).await
}
