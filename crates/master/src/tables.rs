//! Tables: their descriptors and states in memory, their directories on disk.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use cell::region::RegionInfo;
use cell::schema::{TableDescriptor, TableName};
use fs::FileSystem;
use layout::RootDir;
use wire::exception::{Answer, JavaException};
use wire::meta::TableState;

use crate::{namespaces, refusal};

/// All tables of the cluster.
pub struct Tables {
    fs: Arc<dyn FileSystem>,
    root: RootDir,
    known: Mutex<BTreeMap<TableName, (Arc<TableDescriptor>, TableState)>>,
}

impl Tables {
    /// No tables are known yet.
    pub fn new(fs: Arc<dyn FileSystem>, root: RootDir) -> Tables {
        Tables { fs, root, known: Mutex::default() }
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

    /// Refuses a table whose namespace does not exist.
    ///
    /// # Errors
    /// `NamespaceNotFoundException`.
    pub fn require_namespace(&self, table: &TableName) -> Answer<()> {
        if namespaces::exists(table.namespace()) {
            Ok(())
        } else {
            Err(refusal::namespace_not_found(table.namespace()))
        }
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

    /// Reads a table's descriptor from its directory and takes it over; tells whether there is one. A table whose
    /// deletion was interrupted has none, but still its rows in `hbase:meta`.
    ///
    /// # Errors
    /// What the file system said, or what is wrong with the descriptor.
    pub async fn load(&self, table: &TableName, state: TableState) -> Answer<bool> {
        let descriptor = self.root.find_table_descriptor(&*self.fs, table).await.map_err(failed)?;
        let is_there = descriptor.is_some();
        if let Some(descriptor) = descriptor {
            self.put(descriptor, state);
        }
        Ok(is_there)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<TableName, (Arc<TableDescriptor>, TableState)>> {
        self.known.lock().expect("no holder of this lock panics")
    }
}

/// A failure of the file system may pass: clients and procedures try again.
fn failed(error: layout::Error) -> JavaException {
    JavaException::io(error.to_string())
}
