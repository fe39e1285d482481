//! Regions made of the files of others: what a split or a merge puts in the place of its parents.
//!
//! A daughter has no data of its own at first, only references and links. Its directory is made whole below `.tmp` and
//! renamed into its table, so it is there with all of them or not at all; made already, it is left as it is.
//!
//! Not here: which files become what (the engine, which can open them), rows of `hbase:meta`.

use bytes::Bytes;
use cell::region::RegionInfo;
use cell::schema::TableDescriptor;
use fs::{FilePath, FileSystem};

use crate::link::FileLink;
use crate::reference::Reference;
use crate::region::write_max_seq_id_in;
use crate::table::stage_region;
use crate::{Result, RootDir, file, region, store};

/// What a daughter has of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Share {
    /// All of it: a link.
    Whole(FileLink),
    /// A part: a reference of this name.
    Part {
        /// `<file>.<parent>`.
        name: String,
        /// Which part.
        reference: Reference,
    },
}

/// A region that is to be made.
#[derive(Clone, Debug)]
pub struct Daughter {
    /// The region.
    pub info: RegionInfo,
    /// What it has of files, by family.
    pub files: Vec<(Bytes, Share)>,
    /// Its sequence ids go on behind this one.
    pub max_seq_id: u64,
}

impl RootDir {
    /// Makes the directory of a region of `table`. When this returns, all of it is on disk; if it fails or the power is
    /// cut, all or nothing is. Done already: nothing happens.
    ///
    /// # Errors
    /// What the file system said.
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
            // Its name may be there and not on disk yet.
            return Ok(fs.sync_dir(&table_dir).await?);
        }
        let staged = self.stage_daughter(fs, table, daughter).await?;
        // HBase makes it in place: what it has not finished has no `.regioninfo`.
        fs.delete(&dir).await?;
        fs.rename(&staged, &dir).await?;
        fs.sync_dir(&table_dir).await?;
        Ok(fs.sync_dir(&staged.parent()).await?)
    }

    /// Makes a daughter under its temporary name.
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
        for (family, share) in &daughter.files {
            store::check_family(&staged, family)?;
            let dir = staged.join(store::dir_name(family));
            let (name, content) = match share {
                Share::Whole(link) => {
                    link.refer_back(self, fs, &daughter.info).await?;
                    (link.name(), Bytes::new())
                }
                Share::Part { name, reference } => (name.clone(), reference.encode()),
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

    /// Removes the directory of a region that never served: its references and links go, the files that they lead to stay.
    /// Done already: nothing happens.
    ///
    /// # Errors
    /// What the file system said; the rest can be done by another call.
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
