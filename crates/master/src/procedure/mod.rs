//! Procedures: changes of tables that survive a crash.
//!
//! A procedure is journaled before it acts. Its work is written as steps that can be repeated, so after a restart it
//! runs again from its first step and ends where it would have ended. Only the check whether it may run at all is not
//! repeated: once it passed, the journal says so ([`Record::prepared`]), and the procedure is carried out.
//!
//! * [`executor`]: runs procedures, one at a time per table, and remembers how they ended;
//! * [`journal`]: where they are kept (rows of `master:store`, as HBase keeps them);
//! * one file for each kind of work.

pub mod executor;
pub mod journal;

mod create_table;
mod delete_table;
mod disable_table;
mod enable_table;
mod flush_table;

use bytes::Bytes;
use cell::region::RegionInfo;
use cell::schema::{TableDescriptor, TableName};
use prost::Message;
use wire::exception::JavaException;

use crate::context::Context;

/// What a procedure does.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    /// Make a table with these regions and open them.
    CreateTable {
        /// The table.
        table: Box<TableDescriptor>,
        /// Its regions; their ids were chosen when the procedure was submitted.
        regions: Vec<RegionInfo>,
    },
    /// Remove a disabled table.
    DeleteTable(TableName),
    /// Open the regions of a disabled table.
    EnableTable(TableName),
    /// Close the regions of an enabled table.
    DisableTable(TableName),
    /// Flush the regions of an enabled table; only the given families if there are any.
    FlushTable(TableName, Vec<Bytes>),
}

impl Work {
    /// The table it works on; procedures of one table run one after the other.
    pub fn table(&self) -> &TableName {
        match self {
            Work::CreateTable { table, .. } => &table.name,
            Work::DeleteTable(table)
            | Work::EnableTable(table)
            | Work::DisableTable(table)
            | Work::FlushTable(table, _) => table,
        }
    }

    /// The Java class that does this in HBase; tools show it, and the journal names the kind by it.
    pub fn class_name(&self) -> &'static str {
        match self {
            Work::CreateTable { .. } => CREATE_TABLE,
            Work::DeleteTable(_) => DELETE_TABLE,
            Work::EnableTable(_) => ENABLE_TABLE,
            Work::DisableTable(_) => DISABLE_TABLE,
            Work::FlushTable(..) => FLUSH_TABLE,
        }
    }

    /// Whether it may run: nothing is changed yet.
    pub(crate) async fn check(&self, context: &Context) -> Result<(), JavaException> {
        match self {
            Work::CreateTable { table, .. } => create_table::check(context, table).await,
            Work::DeleteTable(table) => delete_table::check(context, table).await,
            Work::EnableTable(table) => enable_table::check(context, table).await,
            Work::DisableTable(table) => disable_table::check(context, table).await,
            Work::FlushTable(table, _) => flush_table::check(context, table).await,
        }
    }

    /// Does it; may have been begun before.
    async fn act(&self, context: &Context) -> Result<(), JavaException> {
        match self {
            Work::CreateTable { table, regions } => create_table::act(context, table, regions).await,
            Work::DeleteTable(table) => delete_table::act(context, table).await,
            Work::EnableTable(table) => enable_table::act(context, table).await,
            Work::DisableTable(table) => disable_table::act(context, table).await,
            Work::FlushTable(table, families) => flush_table::act(context, table, families).await,
        }
    }
}

const CREATE_TABLE: &str = "org.apache.hadoop.hbase.master.procedure.CreateTableProcedure";
const DELETE_TABLE: &str = "org.apache.hadoop.hbase.master.procedure.DeleteTableProcedure";
const ENABLE_TABLE: &str = "org.apache.hadoop.hbase.master.procedure.EnableTableProcedure";
const DISABLE_TABLE: &str = "org.apache.hadoop.hbase.master.procedure.DisableTableProcedure";
const FLUSH_TABLE: &str = "org.apache.hadoop.hbase.master.procedure.FlushTableProcedure";

/// A procedure as the journal keeps it.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Its number, never used again.
    pub id: u64,
    /// What it does.
    pub work: Work,
    /// Whether its check has passed: from then on it is carried out, whatever happens.
    pub prepared: bool,
    /// When it was submitted, milliseconds since the epoch.
    pub submitted_ms: u64,
    /// The client's nonce group and nonce; 0 for none.
    pub nonce: (u64, u64),
}

/// What a record says beyond HBase's own `Procedure` message, in its `state_data`.
#[derive(Clone, PartialEq, Message)]
struct StateData {
    #[prost(bool, tag = "1")]
    prepared: bool,
    #[prost(message, optional, tag = "2")]
    table_name: Option<proto::TableName>,
    #[prost(message, optional, tag = "3")]
    table_schema: Option<proto::TableSchema>,
    #[prost(message, repeated, tag = "4")]
    regions: Vec<proto::RegionInfo>,
    #[prost(bytes = "bytes", repeated, tag = "5")]
    families: Vec<Bytes>,
}

/// A journal entry that this version cannot read.
#[derive(Debug, Clone, thiserror::Error)]
#[error("procedure {id} ({class_name}) cannot be read: {reason}")]
pub struct Unreadable {
    id: u64,
    class_name: String,
    reason: String,
}

impl Record {
    /// The message that is stored.
    pub fn to_message(&self) -> proto::Procedure {
        let mut data = StateData { prepared: self.prepared, ..StateData::default() };
        match &self.work {
            Work::CreateTable { table, regions } => {
                data.table_schema = Some((&**table).into());
                data.regions = regions.iter().map(Into::into).collect();
            }
            Work::FlushTable(_, families) => data.families.clone_from(families),
            Work::DeleteTable(_) | Work::EnableTable(_) | Work::DisableTable(_) => {}
        }
        data.table_name = Some(self.work.table().into());
        proto::Procedure {
            class_name: self.work.class_name().to_string(),
            proc_id: self.id,
            submitted_time: self.submitted_ms,
            last_update: self.submitted_ms,
            state: proto::ProcedureState::Runnable as i32,
            state_data: Some(data.encode_to_vec().into()),
            nonce_group: Some(self.nonce.0),
            nonce: Some(self.nonce.1),
            ..proto::Procedure::default()
        }
    }

    /// Takes a stored message apart.
    ///
    /// # Errors
    /// [`Unreadable`] for kinds of procedure that this version does not know (HBase has more) and damaged ones.
    pub fn from_message(message: &proto::Procedure) -> Result<Record, Unreadable> {
        let unreadable = |reason: &str| Unreadable {
            id: message.proc_id,
            class_name: message.class_name.clone(),
            reason: reason.to_string(),
        };
        let data = StateData::decode(message.state_data.clone().unwrap_or_default())
            .map_err(|error| unreadable(&error.to_string()))?;
        let name = data.table_name.as_ref().ok_or_else(|| unreadable("it names no table"))?;
        let name = TableName::try_from(name).map_err(|error| unreadable(&error.to_string()))?;
        let work = match message.class_name.as_str() {
            CREATE_TABLE => {
                let schema = data.table_schema.as_ref().ok_or_else(|| unreadable("it has no table"))?;
                let table =
                    TableDescriptor::try_from(schema).map_err(|error| unreadable(&error.to_string()))?;
                let regions = data
                    .regions
                    .iter()
                    .map(RegionInfo::try_from)
                    .collect::<Result<_, _>>()
                    .map_err(|error| unreadable(&error.to_string()))?;
                Work::CreateTable { table: Box::new(table), regions }
            }
            DELETE_TABLE => Work::DeleteTable(name),
            ENABLE_TABLE => Work::EnableTable(name),
            DISABLE_TABLE => Work::DisableTable(name),
            FLUSH_TABLE => Work::FlushTable(name, data.families),
            _ => return Err(unreadable("no such kind is known here")),
        };
        Ok(Record {
            id: message.proc_id,
            work,
            prepared: data.prepared,
            submitted_ms: message.submitted_time,
            nonce: (message.nonce_group.unwrap_or(0), message.nonce.unwrap_or(0)),
        })
    }
}
