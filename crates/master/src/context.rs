//! The state that the master's parts share.

use std::sync::Arc;

use base::env::Env;
use cell::schema::TableName;
use engine::Region;
use proto::exception::{JavaException, class};
use tokio::sync::{Mutex, watch};
use wire::meta::TableState;

use crate::assignment::Assignment;
use crate::connections::Connections;
use crate::instruments::MasterInstruments;
use crate::integrity::Integrity;
use crate::meta::MetaTable;
use crate::namespace_quotas::NamespaceQuotas;
use crate::namespaces::Namespaces;
use crate::recoveries::Recoveries;
use crate::servers::Servers;
use crate::switches::Switches;
use crate::tables::Tables;

/// The shared state of procedures and services.
pub struct Context {
    /// Clock, randomness, tasks, network.
    pub env: Env,
    /// Live region servers.
    pub servers: Arc<Servers>,
    /// Connections to region servers.
    pub connections: Arc<dyn Connections>,
    /// The rows of `hbase:meta`.
    pub meta: Arc<MetaTable>,
    /// Known problems of regions and directories.
    pub integrity: Arc<Integrity>,
    /// The assignment of regions to servers.
    pub assignment: Arc<Assignment>,
    /// The dead servers whose logs regions still need.
    pub recoveries: Arc<Recoveries>,
    /// Table descriptors and states.
    pub tables: Tables,
    /// The namespaces.
    pub namespaces: Namespaces,
    /// The limits on tables and regions of each namespace.
    pub namespace_quotas: NamespaceQuotas,
    /// The switches with which an administrator enables and disables operations.
    pub switches: Switches,
    /// Metrics of the master.
    pub instruments: MasterInstruments,
    /// The region of `master:store`.
    pub(crate) store: Arc<Region>,
    /// Held while a snapshot is written or removed: both use a directory that has its name, and
    /// snapshots of two tables may have the same name.
    pub(crate) snapshot_changes: Mutex<()>,
    /// Whether `hbase:meta` has been loaded.
    pub(crate) loaded: watch::Sender<bool>,
}

impl Context {
    /// Whether `hbase:meta` has been loaded.
    pub(crate) fn is_loaded(&self) -> bool {
        *self.loaded.borrow()
    }

    /// Waits until `hbase:meta` has been loaded, so that the states of all regions are known.
    pub(crate) async fn meta_loaded(&self) {
        let loaded = self.loaded.subscribe().wait_for(|loaded| *loaded).await.is_ok();
        debug_assert!(loaded, "the sender lives as long as self");
    }

    /// Sets a table's state in `hbase:meta`, then in memory.
    ///
    /// # Errors
    /// The error of `hbase:meta`.
    pub async fn set_table_state(&self, table: &TableName, state: TableState) -> Result<(), JavaException> {
        self.meta.set_table_state(table, state).await?;
        self.tables.set_state(table, state);
        Ok(())
    }

    /// Checks that no other master has taken over `master:store`, which it does before anything
    /// else. In contrast to [`MetaTable::check_active`], this needs no region server.
    ///
    /// # Errors
    /// That another master has taken over, or the file system's error.
    pub(crate) async fn check_owned(&self) -> Result<(), engine::Error> {
        self.store.check_owned().await
    }

    /// Moves the files of a table to the archive and removes its directory.
    ///
    /// # Errors
    /// The error of the file system or of `hbase:meta`, or that another master is active. Another
    /// call can move the rest.
    pub(crate) async fn archive_table(&self, table: &TableName) -> Result<(), JavaException> {
        let files = self.tables.list_files(table).await?;
        // If another master has deleted the table since, the list may be that of the next table of
        // this name. If not, nothing of the next table has these names.
        self.meta.check_active().await?;
        self.tables.archive_files(table, &files).await
    }

    /// Rejects operations that are not allowed on `hbase:meta`.
    ///
    /// # Errors
    /// HBase's `ConstraintException` for `hbase:meta`.
    pub fn require_user_table(&self, table: &TableName) -> Result<(), JavaException> {
        if table.is_meta() {
            Err(JavaException::new(class::CONSTRAINT, "Cannot disable hbase:meta"))
        } else {
            Ok(())
        }
    }
}
