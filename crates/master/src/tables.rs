//! Tables: their descriptors and states in memory, their directories on disk.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use cell::region::RegionInfo;
use cell::schema::{TableDescriptor, TableName};
use fs::FileSystem;
use layout::RootDir;
use wire::exception::{Answer, JavaException};
use wire::meta::TableState;

/// All tables of the cluster.
pub struct Tables {
    fs: Arc<dyn FileSystem>,
    root: RootDir,
    known: Mutex<BTreeMap<TableName, (Arc<TableDescriptor>, TableState)>>,
    // Tables whose regions are being opened anew after a change: how many are left, and how many there are.
    reopening: Mutex<BTreeMap<TableName, (usize, usize)>>,
}

/// A table whose regions are being opened anew, until this is dropped.
pub struct Reopening<'a> {
    tables: &'a Tables,
    table: TableName,
}

impl Reopening<'_> {
    /// One more region has the new descriptor.
    pub fn one_done(&self) {
        if let Some((left, _)) = self.tables.lock_reopening().get_mut(&self.table) {
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
    /// No tables are known yet.
    pub fn new(fs: Arc<dyn FileSystem>, root: RootDir) -> Tables {
        Tables { fs, root, known: Mutex::default(), reopening: Mutex::default() }
    }

    /// Takes a table over, or its new descriptor.
    pub fn put(&self, table: TableDescriptor, state: TableState) {
        self.lock().insert(table.name.clone(), (Arc::new(table), state));
    }

    /// Forgets a table that is gone.
    pub fn forget(&self, table: &TableName) {
        self.lock().remove(table);
    }

    /// Takes over a table's state.
    pub fn set_state(&self, table: &TableName, state: TableState) {
        if let Some((_, known)) = self.lock().get_mut(table) {
            *known = state;
        }
    }

    /// A table's descriptor, if there is such a table.
    pub fn descriptor(&self, table: &TableName) -> Option<Arc<TableDescriptor>> {
        self.lock().get(table).map(|(descriptor, _)| descriptor.clone())
    }

    /// A table's state, if there is such a table.
    pub fn state(&self, table: &TableName) -> Option<TableState> {
        self.lock().get(table).map(|(_, state)| *state)
    }

    /// All tables by name.
    pub fn all(&self) -> Vec<Arc<TableDescriptor>> {
        self.lock().values().map(|(descriptor, _)| descriptor.clone()).collect()
    }

    /// The users' tables that are enabled, or those that are disabled.
    pub fn by_enabled(&self, is_enabled: bool) -> Vec<Arc<TableDescriptor>> {
        let wanted = if is_enabled { TableState::Enabled } else { TableState::Disabled };
        let tables = self.lock();
        let found = tables.values().filter(|(table, state)| *state == wanted && !table.name.is_system());
        found.map(|(descriptor, _)| descriptor.clone()).collect()
    }

    /// How many tables a namespace has.
    pub fn count_in(&self, namespace: &str) -> usize {
        self.lock().keys().filter(|table| table.namespace() == namespace).count()
    }

    /// The namespaces that have directories.
    ///
    /// # Errors
    /// What the file system said.
    pub async fn namespace_directories(&self) -> Answer<Vec<String>> {
        self.root.list_namespaces(&*self.fs).await.map_err(failed)
    }

    /// Makes the directory of a namespace.
    ///
    /// # Errors
    /// What the file system said.
    pub async fn make_namespace(&self, namespace: &str) -> Answer<()> {
        self.fs.make_dirs(&self.root.namespace_dir(namespace)).await.map_err(|error| failed(error.into()))
    }

    /// Removes the directory of a namespace without tables.
    ///
    /// # Errors
    /// What the file system said, or that a table has its directory there.
    pub async fn delete_namespace(&self, namespace: &str) -> Answer<()> {
        self.root.delete_namespace(&*self.fs, namespace).await.map_err(failed)
    }

    /// Whether a table has a directory.
    ///
    /// # Errors
    /// What the file system said.
    pub async fn has_directory(&self, table: &TableName) -> Answer<bool> {
        let found = self.fs.stat(&self.root.table_dir(table)).await;
        Ok(found.map_err(|error| failed(error.into()))?.is_some())
    }

    /// Whether a table outside the namespace `hbase` has a directory.
    ///
    /// # Errors
    /// What the file system said.
    pub async fn has_user_tables(&self) -> Answer<bool> {
        let tables = self.root.list_tables(&*self.fs).await.map_err(failed)?;
        Ok(tables.iter().any(|table| !table.is_system()))
    }

    /// Makes the directories, the descriptor and the region infos of a new table, unless they are there.
    ///
    /// # Errors
    /// What the file system said; nothing is in place then, or all.
    pub async fn create_files(&self, table: &TableDescriptor, regions: &[RegionInfo]) -> Answer<()> {
        self.root.create_table(&*self.fs, table, regions).await.map_err(failed)
    }

    /// Moves the files of a table to the archive and removes its directory.
    ///
    /// # Errors
    /// What the file system said; the rest can be moved by another call.
    pub async fn archive_files(&self, table: &TableName) -> Answer<()> {
        self.root.archive_table(&*self.fs, table).await.map_err(failed)
    }

    /// Removes what there is of a table under its temporary name.
    ///
    /// # Errors
    /// What the file system said.
    pub async fn delete_staged(&self, table: &TableName) -> Answer<()> {
        let staged = self.root.staged_table_dir(table);
        self.fs.delete(&staged).await.map_err(|error| failed(error.into()))
    }

    /// Reads a table's descriptor from its directory and takes it over; tells whether there is one. A table whose
    /// deletion was interrupted has none, but still its rows in `hbase:meta`.
    ///
    /// # Errors
    /// What the file system said, or what is wrong with the descriptor.
    pub async fn load(&self, table: &TableName, state: TableState) -> Answer<bool> {
        let descriptor = self.root.find_table_descriptor(&*self.fs, table).await.map_err(failed)?;
        let is_there = descriptor.is_some();
        if let Some(descriptor) = descriptor {
            crate::sanity::log_problems(&descriptor);
            self.put(descriptor, state);
        }
        Ok(is_there)
    }

    /// Whether the table's directory holds these regions.
    ///
    /// # Errors
    /// What the file system said.
    pub async fn has_regions(&self, table: &TableName, regions: &[RegionInfo]) -> Answer<bool> {
        for region in regions {
            let info = self.root.read_region_info(&*self.fs, table, &region.encoded_name()).await;
            if info.map_err(failed)?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Replaces a table's descriptor, on disk and then in memory. Done already: nothing happens.
    ///
    /// # Errors
    /// What the file system said; the old one or the new one is in place.
    pub async fn write_descriptor(&self, table: &TableDescriptor) -> Answer<()> {
        let on_disk = self.root.find_table_descriptor(&*self.fs, &table.name).await.map_err(failed)?;
        if on_disk.as_ref() != Some(table) {
            self.root.write_table_descriptor(&*self.fs, table).await.map_err(failed)?;
        }
        if let Some((known, _)) = self.lock().get_mut(&table.name) {
            *known = Arc::new(table.clone());
        }
        Ok(())
    }

    /// Writes a descriptor that is lost or damaged again. What is damaged is removed.
    ///
    /// # Errors
    /// What the file system said.
    pub async fn restore_descriptor(&self, table: &TableDescriptor) -> Answer<()> {
        self.root.write_table_descriptor(&*self.fs, table).await.map_err(failed)
    }

    /// Moves the files of families of a closed or reopened region, which has them no more, to the archive.
    ///
    /// # Errors
    /// What the file system said; the rest can be moved by another call.
    pub async fn archive_families(&self, region: &RegionInfo, families: &[Bytes]) -> Answer<()> {
        for family in families {
            self.root.archive_family(&*self.fs, region, family).await.map_err(failed)?;
        }
        Ok(())
    }

    /// Takes note that all regions of a table are being opened anew.
    pub fn begin_reopening(&self, table: &TableName, regions: usize) -> Reopening<'_> {
        self.lock_reopening().insert(table.clone(), (regions, regions));
        Reopening { tables: self, table: table.clone() }
    }

    /// How many regions of a table have an older descriptor, and how many there are; `None` if none is being opened
    /// anew.
    pub fn reopening(&self, table: &TableName) -> Option<(usize, usize)> {
        self.lock_reopening().get(table).copied()
    }

    /// The files.
    pub(crate) fn fs(&self) -> &dyn FileSystem {
        &*self.fs
    }

    /// Where what lies.
    pub(crate) fn root(&self) -> &RootDir {
        &self.root
    }

    fn lock_reopening(&self) -> std::sync::MutexGuard<'_, BTreeMap<TableName, (usize, usize)>> {
        self.reopening.lock().expect("no holder of this lock panics")
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<TableName, (Arc<TableDescriptor>, TableState)>> {
        self.known.lock().expect("no holder of this lock panics")
    }
}

/// The regions of a new table: from each split key to the next.
pub(crate) fn regions_between(table: &TableName, split_keys: &[Bytes], id: u64) -> Vec<RegionInfo> {
    let empty = Bytes::new();
    let starts = std::iter::once(&empty).chain(split_keys);
    let ends = split_keys.iter().chain(std::iter::once(&empty));
    starts
        .zip(ends)
        .map(|(start, end)| RegionInfo::new(table.clone(), start.clone(), end.clone(), id))
        .collect()
}

/// What the file system or a file said. A failure of the file system may pass, so that clients and
/// procedures retry; content that cannot be read remains as it is.
pub(crate) fn failed(error: layout::Error) -> JavaException {
    let do_not_retry = !matches!(error, layout::Error::Fs(_));
    JavaException { do_not_retry, ..JavaException::io(error.to_string()) }
}
