//! The small files of a region: `.regioninfo`, and the sequence id file.

use bytes::Bytes;
use cell::region::{META_ENCODED_NAME, RegionInfo};
use cell::schema::TableName;
use fs::{FilePath, FileSystem};
use proto::magic::{with_magic_delimited, without_magic_delimited};
use tracing::warn;

use crate::inventory::Inventory;
use crate::{Result, RootDir, corrupt, file};

pub(crate) const INFO_FILE: &str = ".regioninfo";
/// The name of `.regioninfo` once the whole region is being archived. Some of its files may then be
/// in the archive.
pub(crate) const ARCHIVING_FILE: &str = ".archiving";
/// The directory of sequence id files.
pub const RECOVERED_EDITS: &str = "recovered.edits";
const SEQ_ID_SUFFIX: &str = ".seqid";
/// The suffix that HBase before 0.99 used instead.
const OLD_SEQ_ID_SUFFIX: &str = "_seqid";

/// Whether a region's directory can have all files of the region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegionDir {
    /// It has a `.regioninfo`.
    Described,
    /// It is there, but its `.regioninfo` was lost.
    Undescribed,
    /// The region is being archived: some or all files may be gone.
    Archiving,
    /// It does not exist.
    Missing,
}

impl RootDir {
    /// The state of a region's directory. With a `.regioninfo`, this is one call.
    ///
    /// # Errors
    /// File system errors.
    pub async fn region_dir_state(&self, fs: &dyn FileSystem, region: &RegionInfo) -> Result<RegionDir> {
        let dir = self.region_dir(region);
        if fs.stat(&dir.join(INFO_FILE)).await?.is_some() {
            return Ok(RegionDir::Described);
        }
        if fs.stat(&dir.join(ARCHIVING_FILE)).await?.is_some() {
            return Ok(RegionDir::Archiving);
        }
        Ok(match fs.stat(&dir).await? {
            Some(_) => RegionDir::Undescribed,
            None => RegionDir::Missing,
        })
    }

    /// The regions of a table that have a directory with a `.regioninfo`, in no particular order.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if a `.regioninfo` is invalid or belongs to
    /// another directory.
    pub async fn list_regions(&self, fs: &dyn FileSystem, table: &TableName) -> Result<Vec<RegionInfo>> {
        let dir = self.table_dir(table);
        let mut regions = Vec::new();
        for entry in file::list(fs, &dir).await? {
            if !entry.is_dir || !is_encoded_name(&entry.name) {
                continue;
            }
            match read_info(fs, &dir.join(&entry.name)).await? {
                Some(region) => regions.push(region),
                None => warn!(dir = %dir.join(&entry.name), "region directory has no .regioninfo"),
            }
        }
        Ok(regions)
    }

    /// The encoded names of the directories of a table's regions, whatever they contain.
    ///
    /// # Errors
    /// File system errors.
    pub async fn list_region_dirs(&self, fs: &dyn FileSystem, table: &TableName) -> Result<Vec<String>> {
        let entries = file::list(fs, &self.table_dir(table)).await?;
        let is_region = |entry: &fs::FileStatus| entry.is_dir && is_encoded_name(&entry.name);
        Ok(entries.into_iter().filter(is_region).map(|entry| entry.name).collect())
    }

    /// The distinct names of a region's store files, including those in the archive. The files may
    /// be corrupt.
    ///
    /// # Errors
    /// File system errors.
    pub async fn store_file_names(
        &self,
        fs: &dyn FileSystem,
        table: &TableName,
        encoded: &str,
    ) -> Result<Vec<String>> {
        let mut names = std::collections::BTreeSet::new();
        for dir in [self.table_dir(table).join(encoded), self.archive_region_dir(table, encoded)] {
            for family in file::list(fs, &dir).await?.into_iter().filter(|entry| entry.is_dir) {
                let files = file::list(fs, &dir.join(&family.name)).await?.into_iter();
                names.extend(files.filter(|file| !file.is_dir).map(|file| file.name));
            }
        }
        Ok(names.into_iter().collect())
    }

    /// Reads the `.regioninfo` of a region's directory; `None` if the directory or the file does
    /// not exist.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if it is invalid or belongs to another region.
    pub async fn read_region_info(
        &self,
        fs: &dyn FileSystem,
        table: &TableName,
        encoded: &str,
    ) -> Result<Option<RegionInfo>> {
        read_info(fs, &self.table_dir(table).join(encoded)).await
    }

    /// Creates a region's directory and its `.regioninfo`, unless an identical one exists.
    ///
    /// # Errors
    /// File system errors.
    pub async fn write_region_info(&self, fs: &dyn FileSystem, region: &RegionInfo) -> Result<()> {
        let (dir, tmp_dir) = (self.region_dir(region), self.region_tmp_dir(region));
        let (path, content) = (dir.join(INFO_FILE), encode(region));
        if fs.stat(&path).await?.is_some() && file::read(fs, &path).await? == content {
            return Ok(());
        }
        fs.make_dirs(&tmp_dir).await?;
        file::replace(fs, &tmp_dir.join(INFO_FILE), &path, content).await
    }

    /// The highest sequence id in the names of a region's files (`recovered.edits/<id>.seqid`); 0
    /// if there is none.
    ///
    /// # Errors
    /// File system errors.
    pub async fn read_max_seq_id(&self, fs: &dyn FileSystem, region: &RegionInfo) -> Result<u64> {
        let ids = seq_id_files(fs, &self.recovered_edits_dir(region)).await?;
        Ok(ids.last().map_or(0, |(id, _)| *id))
    }

    /// Records `seq_id` as the highest one that a region used, together with the region's
    /// inventory, and removes lower ones. Returns `false` if that id or a higher one was recorded
    /// already: its inventory stays unchanged. Without an inventory the file is empty and needs no
    /// disk space.
    ///
    /// # Errors
    /// File system errors; the region's highest id and its inventory are then the old or the new
    /// ones.
    pub async fn write_max_seq_id(
        &self,
        fs: &dyn FileSystem,
        region: &RegionInfo,
        seq_id: u64,
        inventory: Option<&Inventory>,
    ) -> Result<bool> {
        let content = inventory.map_or(Bytes::new(), Inventory::encode);
        write_max_seq_id_in(fs, &self.recovered_edits_dir(region), seq_id, content).await
    }
}

/// Records `seq_id` as the highest one in the directory `dir`. Returns whether it created a file
/// with `content`.
pub(crate) async fn write_max_seq_id_in(
    fs: &dyn FileSystem,
    dir: &FilePath,
    seq_id: u64,
    content: Bytes,
) -> Result<bool> {
    fs.make_dirs(dir).await?;
    let ids = seq_id_files(fs, dir).await?;
    let is_new = ids.last().is_none_or(|(id, _)| *id < seq_id);
    if is_new {
        let path = dir.join(&seq_id_file_name(seq_id));
        if let Err(error) = file::write(fs, &path, content).await {
            // A partially written file would count as a corrupt inventory.
            fs.delete(&path).await?;
            return Err(error);
        }
        fs.sync_dir(dir).await?;
    }
    let highest = ids.last().map_or(seq_id, |(id, _)| seq_id.max(*id));
    for (_, name) in ids.iter().filter(|(id, _)| *id < highest) {
        fs.delete(&dir.join(name)).await?;
    }
    Ok(is_new)
}

/// The sequence id files in a directory, in ascending order.
async fn seq_id_files(fs: &dyn FileSystem, dir: &FilePath) -> Result<Vec<(u64, String)>> {
    let entries = file::list(fs, dir).await?.into_iter();
    let mut ids: Vec<(u64, String)> =
        entries.filter_map(|entry| Some((parse_seq_id(&entry.name)?, entry.name))).collect();
    ids.sort_unstable();
    Ok(ids)
}

/// The name of the file with the highest sequence id in a directory.
pub(crate) async fn highest_seq_id_file(fs: &dyn FileSystem, dir: &FilePath) -> Result<Option<String>> {
    Ok(seq_id_files(fs, dir).await?.pop().map(|(_, name)| name))
}

fn seq_id_file_name(seq_id: u64) -> String {
    format!("{seq_id}{SEQ_ID_SUFFIX}")
}

/// Writes a region's `.regioninfo` into its directory; the directory entry is not synced.
pub(crate) async fn write_info_in(
    fs: &dyn FileSystem,
    region_dir: &FilePath,
    region: &RegionInfo,
) -> Result<()> {
    file::write(fs, &region_dir.join(INFO_FILE), encode(region)).await
}

/// Marks the region in `region_dir` as being archived. On return, the mark is durable. A rename
/// needs no disk space, and a late call marks no region of another name. Marks nothing if there is
/// no `.regioninfo`: the region is then marked already, or gone, or its `.regioninfo` was lost.
pub(crate) async fn mark_archiving(fs: &dyn FileSystem, region_dir: &FilePath) -> Result<()> {
    match fs.rename(&region_dir.join(INFO_FILE), &region_dir.join(ARCHIVING_FILE)).await {
        Ok(()) | Err(fs::Error::NotFound { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    // Also if an earlier call has marked it: that call may have failed before this point.
    match fs.sync_dir(region_dir).await {
        Err(fs::Error::NotFound { .. }) => Ok(()), // The region is gone.
        other => Ok(other?),
    }
}

fn encode(region: &RegionInfo) -> Bytes {
    with_magic_delimited(&proto::RegionInfo::from(region))
}

/// Reads the `.regioninfo` of a region's directory, at any path.
pub(crate) async fn read_info(fs: &dyn FileSystem, region_dir: &FilePath) -> Result<Option<RegionInfo>> {
    let path = region_dir.join(INFO_FILE);
    let content = match file::read(fs, &path).await {
        Err(crate::Error::Fs(fs::Error::NotFound { .. })) => return Ok(None),
        other => other?,
    };
    let message: proto::RegionInfo =
        without_magic_delimited(&content).map_err(|error| corrupt(&path, error))?;
    let region = RegionInfo::try_from(&message).map_err(|error| corrupt(&path, error))?;
    if region.encoded_name() != region_dir.name() {
        return Err(corrupt(&path, format!("belongs to region {}", region.encoded_name())));
    }
    Ok(Some(region))
}

/// Whether a directory's name can be that of a region.
pub(crate) fn is_encoded_name(name: &str) -> bool {
    let is_md5 = name.len() == 32 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    is_md5 || name == META_ENCODED_NAME
}

fn parse_seq_id(name: &str) -> Option<u64> {
    name.strip_suffix(SEQ_ID_SUFFIX).or_else(|| name.strip_suffix(OLD_SEQ_ID_SUFFIX))?.parse().ok()
}
