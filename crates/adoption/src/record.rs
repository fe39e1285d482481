//! What a take-over changed, so that it can be repeated or rolled back: `grampus.adoption/record`.

use bytes::Bytes;
use fs::{FilePath, FileSystem};
use layout::RootDir;
use layout::ownership::ADOPTION_DIR;
use serde_json::{Value, json};

use crate::scratch::read;
use crate::{Error, Result};

const FILE: &str = "record";
const FORMAT: u64 = 1;

/// The record of a take-over. Paths are relative to the root directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AdoptionRecord {
    /// Names of the directories below `WALs` that get the suffix `-splitting`.
    pub log_dirs: Vec<String>,
    /// Names of all directories below `WALs` at the time of the inspection.
    pub known_log_dirs: Vec<String>,
    /// Directories of file lists.
    pub file_lists: Vec<String>,
    /// Directories of regions that are removed.
    pub removed_regions: Vec<String>,
    /// Tables that are adopted disabled.
    pub disabled: Vec<String>,
}

/// The directory of the record, and of everything that an undo needs.
pub fn dir(root: &RootDir) -> FilePath {
    root.path().join(ADOPTION_DIR)
}

/// Where the take-over keeps the master's own region of HBase.
pub fn kept_master_data(root: &RootDir) -> FilePath {
    dir(root).join("MasterData")
}

/// Where the take-over keeps a directory that it removed.
pub fn kept(root: &RootDir, relative: &str) -> FilePath {
    kept_dir(root).join(relative)
}

fn kept_dir(root: &RootDir) -> FilePath {
    dir(root).join("removed")
}

/// Removes the directory of what the take-over removed, durably.
///
/// # Errors
/// File system errors.
pub(crate) async fn remove_kept(fs: &dyn FileSystem, root: &RootDir) -> Result<()> {
    fs.delete(&kept_dir(root)).await?;
    Ok(fs.sync_dir(&dir(root)).await?)
}

impl AdoptionRecord {
    /// Writes the record durably.
    ///
    /// # Errors
    /// File system errors.
    pub async fn write(&self, fs: &dyn FileSystem, root: &RootDir) -> Result<()> {
        let text = format!("{:#}\n", self.to_json());
        root.write_small_file(fs, &dir(root).join(FILE), Bytes::from(text)).await?;
        Ok(fs.sync_dir(root.path()).await?)
    }

    /// Reads the record; `None` if there is none.
    ///
    /// # Errors
    /// [`Error::Refused`] for a damaged or newer record.
    pub async fn read(fs: &dyn FileSystem, root: &RootDir) -> Result<Option<AdoptionRecord>> {
        let path = dir(root).join(FILE);
        if fs.stat(&path).await?.is_none() {
            return Ok(None);
        }
        let content = read(fs, &path).await?;
        let value: Value = serde_json::from_slice(&content)
            .map_err(|error| Error::Refused(format!("{path} is damaged: {error}")))?;
        let record = AdoptionRecord::of_json(&value);
        record.map(Some).ok_or_else(|| Error::Refused(format!("{path} is damaged, or of a newer version")))
    }

    fn to_json(&self) -> Value {
        json!({
            "format": FORMAT,
            "log_dirs": self.log_dirs,
            "known_log_dirs": self.known_log_dirs,
            "file_lists": self.file_lists,
            "removed_regions": self.removed_regions,
            "disabled": self.disabled,
        })
    }

    fn of_json(value: &Value) -> Option<AdoptionRecord> {
        let list = |key: &str| -> Option<Vec<String>> {
            let entries = value.get(key)?.as_array()?.iter();
            entries.map(|entry| entry.as_str().map(String::from)).collect()
        };
        (value.get("format")?.as_u64()? == FORMAT).then_some(())?;
        Some(AdoptionRecord {
            log_dirs: list("log_dirs")?,
            known_log_dirs: list("known_log_dirs")?,
            file_lists: list("file_lists")?,
            removed_regions: list("removed_regions")?,
            disabled: list("disabled")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fs::memory::MemoryFs;

    #[tokio::test]
    async fn a_written_record_is_read_back() {
        let (fs, root) = (MemoryFs::new(), RootDir::new(FilePath::root()));
        assert_eq!(AdoptionRecord::read(&fs, &root).await.unwrap(), None);
        let record = AdoptionRecord {
            log_dirs: vec!["h,1,2".into()],
            known_log_dirs: vec!["h,1,2".into(), "h,1,1-splitting".into()],
            file_lists: vec!["data/default/t/ab/f/.filelist".into()],
            removed_regions: vec!["data/default/t/cd".into()],
            disabled: vec!["t".into()],
        };
        record.write(&fs, &root).await.unwrap();
        assert_eq!(AdoptionRecord::read(&fs, &root).await.unwrap(), Some(record));
        fs.put(&dir(&root).join(FILE), "{\"format\": 2}");
        assert!(AdoptionRecord::read(&fs, &root).await.is_err());
        fs.put(&dir(&root).join(FILE), "{\"format\": ");
        let damaged = AdoptionRecord::read(&fs, &root).await.unwrap_err().to_string();
        assert!(damaged.contains("is damaged: EOF while parsing"), "{damaged}");
    }
}
