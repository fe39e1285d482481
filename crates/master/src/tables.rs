//! Tables: descriptors and states in memory, directories on disk.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use cell::region::RegionInfo;
use cell::schema::{TableDescriptor, TableName};
use fs::FileSystem;
use layout::RootDir;
use layout::table::TableFiles;
use proto::exception::{Answer, JavaException};
use wire::meta::TableState;

/// All tables of the cluster.
pub struct Tables {
    fs: Arc<dyn FileSystem>,
    root: RootDir,
    by_name: Mutex<BTreeMap<TableName, (Arc<TableDescriptor>, TableState)>>,
    // By table whose regions are being reopened after a change: the number of regions that remain,
    // and the number of all its regions.
    reopening: Mutex<BTreeMap<TableName, (usize, usize)>>,
}

/// Marks a table as having its regions reopened, until dropped.
pub struct Reopening<'a> {
    tables: &'a Tables,
    table: TableName,
}

impl Reopening<'_> {
    /// Records that one more region uses the new descriptor.
    pub fn record_reopened(&self) {
        if let Some((left, _)) = self.tables.lock_reopening().get_mut(&self.table) {
            debug_assert!(*left > 0, "each region of a table is reopened once");
            *left = left.saturating_sub(1);
        }
    }
}

impl Drop for Reopening<'_> {
    fn drop(&mut self) {
        self.tables.lock_reopening().remove(&self.table);
    }
}

impl Tables {
    /// Creates an empty list of tables.
    pub fn new(fs: Arc<dyn FileSystem>, root: RootDir) -> Tables {
        Tables { fs, root, by_name: Mutex::default(), reopening: Mutex::default() }
    }

    /// Adds a table or replaces its descriptor and state, in memory.
    pub fn put(&self, table: TableDescriptor, state: TableState) {
        self.lock().insert(table.name.clone(), (Arc::new(table), state));
    }

    /// Removes a deleted table from memory.
    pub fn forget(&self, table: &TableName) {
        self.lock().remove(table);
    }

    /// Sets a table's state in memory.
    pub fn set_state(&self, table: &TableName, state: TableState) {
        if let Some((_, entry)) = self.lock().get_mut(table) {
            *entry = state;
        }
    }

    /// A table's descriptor; `None` if the table does not exist.
    pub fn descriptor(&self, table: &TableName) -> Option<Arc<TableDescriptor>> {
        self.lock().get(table).map(|(descriptor, _)| descriptor.clone())
    }

    /// A table's state; `None` if the table does not exist.
    pub fn state(&self, table: &TableName) -> Option<TableState> {
        self.lock().get(table).map(|(_, state)| *state)
    }

    /// All tables, sorted by name.
    pub fn all(&self) -> Vec<Arc<TableDescriptor>> {
        self.lock().values().map(|(descriptor, _)| descriptor.clone()).collect()
    }

    /// The enabled user tables, or the disabled ones.
    pub fn by_enabled(&self, is_enabled: bool) -> Vec<Arc<TableDescriptor>> {
        let wanted = if is_enabled { TableState::Enabled } else { TableState::Disabled };
        let tables = self.lock();
        let found = tables.values().filter(|(table, state)| *state == wanted && !table.name.is_system());
        found.map(|(descriptor, _)| descriptor.clone()).collect()
    }

    /// The number of tables in a namespace.
    pub fn count_in(&self, namespace: &str) -> usize {
        self.lock().keys().filter(|table| table.namespace() == namespace).count()
    }

    /// The namespaces that have directories.
    ///
    /// # Errors
    /// The file system's error.
    pub async fn namespace_directories(&self) -> Answer<Vec<String>> {
        self.root.list_namespaces(&*self.fs).await.map_err(file_exception)
    }

    /// Creates the directory of a namespace.
    ///
    /// # Errors
    /// The file system's error.
    pub async fn make_namespace(&self, namespace: &str) -> Answer<()> {
        self.fs
            .make_dirs(&self.root.namespace_dir(namespace))
            .await
            .map_err(|error| file_exception(error.into()))
    }

    /// Removes the directory of a namespace without tables.
    ///
    /// # Errors
    /// The file system's error, or that a table has its directory there.
    pub async fn delete_namespace(&self, namespace: &str) -> Answer<()> {
        self.root.delete_namespace(&*self.fs, namespace).await.map_err(file_exception)
    }

    /// Whether a table has a directory.
    ///
    /// # Errors
    /// The file system's error.
    pub async fn has_directory(&self, table: &TableName) -> Answer<bool> {
        let found = self.fs.stat(&self.root.table_dir(table)).await;
        Ok(found.map_err(|error| file_exception(error.into()))?.is_some())
    }

    /// Whether a table outside the namespace `hbase` has a directory.
    ///
    /// # Errors
    /// The file system's error.
    pub async fn has_user_tables(&self) -> Answer<bool> {
        let tables = self.root.list_tables(&*self.fs).await.map_err(file_exception)?;
        Ok(tables.iter().any(|table| !table.is_system()))
    }

    /// Creates the directories, the descriptor and the region infos of a new table, unless they
    /// exist.
    ///
    /// # Errors
    /// The file system's error. Then either all files are in place or none.
    pub async fn create_files(&self, table: &TableDescriptor, regions: &[RegionInfo]) -> Answer<()> {
        self.root.create_table(&*self.fs, table, regions).await.map_err(file_exception)
    }

    /// Lists the files of a table for [`archive_files`](Tables::archive_files).
    ///
    /// # Errors
    /// The file system's error.
    pub(crate) async fn list_files(&self, table: &TableName) -> Answer<TableFiles> {
        self.root.list_table_files(&*self.fs, table).await.map_err(file_exception)
    }

    /// Checks that the archive can take the files of a table.
    ///
    /// # Errors
    /// A final error if it has another file of the same name; the file system's error.
    pub(crate) async fn check_archive(&self, table: &TableName) -> Answer<()> {
        self.root.check_archive(&*self.fs, table).await.map_err(file_exception)
    }

    /// Moves the listed files of a table to the archive and removes its directory.
    ///
    /// # Errors
    /// The file system's error. Another call can move the rest.
    pub(crate) async fn archive_files(&self, table: &TableName, files: &TableFiles) -> Answer<()> {
        self.root.archive_table_files(&*self.fs, table, files).await.map_err(file_exception)
    }

    /// Stages an empty table that replaces the table of this name, which is then
    /// [archived](crate::context::Context::archive_table). `token` identifies the change.
    ///
    /// # Errors
    /// The file system's error, or a final one if the files of the old table cannot be archived.
    /// The old table is unchanged.
    pub(crate) async fn stage_empty(
        &self,
        table: &TableDescriptor,
        regions: &[RegionInfo],
        token: u64,
    ) -> Answer<()> {
        self.root.stage_empty_table(&*self.fs, table, regions, token).await.map_err(file_exception)
    }

    /// Renames a staged table into place, after the old one was archived.
    ///
    /// # Errors
    /// The file system's error.
    pub(crate) async fn publish(&self, table: &TableName) -> Answer<()> {
        self.root.publish_table(&*self.fs, table).await.map_err(file_exception)
    }

    /// Removes the files of a table that have not been renamed from their temporary name yet.
    ///
    /// # Errors
    /// The file system's error.
    pub async fn delete_staged(&self, table: &TableName) -> Answer<()> {
        let staged = self.root.staged_table_dir(table);
        self.fs.delete(&staged).await.map_err(|error| file_exception(error.into()))
    }

    /// Removes the links to MOB files of a clone that has no directory yet.
    ///
    /// # Errors
    /// The file system's error. Another call can remove the rest.
    pub async fn archive_mob_links(&self, table: &TableName) -> Answer<()> {
        self.root.archive_mob_table(&*self.fs, table).await.map_err(file_exception)
    }

    /// Reads a table's descriptor from its directory into memory, and returns whether there is one.
    /// A table whose deletion was interrupted has none, but still has rows in `hbase:meta`.
    ///
    /// # Errors
    /// The file system's error, or a problem of the descriptor.
    pub async fn load(&self, table: &TableName, state: TableState) -> Answer<bool> {
        let descriptor = self.root.find_table_descriptor(&*self.fs, table).await.map_err(file_exception)?;
        let exists = descriptor.is_some();
        if let Some(descriptor) = descriptor {
            crate::sanity::log_problems(&descriptor);
            self.put(descriptor, state);
        }
        Ok(exists)
    }

    /// Whether the table's directory contains these regions.
    ///
    /// # Errors
    /// The file system's error.
    pub async fn has_regions(&self, table: &TableName, regions: &[RegionInfo]) -> Answer<bool> {
        for region in regions {
            let info = self.root.read_region_info(&*self.fs, table, &region.encoded_name()).await;
            if info.map_err(file_exception)?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether the table's directory contains one of these regions, even if a part of its files is
    /// in the archive.
    ///
    /// # Errors
    /// The file system's error.
    pub async fn has_any_region_dir(&self, table: &TableName, regions: &[RegionInfo]) -> Answer<bool> {
        let dirs = self.root.list_region_dirs(&*self.fs, table).await.map_err(file_exception)?;
        Ok(regions.iter().any(|region| dirs.contains(&region.encoded_name())))
    }

    /// Replaces a table's descriptor on disk and then in memory. Does not write the file if it
    /// already contains this descriptor.
    ///
    /// # Errors
    /// The file system's error. Either the old or the new descriptor is in place then.
    pub async fn write_descriptor(&self, table: &TableDescriptor) -> Answer<()> {
        if !self.is_written(table).await? {
            self.root.write_table_descriptor(&*self.fs, table).await.map_err(file_exception)?;
        }
        if let Some((entry, _)) = self.lock().get_mut(&table.name) {
            *entry = Arc::new(table.clone());
        }
        Ok(())
    }

    /// Whether this is the descriptor of its table on disk.
    ///
    /// # Errors
    /// The file system's error, or a problem of the descriptor on disk.
    pub async fn is_written(&self, table: &TableDescriptor) -> Answer<bool> {
        let on_disk = self.root.find_table_descriptor(&*self.fs, &table.name).await;
        Ok(on_disk.map_err(file_exception)?.as_ref() == Some(table))
    }

    /// Writes the descriptor of a table whose file is lost or damaged. Removes the damaged file.
    ///
    /// # Errors
    /// The file system's error.
    pub async fn restore_descriptor(&self, table: &TableDescriptor) -> Answer<()> {
        self.root.write_table_descriptor(&*self.fs, table).await.map_err(file_exception)
    }

    /// Moves the files of removed families of a closed or reopened region to the archive.
    ///
    /// # Errors
    /// The file system's error. Another call can move the rest.
    pub async fn archive_families(&self, region: &RegionInfo, families: &[Bytes]) -> Answer<()> {
        for family in families {
            self.root.archive_family(&*self.fs, region, family).await.map_err(file_exception)?;
        }
        Ok(())
    }

    /// Moves the MOB files of removed families to the archive.
    ///
    /// # Errors
    /// `IOException`; another call can finish the move.
    pub async fn archive_mob_families(&self, table: &TableName, families: &[Bytes]) -> Answer<()> {
        for family in families {
            let archived = self.root.archive_mob_family(&*self.fs, table, family).await;
            archived.map_err(file_exception)?;
        }
        Ok(())
    }

    /// Records that all regions of a table are being reopened.
    pub fn begin_reopening(&self, table: &TableName, regions: usize) -> Reopening<'_> {
        let earlier = self.lock_reopening().insert(table.clone(), (regions, regions));
        debug_assert!(earlier.is_none(), "one procedure at a time reopens the regions of a table");
        Reopening { tables: self, table: table.clone() }
    }

    /// How many regions of a table still use an older descriptor, and how many regions it has.
    /// `None` if they are not being reopened.
    pub fn reopening(&self, table: &TableName) -> Option<(usize, usize)> {
        self.lock_reopening().get(table).copied()
    }

    /// The file system that holds the tables.
    pub(crate) fn fs(&self) -> &dyn FileSystem {
        &*self.fs
    }

    /// The layout of the root directory.
    pub(crate) fn root(&self) -> &RootDir {
        &self.root
    }

    fn lock_reopening(&self) -> std::sync::MutexGuard<'_, BTreeMap<TableName, (usize, usize)>> {
        self.reopening.lock().expect("no holder of this lock panics")
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<TableName, (Arc<TableDescriptor>, TableState)>> {
        self.by_name.lock().expect("no holder of this lock panics")
    }
}

/// The regions of a new table: between two consecutive split keys, before the first one and after
/// the last one.
pub(crate) fn regions_between(table: &TableName, split_keys: &[Bytes], id: u64) -> Vec<RegionInfo> {
    let empty = Bytes::new();
    let starts = std::iter::once(&empty).chain(split_keys);
    let ends = split_keys.iter().chain(std::iter::once(&empty));
    starts
        .zip(ends)
        .map(|(start, end)| RegionInfo::new(table.clone(), start.clone(), end.clone(), id))
        .collect()
}

/// Converts an error of the file system or of the contents of a file. A failure of the file system
/// may be temporary, so clients and procedures retry it. Invalid contents are not retried.
pub(crate) fn file_exception(error: layout::Error) -> JavaException {
    let do_not_retry = !matches!(error, layout::Error::Fs(_));
    JavaException { do_not_retry, ..JavaException::io(error.to_string()) }
}
