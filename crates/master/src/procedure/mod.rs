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
//! * `retry`, `rollback`: how a step that failed is repeated, and what becomes of one that cannot
//!   succeed;
//! * one file for each kind of work.

pub mod executor;
pub mod journal;

mod bring_up;
mod change;
mod create_region;
mod create_table;
mod delete_table;
mod disable_table;
mod enable_table;
mod flush_table;
mod merge_regions;
mod modify_table;
mod namespace;
mod record;
mod restore;
mod retry;
mod rollback;
mod snapshot;
mod split_region;
mod tidy;
mod transit;
mod truncate_table;

pub use change::Change;
pub use merge_regions::merged_of;
pub use record::{Record, Unreadable};
pub use retry::Waiting;
pub use split_region::daughters_of;
pub use transit::Transit;

pub(crate) use merge_regions::check_asked as check_merge_asked;
pub(crate) use split_region::split_row_of;
pub(crate) use tidy::has_references;

use std::fmt;

use bytes::Bytes;
use cell::region::RegionInfo;
use cell::schema::{NamespaceDescriptor, TableDescriptor, TableName};
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
    /// Make a namespace.
    CreateNamespace(NamespaceDescriptor),
    /// Change a namespace's settings.
    ModifyNamespace(NamespaceDescriptor),
    /// Remove a namespace without tables.
    DeleteNamespace(String),
    /// Note which files a table has now.
    Snapshot(TableName, Box<proto::SnapshotDescription>),
    /// Make a new table out of a snapshot.
    CloneSnapshot {
        /// The new table.
        table: TableName,
        /// The snapshot.
        snapshot: String,
        /// What the table becomes; known once the procedure is prepared.
        plan: Option<Plan>,
    },
    /// Put a disabled table back to a snapshot.
    RestoreSnapshot {
        /// The table.
        table: TableName,
        /// The snapshot.
        snapshot: String,
        /// What the table becomes; known once the procedure is prepared.
        plan: Option<Plan>,
        /// Tells this change from all others.
        token: u64,
    },
    /// Put two regions in the place of one.
    SplitRegion {
        /// The region.
        parent: RegionInfo,
        /// Those that come, the lower one first; their id was chosen before the procedure acted.
        daughters: Box<[RegionInfo; 2]>,
    },
    /// Put one region in the place of several, which are in the order of their keys.
    MergeRegions {
        /// The regions.
        parents: Vec<RegionInfo>,
        /// Whether they may lie apart, if no other region is between them.
        forcible: bool,
        /// Whether overlapping regions are repaired: then switches do not matter, and the regions may have references.
        repair: bool,
    },
    /// Adds a region to a table, with an empty directory unless it has one, or a directory to a region.
    CreateRegion(RegionInfo),
    /// Open, close or reopen a region.
    Transit(RegionInfo, Transit),
    /// Archive a region that was split, when its daughters need it no more.
    TidySplit(RegionInfo),
    /// Archive the regions that were merged into this one, when it needs them no more.
    TidyMerge(RegionInfo),
}

/// What a procedure keeps others from changing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject<'a> {
    /// A table; its namespace stays there as long.
    Table(&'a TableName),
    /// A namespace, and that no table comes into it.
    Namespace(&'a str),
}

impl fmt::Display for Subject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Table(table) => write!(f, "{table}"),
            Subject::Namespace(name) => write!(f, "namespace {name}"),
        }
    }
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
    /// What it works on; procedures of one subject run one after the other.
    pub fn subject(&self) -> Subject<'_> {
        match self {
            Work::CreateTable(plan) => Subject::Table(&plan.table.name),
            Work::DeleteTable(table)
            | Work::EnableTable(table)
            | Work::DisableTable(table)
            | Work::FlushTable(table, _)
            | Work::TruncateTable { table, .. }
            | Work::ModifyTable { table, .. }
            | Work::Snapshot(table, _)
            | Work::CloneSnapshot { table, .. }
            | Work::RestoreSnapshot { table, .. } => Subject::Table(table),
            Work::SplitRegion { parent, .. } => Subject::Table(&parent.table),
            Work::MergeRegions { parents, .. } => Subject::Table(&parents[0].table),
            Work::Transit(region, _)
            | Work::CreateRegion(region)
            | Work::TidySplit(region)
            | Work::TidyMerge(region) => Subject::Table(&region.table),
            Work::CreateNamespace(namespace) | Work::ModifyNamespace(namespace) => {
                Subject::Namespace(&namespace.name)
            }
            Work::DeleteNamespace(name) => Subject::Namespace(name),
        }
    }

    /// The snapshot that it makes or uses.
    pub fn snapshot(&self) -> Option<&str> {
        match self {
            Work::Snapshot(_, snapshot) => Some(&snapshot.name),
            Work::CloneSnapshot { snapshot, .. } | Work::RestoreSnapshot { snapshot, .. } => Some(snapshot),
            _ => None,
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
            Work::CreateNamespace(new) => namespace::check_create(context, new).await,
            Work::ModifyNamespace(new) => namespace::check_modify(context, new).await,
            Work::DeleteNamespace(name) => namespace::check_delete(context, name).await,
            Work::Snapshot(table, snapshot) => snapshot::check(context, table, snapshot).await,
            Work::CloneSnapshot { table, snapshot, .. } => {
                restore::check_clone(context, table, snapshot).await
            }
            Work::RestoreSnapshot { table, snapshot, .. } => {
                restore::check_restore(context, table, snapshot).await
            }
            Work::SplitRegion { parent, daughters } => split_region::check(context, parent, daughters).await,
            Work::MergeRegions { parents, repair: true, .. } => {
                merge_regions::check_repair(context, parents).await
            }
            Work::MergeRegions { parents, forcible, .. } => {
                merge_regions::check(context, parents, *forcible).await
            }
            Work::CreateRegion(region) => create_region::check(context, region).await,
            Work::Transit(region, transit) => transit::check(context, region, *transit),
            Work::TidySplit(parent) => tidy::check_split(context, parent).await,
            Work::TidyMerge(merged) => tidy::check_merge(context, merged).await,
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
            Work::CloneSnapshot { table, snapshot, plan } => {
                *plan = Some(restore::plan(context, table, snapshot).await?);
            }
            Work::RestoreSnapshot { table, snapshot, plan, token } => {
                *plan = Some(restore::plan(context, table, snapshot).await?);
                *token = context.env.random.next_u64();
            }
            _ => {}
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
            Work::CreateNamespace(new) => namespace::create(context, new).await,
            Work::ModifyNamespace(new) => namespace::modify(context, new).await,
            Work::DeleteNamespace(name) => namespace::delete(context, name).await,
            Work::Snapshot(table, snapshot) => snapshot::act(context, table, snapshot).await,
            Work::CloneSnapshot { snapshot, plan, .. } => {
                restore::clone(context, prepared(plan)?, snapshot).await
            }
            Work::RestoreSnapshot { snapshot, plan, token, .. } => {
                restore::restore(context, prepared(plan)?, snapshot, *token).await
            }
            Work::SplitRegion { parent, daughters } => split_region::act(context, parent, daughters).await,
            Work::MergeRegions { parents, .. } => merge_regions::act(context, parents).await,
            Work::CreateRegion(region) => create_region::act(context, region).await,
            Work::Transit(region, transit) => transit::act(context, region, *transit).await,
            Work::TidySplit(parent) => tidy::split(context, parent).await,
            Work::TidyMerge(merged) => tidy::merge(context, merged).await,
        }
    }
}

/// What [`Work::prepare`] has decided. A journal entry that says that it was prepared and has it not is damaged.
fn prepared<T>(decided: &Option<T>) -> Result<&T, JavaException> {
    decided.as_ref().ok_or_else(|| JavaException::do_not_retry("the journal lacks what was decided"))
}
