//! Procedures: changes of tables that survive a crash.
//!
//! A procedure is journaled before it acts. Its work is written as steps that can be repeated, so after a restart it
//! runs again from its first step and ends where it would have ended. Only the check whether it may run at all is not
//! repeated: once it passed, the journal says so ([`Record::prepared`]), and the procedure is carried out. What is
//! decided from the state before it (the ids of new regions, say) is decided then, and journaled with it.
//!
//! * [`executor`]: runs procedures, one at a time per table, and remembers how they ended;
//! * [`journal`]: where they are kept (rows of `master:store`, as HBase keeps them);
//! * [`record`](mod@record): what is kept of one;
//! * one file for each kind of work.

pub mod executor;
pub mod journal;

mod bring_up;
mod change;
mod create_table;
mod delete_table;
mod disable_table;
mod enable_table;
mod flush_table;
mod modify_table;
mod record;
mod truncate_table;

pub use change::Change;
pub use record::{Record, Unreadable};

use bytes::Bytes;
use cell::region::RegionInfo;
use cell::schema::{TableDescriptor, TableName};
use wire::exception::JavaException;

use crate::context::Context;

/// What a procedure does.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    /// Make a table with these regions and open them.
    CreateTable(Plan),
    /// Remove a disabled table.
    DeleteTable(TableName),
    /// Open the regions of a disabled table.
    EnableTable(TableName),
    /// Close the regions of an enabled table.
    DisableTable(TableName),
    /// Flush the regions of an enabled table; only the given families if there are any.
    FlushTable(TableName, Vec<Bytes>),
    /// Remove all rows of a disabled table and enable it.
    TruncateTable {
        /// The table.
        table: TableName,
        /// Whether it keeps its split keys.
        preserve_splits: bool,
        /// What it becomes; known once the procedure is prepared.
        plan: Option<Plan>,
    },
    /// Change a table's families and attributes.
    ModifyTable {
        /// The table.
        table: TableName,
        /// What is to be changed.
        change: Change,
        /// Whether its regions are opened anew, so that the change takes effect now.
        reopen: bool,
        /// What it becomes; known once the procedure is prepared.
        target: Option<Target>,
    },
}

/// A table and its regions, as a procedure makes them.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The table.
    pub table: Box<TableDescriptor>,
    /// Its regions; their ids were chosen before the procedure acted.
    pub regions: Vec<RegionInfo>,
}

/// What a change of a table comes to.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// The table as it becomes.
    pub table: Box<TableDescriptor>,
    /// The families that go.
    pub removed: Vec<Bytes>,
}

impl Work {
    /// The table it works on; procedures of one table run one after the other.
    pub fn table(&self) -> &TableName {
        match self {
            Work::CreateTable(plan) => &plan.table.name,
            Work::DeleteTable(table)
            | Work::EnableTable(table)
            | Work::DisableTable(table)
            | Work::FlushTable(table, _)
            | Work::TruncateTable { table, .. }
            | Work::ModifyTable { table, .. } => table,
        }
    }

    /// Whether it may run: nothing is changed yet.
    pub(crate) async fn check(&self, context: &Context) -> Result<(), JavaException> {
        match self {
            Work::CreateTable(plan) => create_table::check(context, &plan.table).await,
            Work::DeleteTable(table) => delete_table::check(context, table).await,
            Work::EnableTable(table) => enable_table::check(context, table).await,
            Work::DisableTable(table) => disable_table::check(context, table).await,
            Work::FlushTable(table, _) => flush_table::check(context, table).await,
            Work::TruncateTable { table, .. } => truncate_table::check(context, table).await,
            Work::ModifyTable { table, change, reopen, .. } => {
                modify_table::check(context, table, change, *reopen).await
            }
        }
    }

    /// Decides what depends on how things are now, right after the check and before the first act. It is journaled.
    async fn prepare(&mut self, context: &Context) -> Result<(), JavaException> {
        match self {
            Work::TruncateTable { table, preserve_splits, plan } => {
                *plan = Some(truncate_table::plan(context, table, *preserve_splits)?);
            }
            Work::ModifyTable { table, change, target, .. } => {
                *target = Some(modify_table::target(context, table, change)?);
            }
            Work::CreateTable(_)
            | Work::DeleteTable(_)
            | Work::EnableTable(_)
            | Work::DisableTable(_)
            | Work::FlushTable(..) => {}
        }
        Ok(())
    }

    /// Does it; may have been begun before.
    async fn act(&self, context: &Context) -> Result<(), JavaException> {
        match self {
            Work::CreateTable(plan) => create_table::act(context, plan).await,
            Work::DeleteTable(table) => delete_table::act(context, table).await,
            Work::EnableTable(table) => enable_table::act(context, table).await,
            Work::DisableTable(table) => disable_table::act(context, table).await,
            Work::FlushTable(table, families) => flush_table::act(context, table, families).await,
            Work::TruncateTable { plan, .. } => truncate_table::act(context, prepared(plan)?).await,
            Work::ModifyTable { reopen, target, .. } => {
                modify_table::act(context, prepared(target)?, *reopen).await
            }
        }
    }
}

/// What [`Work::prepare`] has decided. A journal entry that says that it was prepared and has it not is damaged.
fn prepared<T>(decided: &Option<T>) -> Result<&T, JavaException> {
    decided.as_ref().ok_or_else(|| JavaException::do_not_retry("the journal lacks what was decided"))
}
