//! The record of a bulk load that is moving files into a region. It makes a load of several
//! families atomic: after a crash, the load is completed or rolled back.
//!
//! The record is the file `.bulk_load` in the region's directory. It is written before the first
//! file is moved, and removed when the load is complete and in the log. HBase ignores it.
//!
//! ```text
//! u32 length
//! message {1 value of the log marker, 2* file {1 family, 2 name, 3 origin}}
//! u32 crc32c
//! ```
//!
//! All integers are big-endian. A file without an origin is a copy.

use std::collections::{BTreeMap, HashSet};

use base::checksum::crc32c;
use bytes::{BufMut, Bytes, BytesMut};
use cell::region::RegionInfo;
use fs::{FilePath, FileSystem};
use prost::Message;
use tracing::info;

use crate::store::{StoreFileName, family_dir_name};
use crate::tracker::{StoreDir, StoreFileTracker};
use crate::{Error, Result, RootDir, corrupt, file};

/// The name of the record in the directory of its region.
const RECORD: &str = ".bulk_load";

/// A bulk load that is moving files into a region.
#[derive(Clone, PartialEq, Message)]
pub struct BulkLoadRecord {
    /// The value of the marker that the log gets.
    #[prost(bytes = "bytes", tag = "1")]
    pub event: Bytes,
    /// The files.
    #[prost(message, repeated, tag = "2")]
    pub files: Vec<LoadedFile>,
}

/// A file of a bulk load.
#[derive(Clone, PartialEq, Message)]
pub struct LoadedFile {
    /// The family.
    #[prost(bytes = "bytes", tag = "1")]
    pub family: Bytes,
    /// The final name.
    #[prost(string, tag = "2")]
    pub name: String,
    /// The path from which the file is moved, in the file system of the root directory. `None` for
    /// a copy, which is removed if the load is rolled back.
    #[prost(string, optional, tag = "3")]
    pub origin: Option<String>,
}

/// The result of [`RootDir::settle_bulk_load`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settled {
    /// There was no load, or it was rolled back.
    Nothing,
    /// All files are in their stores. The log must get a marker with this value, and the record
    /// must then be removed.
    Complete(Bytes),
}

impl RootDir {
    /// Whether a bulk load of the region has not been completed or rolled back.
    ///
    /// # Errors
    /// File system errors.
    pub async fn has_bulk_load(&self, fs: &dyn FileSystem, region: &RegionInfo) -> Result<bool> {
        Ok(fs.stat(&self.bulk_load_record(region)).await?.is_some())
    }

    /// Records a bulk load. On return, the record is durable.
    ///
    /// # Errors
    /// File system errors; it is then unknown whether there is a record.
    pub async fn write_bulk_load(
        &self,
        fs: &dyn FileSystem,
        region: &RegionInfo,
        record: &BulkLoadRecord,
    ) -> Result<()> {
        let (path, tmp_dir) = (self.bulk_load_record(region), self.region_tmp_dir(region));
        fs.make_dirs(&tmp_dir).await?;
        file::replace(fs, &tmp_dir.join(RECORD), &path, encode(record)).await
    }

    /// Removes the record of a complete or rolled-back bulk load, durably.
    ///
    /// # Errors
    /// File system errors.
    pub async fn remove_bulk_load(&self, fs: &dyn FileSystem, region: &RegionInfo) -> Result<()> {
        fs.delete(&self.bulk_load_record(region)).await?;
        Ok(fs.sync_dir(&self.region_dir(region)).await?)
    }

    /// Settles a bulk load that a crash interrupted. It is complete if all files are in their
    /// stores. Otherwise, the files are moved back. Called before the region's stores are opened.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for a damaged record; file system errors.
    pub async fn settle_bulk_load(
        &self,
        fs: &dyn FileSystem,
        tracker: &dyn StoreFileTracker,
        region: &RegionInfo,
        now_ms: u64,
    ) -> Result<Settled> {
        let Some(record) = self.read_bulk_load(fs, region).await? else { return Ok(Settled::Nothing) };
        let mut is_complete = true;
        for (family, names) in files_by_family(&record) {
            let store = StoreDir { fs, root: self, region, family };
            // A family that was removed since has no directory; its files are in the archive.
            if fs.stat(&self.family_dir(region, family)).await?.is_none() {
                continue;
            }
            let present = tracker.load(store).await?;
            let present: HashSet<&str> = present.iter().map(|file| file.path.name()).collect();
            is_complete &= names.iter().all(|name| present.contains(name));
        }
        let dir = self.region_dir(region);
        if is_complete {
            info!(dir = %dir, files = record.files.len(), "completing an interrupted bulk load");
            return Ok(Settled::Complete(record.event));
        }
        info!(dir = %dir, files = record.files.len(), "undoing an interrupted bulk load");
        self.undo_bulk_load(fs, tracker, region, &record, now_ms).await?;
        Ok(Settled::Nothing)
    }

    /// Moves the files of a bulk load back to their origins, and removes copies and the record.
    ///
    /// # Errors
    /// File system errors. The record then remains, and the call can be repeated.
    pub async fn undo_bulk_load(
        &self,
        fs: &dyn FileSystem,
        tracker: &dyn StoreFileTracker,
        region: &RegionInfo,
        record: &BulkLoadRecord,
        now_ms: u64,
    ) -> Result<()> {
        for (family, names) in files_by_family(record) {
            let store = StoreDir { fs, root: self, region, family };
            if fs.stat(&self.family_dir(region, family)).await?.is_none() {
                continue;
            }
            tracker.commit(store, &[], &names, now_ms).await?;
            let family_dir = self.family_dir(region, family);
            let mut dirs = self.unfinished_dirs(fs, region, family).await?;
            dirs.push(family_dir.clone());
            for file in record.files.iter().filter(|file| file.family == family) {
                for dir in &dirs {
                    move_back(fs, &dir.join(&file.name), file.origin.as_deref()).await?;
                }
            }
            fs.sync_dir(&family_dir).await?;
        }
        self.remove_bulk_load(fs, region).await
    }

    /// The directories that may have unfinished files of a family. The region may have been opened
    /// again since the files were moved there.
    async fn unfinished_dirs(
        &self,
        fs: &dyn FileSystem,
        region: &RegionInfo,
        family: &[u8],
    ) -> Result<Vec<FilePath>> {
        let all = self.all_family_tmp_dirs(region, family);
        let openings = file::list(fs, &all).await?.into_iter().filter(|entry| entry.is_dir);
        Ok(openings.map(|entry| all.join(&entry.name)).chain([all.clone()]).collect())
    }

    /// The record of a bulk load of the region that was not completed or rolled back.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for a damaged record; file system errors.
    pub async fn read_bulk_load(
        &self,
        fs: &dyn FileSystem,
        region: &RegionInfo,
    ) -> Result<Option<BulkLoadRecord>> {
        let path = self.bulk_load_record(region);
        match file::read(fs, &path).await {
            Err(Error::Fs(fs::Error::NotFound { .. })) => Ok(None),
            content => decode(&path, &content?).map(Some),
        }
    }

    fn bulk_load_record(&self, region: &RegionInfo) -> FilePath {
        self.region_dir(region).join(RECORD)
    }
}

/// Moves a file, if it exists, to its origin, or removes it if it is a copy.
async fn move_back(fs: &dyn FileSystem, from: &FilePath, origin: Option<&str>) -> Result<()> {
    if fs.stat(from).await?.is_none() {
        return Ok(());
    }
    let Some(origin) = origin else { return Ok(fs.delete(from).await?) };
    let origin = FilePath::new(origin);
    fs.make_dirs(&origin.parent()).await?;
    fs.rename(from, &origin).await?;
    Ok(fs.sync_dir(&origin.parent()).await?)
}

fn files_by_family(record: &BulkLoadRecord) -> BTreeMap<&[u8], Vec<&str>> {
    let mut families: BTreeMap<&[u8], Vec<&str>> = BTreeMap::new();
    for file in &record.files {
        families.entry(&file.family).or_default().push(&file.name);
    }
    families
}

fn encode(record: &BulkLoadRecord) -> Bytes {
    let message = record.encode_to_vec();
    let mut content = BytesMut::with_capacity(message.len() + 2 * size_of::<u32>());
    content.put_u32(u32::try_from(message.len()).expect("the length of a record fits into 32 bits"));
    content.put_slice(&message);
    content.put_u32(crc32c(&message));
    content.freeze()
}

fn decode(path: &FilePath, content: &[u8]) -> Result<BulkLoadRecord> {
    let invalid = || corrupt(path, "is not the record of a bulk load");
    let (len, rest) = content.split_first_chunk().ok_or_else(invalid)?;
    let (message, checksum) = rest.split_at_checked(u32::from_be_bytes(*len) as usize).ok_or_else(invalid)?;
    if checksum != crc32c(message).to_be_bytes() {
        return Err(corrupt(path, "checksum does not match"));
    }
    let record = BulkLoadRecord::decode(message).map_err(|_| invalid())?;
    // A valid checksum does not rule out a path that leaves the directory.
    let is_legal = |file: &LoadedFile| {
        let parts = file.origin.iter().flat_map(|origin| origin.split('/'));
        family_dir_name(&file.family).is_some()
            && StoreFileName::parse(&file.name).is_some()
            && parts.into_iter().all(|part| part != "." && part != "..")
    };
    if record.files.iter().all(is_legal) { Ok(record) } else { Err(invalid()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(origin: &str, family: &str, name: &str) -> BulkLoadRecord {
        let file =
            LoadedFile { family: family.to_owned().into(), name: name.into(), origin: Some(origin.into()) };
        BulkLoadRecord { event: "marker".into(), files: vec![file] }
    }

    #[test]
    fn a_record_is_read_back_and_damage_is_detected() {
        let path = FilePath::new("r");
        let record = record("staging/x/f/a", "f", "ab_SeqId_3_");
        let content = encode(&record);
        assert_eq!(decode(&path, &content).unwrap(), record);
        for at in 0..content.len() {
            let mut changed = content.to_vec();
            changed[at] ^= 0x10;
            assert!(decode(&path, &changed).is_err(), "byte {at}");
            assert!(decode(&path, &content[..at]).is_err(), "{at} bytes");
        }
    }

    #[test]
    fn paths_that_leave_the_directory_are_refused() {
        for (origin, family, name) in [("a/../../b", "f", "ab"), ("a", "../f", "ab"), ("a", "f", "../ab")] {
            assert!(decode(&FilePath::new("r"), &encode(&record(origin, family, name))).is_err(), "{origin}");
        }
    }
}
