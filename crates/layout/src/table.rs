//! Tables as directories: built under `.tmp` and renamed into place, listed, removed.

use bytes::Bytes;
use cell::region::RegionInfo;
use cell::schema::{TableDescriptor, TableName};
use fs::{FilePath, FileStatus, FileSystem};

use crate::archive::check_region_archive;
use crate::link::FileLink;
use crate::mob::MobTableFiles;
use crate::reference::Reference;
use crate::{Result, RootDir, corrupt, descriptor, file, mob, region, store};

/// A file of another table that a new table shares.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkedFile {
    /// The region that gets it.
    pub region: RegionInfo,
    /// The family that gets it.
    pub family: Bytes,
    /// The file.
    pub link: FileLink,
    /// The part of it, and the encoded name of the parent region in the reference's name; `None`
    /// for the whole file.
    pub reference: Option<(Reference, String)>,
}

/// The entries of the directories of a table, listed before they are archived.
#[derive(Debug)]
pub struct TableFiles {
    entries: Vec<FileStatus>,
    mob: MobTableFiles,
}

impl LinkedFile {
    /// The name and the content of the link or reference file.
    fn file(&self) -> (String, Bytes) {
        match &self.reference {
            None => (self.link.name(), Bytes::new()),
            Some((reference, parent)) => (format!("{}.{parent}", self.link.name()), reference.encode()),
        }
    }
}

impl RootDir {
    /// Lists the tables that have a descriptor, by namespace and name.
    ///
    /// # Errors
    /// File system errors. A directory whose name is not a valid table name is skipped.
    pub async fn list_tables(&self, fs: &dyn FileSystem) -> Result<Vec<TableName>> {
        let mut tables = Vec::new();
        for namespace in self.list_namespaces(fs).await? {
            for entry in file::list(fs, &self.namespace_dir(&namespace)).await? {
                let Ok(table) = TableName::new(&namespace, &entry.name) else { continue };
                if fs.stat(&self.table_dir(&table).join(descriptor::DIR)).await?.is_some() {
                    tables.push(table);
                }
            }
        }
        Ok(tables)
    }

    /// Lists the namespaces that have a directory.
    ///
    /// # Errors
    /// File system errors.
    pub async fn list_namespaces(&self, fs: &dyn FileSystem) -> Result<Vec<String>> {
        let entries = file::list(fs, &self.data_dir()).await?;
        let is_namespace = |name: &str| TableName::new(name, "t").is_ok();
        Ok(entries
            .into_iter()
            .filter(|entry| entry.is_dir && is_namespace(&entry.name))
            .map(|e| e.name)
            .collect())
    }

    /// Creates the directory of a table: its descriptor, and for each region `.regioninfo` and the
    /// families. On return, all of it is durable. After a failure or a power loss, it is there
    /// completely or not at all. Does nothing if the table exists.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if the directory exists but lacks a region or the
    /// descriptor.
    pub async fn create_table(
        &self,
        fs: &dyn FileSystem,
        table: &TableDescriptor,
        regions: &[RegionInfo],
    ) -> Result<()> {
        if self.is_created(fs, table, regions).await? {
            return Ok(());
        }
        self.stage_table(fs, table, regions, &[]).await?;
        self.publish_table(fs, &table.name).await
    }

    /// Like [`RootDir::create_table`], with links to files of other tables.
    ///
    /// # Errors
    /// As for [`RootDir::create_table`].
    pub async fn clone_table(
        &self,
        fs: &dyn FileSystem,
        table: &TableDescriptor,
        regions: &[RegionInfo],
        links: &[LinkedFile],
    ) -> Result<()> {
        if self.is_created(fs, table, regions).await? {
            return Ok(());
        }
        self.stage_table(fs, table, regions, links).await?;
        self.publish_table(fs, &table.name).await
    }

    /// Replaces a table by one with these regions and files. The files of the old table go to the
    /// archive. `token` identifies this change, so that it is not applied twice. Regions that
    /// remain continue their sequence ids.
    ///
    /// # Errors
    /// File system errors; another call can finish the change.
    pub async fn replace_table(
        &self,
        fs: &dyn FileSystem,
        table: &TableDescriptor,
        regions: &[RegionInfo],
        links: &[LinkedFile],
        token: u64,
    ) -> Result<()> {
        if fs.stat(&replacement_mark(&self.table_dir(&table.name), token)).await?.is_some() {
            return Ok(());
        }
        if fs.stat(&replacement_mark(&self.staged_table_dir(&table.name), token)).await?.is_none() {
            self.stage_table(fs, table, regions, links).await?;
            for region in regions {
                let seq_id = self.read_max_seq_id(fs, region).await?;
                let dir = self.staged_table_dir(&table.name).join(&region.encoded_name());
                region::write_max_seq_id_in(fs, &dir.join(region::RECOVERED_EDITS), seq_id, Bytes::new())
                    .await?;
            }
            self.mark_staged(fs, &table.name, token).await?;
        }
        // The cleaner archives the MOB files that the restored table does not need, but only those
        // in directories of its families.
        self.archive_mob_files_of_other_families(fs, table).await?;
        self.archive_regions(fs, &table.name).await?;
        self.publish_table(fs, &table.name).await
    }

    /// Stages an empty table with new regions that replaces the table of this name, unless it is
    /// staged. Before that, checks that the archive can take the files of the old table. The caller
    /// then archives the old table and calls [`publish_table`](RootDir::publish_table). `token`
    /// identifies this change.
    ///
    /// # Errors
    /// As for [`RootDir::archive_store_files`]. The old table is unchanged.
    pub async fn stage_empty_table(
        &self,
        fs: &dyn FileSystem,
        table: &TableDescriptor,
        regions: &[RegionInfo],
        token: u64,
    ) -> Result<()> {
        if self.is_replacement_staged(fs, &table.name, token).await? {
            return Ok(());
        }
        self.check_archive(fs, &table.name).await?;
        self.stage_table(fs, table, regions, &[]).await?;
        self.mark_staged(fs, &table.name, token).await
    }

    /// Marks the staged table as complete. This is the point of no return of its procedure: the old
    /// table may be gone already.
    async fn mark_staged(&self, fs: &dyn FileSystem, table: &TableName, token: u64) -> Result<()> {
        let mark = replacement_mark(&self.staged_table_dir(table), token);
        file::write(fs, &mark, Bytes::new()).await?;
        Ok(fs.sync_dir(&mark.parent()).await?)
    }

    /// Checks that the archive has no different file with the name of a file of this table.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if it has one; file system errors.
    pub async fn check_archive(&self, fs: &dyn FileSystem, table: &TableName) -> Result<()> {
        let files = self.list_table_files(fs, table).await?;
        for entry in files.entries.iter().filter(|entry| is_region_dir(entry)) {
            let dir = self.table_dir(table).join(&entry.name);
            check_region_archive(fs, &dir, &self.archive_region_dir(table, &entry.name)).await?;
        }
        let mob = mob::pseudo_region(table).encoded_name();
        let dir = self.mob_table_dir(table).join(&mob);
        check_region_archive(fs, &dir, &self.archive_region_dir(table, &mob)).await
    }

    /// Whether a [replacement](RootDir::replace_table) is staged or complete. It then needs no
    /// links, and before it is complete, files of the old table may be in the archive.
    ///
    /// # Errors
    /// File system errors.
    pub async fn is_replacement_staged(
        &self,
        fs: &dyn FileSystem,
        table: &TableName,
        token: u64,
    ) -> Result<bool> {
        for dir in [self.staged_table_dir(table), self.table_dir(table)] {
            if fs.stat(&replacement_mark(&dir, token)).await?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Builds a table under its temporary name.
    async fn stage_table(
        &self,
        fs: &dyn FileSystem,
        table: &TableDescriptor,
        regions: &[RegionInfo],
        links: &[LinkedFile],
    ) -> Result<()> {
        let staged = self.staged_table_dir(&table.name);
        fs.delete(&staged).await?;
        descriptor::write_in(fs, &staged, table).await?;
        for region in regions {
            stage_region(fs, &staged, table, region).await?;
        }
        // The table is published later, so its links to MOB files may exist before.
        let (mob, links): (Vec<_>, Vec<_>) =
            links.iter().cloned().partition(|linked| mob::is_pseudo_region(&linked.region));
        self.link_mob_files(fs, &mob).await?;
        for linked in &links {
            linked.link.add_back_reference(self, fs, &linked.region).await?;
            let family = store::family_dir_name(&linked.family)
                .ok_or_else(|| corrupt(&staged, "invalid family name"))?;
            let dir = staged.join(&linked.region.encoded_name()).join(family);
            fs.make_dirs(&dir).await?;
            let (name, content) = linked.file();
            file::write(fs, &dir.join(&name), content).await?;
            fs.sync_dir(&dir).await?;
        }
        Ok(fs.sync_dir(&staged).await?)
    }

    /// Renames a staged table into place. The old table must be gone.
    ///
    /// # Errors
    /// File system errors.
    pub async fn publish_table(&self, fs: &dyn FileSystem, table: &TableName) -> Result<()> {
        let staged = self.staged_table_dir(table);
        let namespace_dir = self.namespace_dir(table.namespace());
        fs.make_dirs(&namespace_dir).await?;
        fs.rename(&staged, &self.table_dir(table)).await?;
        fs.sync_dir(&namespace_dir).await?;
        Ok(fs.sync_dir(&staged.parent()).await?)
    }

    /// Removes the directory of a namespace that contains no table.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if it contains a table.
    pub async fn delete_namespace(&self, fs: &dyn FileSystem, namespace: &str) -> Result<()> {
        let dir = self.namespace_dir(namespace);
        if let Some(entry) = file::list(fs, &dir).await?.iter().find(|entry| !entry.name.starts_with('.')) {
            return Err(corrupt(&dir, format!("holds the table {:?}", entry.name)));
        }
        fs.delete(&dir).await?;
        Ok(fs.sync_dir(&dir.parent()).await?)
    }

    async fn is_created(
        &self,
        fs: &dyn FileSystem,
        table: &TableDescriptor,
        regions: &[RegionInfo],
    ) -> Result<bool> {
        let dir = self.table_dir(&table.name);
        if fs.stat(&dir).await?.is_none() {
            return Ok(false);
        }
        for region in regions {
            if self.read_region_info(fs, &table.name, &region.encoded_name()).await?.is_none() {
                return Err(corrupt(&dir, format!("exists but lacks region {}", region.encoded_name())));
            }
        }
        match self.find_table_descriptor(fs, &table.name).await? {
            Some(_) => Ok(true),
            None => Err(corrupt(&dir, "exists but lacks a descriptor")),
        }
    }

    /// Moves the store files of all regions of a table and its MOB files to the archive, and
    /// removes its directories. Resumes an earlier call that failed or was interrupted.
    ///
    /// # Errors
    /// File system errors; another call can finish the move.
    pub async fn archive_table(&self, fs: &dyn FileSystem, table: &TableName) -> Result<()> {
        let files = self.list_table_files(fs, table).await?;
        self.archive_table_files(fs, table, &files).await
    }

    /// Lists the entries of a table's directories, for
    /// [`archive_table_files`](RootDir::archive_table_files).
    ///
    /// # Errors
    /// File system errors.
    pub async fn list_table_files(&self, fs: &dyn FileSystem, table: &TableName) -> Result<TableFiles> {
        let mob = self.list_mob_table(fs, table).await?;
        Ok(TableFiles { entries: file::list(fs, &self.table_dir(table)).await?, mob })
    }

    /// The second part of [`archive_table`](RootDir::archive_table): archives only what was listed.
    /// A master checks in between that no other one is active. So calls that a replaced master
    /// completes late change nothing of the next table of this name: its regions and MOB files have
    /// other names.
    ///
    /// # Errors
    /// File system errors; another call can finish the move.
    pub async fn archive_table_files(
        &self,
        fs: &dyn FileSystem,
        table: &TableName,
        files: &TableFiles,
    ) -> Result<()> {
        self.archive_entries(fs, table, &files.entries).await?;
        self.archive_mob_files_of_table(fs, table, &files.mob).await
    }

    async fn archive_regions(&self, fs: &dyn FileSystem, table: &TableName) -> Result<()> {
        let entries = file::list(fs, &self.table_dir(table)).await?;
        self.archive_entries(fs, table, &entries).await
    }

    async fn archive_entries(
        &self,
        fs: &dyn FileSystem,
        table: &TableName,
        entries: &[FileStatus],
    ) -> Result<()> {
        let dir = self.table_dir(table);
        let (mut regions, others): (Vec<&FileStatus>, Vec<&FileStatus>) =
            entries.iter().partition(|entry| is_region_dir(entry));
        // This can fail, for example on a full disk, and be aborted if no region is marked yet. So
        // until all files are in the archive, the table has its regions and its descriptor.
        for region in &regions {
            self.archive_files_of_region(fs, table, &region.name).await?;
        }
        let last = regions.pop();
        // These calls archive again: if they are late, a restored or cloned table may have a region
        // of the same name meanwhile.
        for region in regions {
            self.archive_region(fs, table, &region.name).await?;
        }
        for other in others {
            let path = dir.join(&other.name);
            match last {
                Some(region) => move_into_region(fs, &path, &dir.join(&region.name)).await?,
                // The last region of an earlier call takes the other entries with it, so there are
                // none, unless an older version began to archive the table.
                None => fs.delete(&path).await?,
            }
        }
        if let Some(region) = last {
            self.archive_region(fs, table, &region.name).await?;
        }
        // These calls may be late ones of a replaced master. If the next table of this name was
        // created meanwhile, its regions must stay.
        fs.delete_empty_dir(&dir).await?;
        match fs.sync_dir(&dir.parent()).await {
            Err(fs::Error::NotFound { .. }) => Ok(()), // The namespace's directory does not exist either.
            other => Ok(other?),
        }
    }
}

/// Whether an entry of a table's directory is a region.
fn is_region_dir(entry: &FileStatus) -> bool {
    entry.is_dir && region::is_encoded_name(&entry.name)
}

/// Moves an entry of a table's directory, such as the descriptor, into the directory of a region,
/// which is then removed with it. The next table of this name has an entry at the same path, which
/// a late call must not remove. But it has no region of the same name, so the late call fails.
async fn move_into_region(fs: &dyn FileSystem, entry: &FilePath, region_dir: &FilePath) -> Result<()> {
    let to = region_dir.join(&format!(".of-table{}", entry.name()));
    // A deletion that was aborted may have moved an earlier entry, which was then written again.
    fs.delete(&to).await?;
    match fs.rename(entry, &to).await {
        Ok(()) | Err(fs::Error::NotFound { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The file that identifies a replaced table. It is in the directory for scratch files, which no
/// other code reads.
fn replacement_mark(table_dir: &FilePath, token: u64) -> FilePath {
    table_dir.join(".tmp").join(&format!(".replaced.{token}"))
}

/// Creates a region's directory with its `.regioninfo` and families below `table_dir`.
pub(crate) async fn stage_region(
    fs: &dyn FileSystem,
    table_dir: &FilePath,
    table: &TableDescriptor,
    region: &RegionInfo,
) -> Result<()> {
    let dir = table_dir.join(&region.encoded_name());
    fs.make_dirs(&dir).await?;
    region::write_info_in(fs, &dir, region).await?;
    for family in table.families.keys() {
        let name = store::family_dir_name(family).expect("checked when the descriptor was written");
        fs.make_dirs(&dir.join(name)).await?;
    }
    Ok(fs.sync_dir(&dir).await?)
}
