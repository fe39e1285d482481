//! Regions built from files of other regions: the results of a split or a merge.
//!
//! At first a daughter has no data of its own, only references and links. Its directory is built
//! completely below `.tmp` and then renamed into its table, so it appears with all files or not at
//! all. An existing directory stays unchanged.
//!
//! Elsewhere: which daughter gets which part of which file (the engine, which can open files), and
//! the rows of `hbase:meta`.

use bytes::Bytes;
use cell::region::RegionInfo;
use cell::schema::TableDescriptor;
use fs::{FilePath, FileSystem};

use crate::link::FileLink;
use crate::reference::Reference;
use crate::region::write_max_seq_id_in;
use crate::table::stage_region;
use crate::{Result, RootDir, file, region, store};

/// A daughter's share of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DaughterFile {
    /// The whole file: a link.
    Whole(FileLink),
    /// A part of the file: a reference of this name.
    Part {
        /// `<file>.<parent>`.
        name: String,
        /// The part.
        reference: Reference,
    },
}

/// A region to be created.
#[derive(Clone, Debug)]
pub struct Daughter {
    /// The region.
    pub info: RegionInfo,
    /// Its shares of files, by family.
    pub files: Vec<(Bytes, DaughterFile)>,
    /// The sequence id after which its own continue.
    pub max_seq_id: u64,
}

impl RootDir {
    /// Creates the directory of a region of `table`. On return, all of it is durable. After a
    /// failure or a power loss, it is there completely or not at all. Does nothing if the region
    /// exists.
    ///
    /// # Errors
    /// File system errors.
    pub async fn create_daughter(
        &self,
        fs: &dyn FileSystem,
        table: &TableDescriptor,
        daughter: &Daughter,
    ) -> Result<()> {
        let encoded = daughter.info.encoded_name();
        let table_dir = self.table_dir(&table.name);
        let dir = table_dir.join(&encoded);
        if self.read_region_info(fs, &table.name, &encoded).await?.is_some() {
            // The directory entry may exist without being durable yet.
            return Ok(fs.sync_dir(&table_dir).await?);
        }
        let staged = self.stage_daughter(fs, table, daughter).await?;
        // HBase builds the directory in place. One that it did not finish has no `.regioninfo`.
        fs.delete(&dir).await?;
        fs.rename(&staged, &dir).await?;
        fs.sync_dir(&table_dir).await?;
        Ok(fs.sync_dir(&staged.parent()).await?)
    }

    /// Builds a daughter's directory under its temporary name.
    async fn stage_daughter(
        &self,
        fs: &dyn FileSystem,
        table: &TableDescriptor,
        daughter: &Daughter,
    ) -> Result<FilePath> {
        let staged_table = self.staged_table_dir(&table.name);
        let staged = staged_table.join(&daughter.info.encoded_name());
        fs.delete(&staged).await?;
        stage_region(fs, &staged_table, table, &daughter.info).await?;
        if daughter.max_seq_id > 0 {
            write_max_seq_id_in(fs, &staged.join(region::RECOVERED_EDITS), daughter.max_seq_id, Bytes::new())
                .await?;
        }
        let mut dirs: Vec<FilePath> = Vec::new();
        for (family, file) in &daughter.files {
            store::check_family(&staged, family)?;
            let dir = staged.join(store::dir_name(family));
            let (name, content) = match file {
                DaughterFile::Whole(link) => {
                    link.add_back_reference(self, fs, &daughter.info).await?;
                    (link.name(), Bytes::new())
                }
                DaughterFile::Part { name, reference } => (name.clone(), reference.encode()),
            };
            fs.make_dirs(&dir).await?;
            file::write(fs, &dir.join(&name), content).await?;
            if !dirs.contains(&dir) {
                dirs.push(dir);
            }
        }
        for dir in &dirs {
            fs.sync_dir(dir).await?;
        }
        fs.sync_dir(&staged).await?;
        Ok(staged)
    }

    /// Removes the directory of a region that never served, with its references and links. The
    /// files that they refer to stay. Does nothing if the directory does not exist.
    ///
    /// # Errors
    /// File system errors; another call can finish the removal.
    pub async fn remove_daughter(&self, fs: &dyn FileSystem, daughter: &RegionInfo) -> Result<()> {
        let dir = self.region_dir(daughter);
        let staged_table = self.staged_table_dir(&daughter.table);
        fs.delete(&staged_table.join(&daughter.encoded_name())).await?;
        if fs.stat(&dir).await?.is_none() {
            return Ok(());
        }
        fs.delete(&dir).await?;
        Ok(fs.sync_dir(&dir.parent()).await?)
    }
}
