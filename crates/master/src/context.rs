//! What the master's parts share.

use std::sync::Arc;

use base::env::Env;
use cell::schema::TableName;
use wire::exception::{JavaException, class};
use wire::meta::TableState;

use crate::assignment::Assignment;
use crate::connections::Connections;
use crate::instruments::MasterInstruments;
use crate::integrity::Integrity;
use crate::meta::MetaTable;
use crate::namespace_quotas::NamespaceQuotas;
use crate::namespaces::Namespaces;
use crate::servers::Servers;
use crate::switches::Switches;
use crate::tables::Tables;

/// What procedures and services work on.
pub struct Context {
    /// Time, chance, tasks, network.
    pub env: Env,
    /// Live region servers.
    pub servers: Arc<Servers>,
    /// How region servers are reached.
    pub connections: Arc<dyn Connections>,
    /// The rows of `hbase:meta`.
    pub meta: Arc<MetaTable>,
    /// What is wrong with regions and directories.
    pub integrity: Arc<Integrity>,
    /// Which server serves which region.
    pub assignment: Assignment,
    /// Table descriptors and states.
    pub tables: Tables,
    /// The namespaces.
    pub namespaces: Namespaces,
    /// How many tables and regions each may have.
    pub namespace_quotas: NamespaceQuotas,
    /// What an administrator has forbidden.
    pub switches: Switches,
    /// What is counted.
    pub instruments: MasterInstruments,
}

impl Context {
    /// Writes a table's state to `hbase:meta`, then takes it over in memory.
    ///
    /// # Errors
    /// What `hbase:meta` answered.
    pub async fn set_table_state(&self, table: &TableName, state: TableState) -> Result<(), JavaException> {
        self.meta.set_table_state(table, state).await?;
        self.tables.set_state(table, state);
        Ok(())
    }

    /// Refuses what may not be done to the system's own tables.
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
