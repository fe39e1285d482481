//! Procedures: changes of tables that survive a crash.
//!
//! A procedure is journaled before it acts. Its work consists of repeatable steps: after a restart
//! it runs again from its first step and has the same result. Only the check whether it may run is
//! not repeated; once it has passed, the journal records this ([`Record::prepared`]). Decisions
//! that depend on the state before the procedure, such as the ids of new regions, are journaled
//! before the first step.
//!
//! * [`executor`]: runs procedures, one at a time per table, and retains their outcomes;
//! * [`journal`]: stores procedures in rows of `master:store`, as HBase does;
//! * [`record`](mod@record): the stored form of a procedure;
//! * `retry`, `rollback`: how failed steps are retried, and what happens to a procedure that cannot
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
mod gc_parents;
mod merge_regions;
mod modify_table;
mod namespace;
mod record;
mod region_transition;
mod restore;
mod retry;
mod rollback;
mod server_crash;
mod snapshot;
mod split_region;
mod truncate_table;

pub use change::Change;
pub use merge_regions::merged_of;
pub use record::{Record, UnreadableRecord};
pub use region_transition::RegionTransition;
pub use retry::Waiting;
pub use server_crash::fence_dir;
pub use split_region::daughters_of;

pub(crate) use gc_parents::may_need_parents;
pub(crate) use merge_regions::check_requested as check_merge_requested;
pub(crate) use split_region::split_row_of;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use bytes::Bytes;
use cell::region::{RegionInfo, ServerName};
use cell::schema::{NamespaceDescriptor, TableDescriptor, TableName};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use proto::exception::JavaException;

use crate::context::Context;

/// What a procedure does.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    /// Create a table with these regions and open them.
    CreateTable(TablePlan),
    /// Delete a disabled table.
    DeleteTable(TableName),
    /// Open the regions of a disabled table.
    EnableTable(TableName),
    /// Close the regions of an enabled table.
    DisableTable(TableName),
    /// Flush the regions of an enabled table; if families are given, only these.
    FlushTable(TableName, Vec<Bytes>),
    /// Remove all rows of a disabled table and enable it.
    TruncateTable {
        /// The table.
        table: TableName,
        /// Whether it keeps its split keys.
        preserve_splits: bool,
        /// The new regions; set when the procedure is prepared.
        plan: Option<TablePlan>,
        /// Whether the new table is staged before the old one is archived; set when the procedure
        /// is prepared. False for a procedure that an older version prepared.
        stages_first: bool,
    },
    /// Change a table's families and attributes.
    ModifyTable {
        /// The table.
        table: TableName,
        /// The change.
        change: Change,
        /// Whether to reopen the regions, so that the change takes effect immediately.
        reopen: bool,
        /// The changed table; set when the procedure is prepared.
        target: Option<ChangedTable>,
    },
    /// Create a namespace.
    CreateNamespace(NamespaceDescriptor),
    /// Change a namespace's settings.
    ModifyNamespace(NamespaceDescriptor),
    /// Delete a namespace without tables.
    DeleteNamespace(String),
    /// Take a snapshot: record the files that a table has now.
    Snapshot(TableName, Box<proto::SnapshotDescription>),
    /// Create a new table from a snapshot.
    CloneSnapshot {
        /// The new table.
        table: TableName,
        /// The snapshot.
        snapshot: String,
        /// The new table; set when the procedure is prepared.
        plan: Option<TablePlan>,
    },
    /// Restore a disabled table to a snapshot.
    RestoreSnapshot {
        /// The table.
        table: TableName,
        /// The snapshot.
        snapshot: String,
        /// The restored table; set when the procedure is prepared.
        plan: Option<TablePlan>,
        /// A random number that identifies this restore among all others.
        token: u64,
    },
    /// Replace a region with two daughters.
    SplitRegion {
        /// The region.
        parent: RegionInfo,
        /// The new regions, the lower one first. Their id was chosen before the procedure acted.
        daughters: Box<[RegionInfo; 2]>,
    },
    /// Replace several regions, sorted by key, with one.
    MergeRegions {
        /// The regions to merge.
        parents: Vec<RegionInfo>,
        /// Whether regions that are not adjacent may be merged, if no other region is between them.
        forcible: bool,
        /// Whether this repairs overlapping regions. Then switches are ignored, and the regions may
        /// have references.
        repair: bool,
    },
    /// Add a region to a table. Its row in `hbase:meta` and an empty directory are created if they
    /// are missing.
    CreateRegion(RegionInfo),
    /// Open, close or reopen a region.
    RegionTransition(RegionInfo, RegionTransition),
    /// Close a region and open it on another server.
    MoveRegion {
        /// The region.
        region: RegionInfo,
        /// The server that had the region when the move was planned. If another server has it when
        /// the procedure begins, the procedure is refused: the plan is outdated. `None` for a move
        /// from any server, which a client requested.
        source: Option<ServerName>,
        /// The server that gets it.
        target: ServerName,
    },
    /// Open the regions of a dead server elsewhere.
    ServerCrash {
        /// The server.
        server: ServerName,
        /// Whether it had `hbase:meta`.
        had_meta: bool,
        /// Its other regions; set when the procedure is prepared.
        regions: Option<Vec<RegionInfo>>,
    },
    /// Archive a split region that its daughters no longer need.
    GcSplitParent(RegionInfo),
    /// Archive the parents of a merged region that no longer refers to their files.
    GcMergeParents(RegionInfo),
}

/// What a procedure protects from concurrent changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject<'a> {
    /// A table. Its namespace cannot be changed meanwhile, either.
    Table(&'a TableName),
    /// A namespace and all tables in it.
    Namespace(&'a str),
    /// A server that died.
    Server(&'a ServerName),
}

impl fmt::Display for Subject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Table(table) => write!(f, "{table}"),
            Subject::Namespace(name) => write!(f, "namespace {name}"),
            Subject::Server(server) => write!(f, "server {server}"),
        }
    }
}

/// A table and its regions, as a procedure creates them.
#[derive(Clone, Debug, PartialEq)]
pub struct TablePlan {
    /// The table's descriptor.
    pub table: Box<TableDescriptor>,
    /// Its regions. Their ids were chosen before the procedure acted.
    pub regions: Vec<RegionInfo>,
}

/// The result of a change of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangedTable {
    /// The new descriptor.
    pub table: Box<TableDescriptor>,
    /// The families that the change removes.
    pub removed: Vec<Bytes>,
}

impl Work {
    /// The object that the procedure changes. Procedures with the same subject run in sequence.
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
            Work::ServerCrash { server, .. } => Subject::Server(server),
            Work::RegionTransition(region, _)
            | Work::MoveRegion { region, .. }
            | Work::CreateRegion(region)
            | Work::GcSplitParent(region)
            | Work::GcMergeParents(region) => Subject::Table(&region.table),
            Work::CreateNamespace(namespace) | Work::ModifyNamespace(namespace) => {
                Subject::Namespace(&namespace.name)
            }
            Work::DeleteNamespace(name) => Subject::Namespace(name),
        }
    }

    /// The snapshot that the procedure takes or uses.
    pub fn snapshot(&self) -> Option<&str> {
        match self {
            Work::Snapshot(_, snapshot) => Some(&snapshot.name),
            Work::CloneSnapshot { snapshot, .. } | Work::RestoreSnapshot { snapshot, .. } => Some(snapshot),
            _ => None,
        }
    }

    /// Checks whether the procedure may run, before it changes anything.
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
            Work::RegionTransition(region, transition) => {
                region_transition::check(context, region, *transition)
            }
            Work::MoveRegion { region, source, .. } => {
                region_transition::check_move(context, region, source.as_ref())
            }
            Work::ServerCrash { .. } => Ok(()),
            Work::GcSplitParent(parent) => gc_parents::check_split_parent(context, parent).await,
            Work::GcMergeParents(merged) => gc_parents::check_merged_region(context, merged).await,
        }
    }

    /// Adds the regions that need the logs of a dead server, before they are opened elsewhere.
    fn add_to_recoveries(&self, context: &Context, flushed: &BTreeSet<String>) {
        let Work::ServerCrash { server, had_meta, regions } = self else { return };
        let meta = had_meta.then(RegionInfo::meta);
        let regions: Vec<RegionInfo> = regions.iter().flatten().cloned().chain(meta).collect();
        let waiting = server_crash::encoded_names(&regions).filter(|encoded| !flushed.contains(encoded));
        context.recoveries.add(server, waiting);
    }

    /// Makes the decisions that depend on the current state, after the check and before the first
    /// step. The decisions are then journaled.
    async fn prepare(&mut self, context: &Context) -> Result<(), JavaException> {
        match self {
            Work::TruncateTable { table, preserve_splits, plan, stages_first } => {
                *plan = Some(truncate_table::plan(context, table, *preserve_splits)?);
                *stages_first = true;
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
            Work::ServerCrash { server, had_meta, regions } => {
                *regions = Some(server_crash::prepare(context, server, *had_meta).await);
            }
            _ => {}
        }
        Ok(())
    }

    /// Runs all steps. An earlier attempt may have completed some of them.
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
            Work::RegionTransition(region, transition) => {
                region_transition::act(context, region, *transition).await
            }
            Work::MoveRegion { region, target, .. } => context.assignment.move_to(region, target).await,
            Work::ServerCrash { server, regions, .. } => {
                server_crash::act(context, server, prepared(regions)?).await
            }
            Work::GcSplitParent(parent) => gc_parents::archive_split_parent(context, parent).await,
            Work::GcMergeParents(merged) => gc_parents::archive_merge_parents(context, merged).await,
        }
    }
}

/// How many regions of each server one procedure flushes at the same time, as in HBase
/// (`hbase.snapshot.region.concurrentTasks`).
const REGIONS_PER_SERVER: usize = 3;

/// Runs one future for each region of a table, a few at the same time. The outputs are in the order
/// of the futures.
///
/// Each future comes with the server of its region. Each server has its own limit: under a common
/// one, the regions of a slow server would delay all others. Futures without a server read files,
/// or wait until their region is open; they share another limit.
///
/// # Errors
/// The first error. Unfinished futures are dropped then.
async fn for_regions<T>(
    context: &Context,
    futures: Vec<(Option<ServerName>, impl Future<Output = Result<T, JavaException>>)>,
) -> Result<Vec<T>, JavaException> {
    let mut groups: BTreeMap<Option<ServerName>, Vec<_>> = BTreeMap::new();
    for (at, (server, future)) in futures.into_iter().enumerate() {
        let numbered = async move { Ok::<(usize, T), JavaException>((at, future.await?)) };
        groups.entry(server).or_default().push(numbered);
    }
    let mut streams = Vec::with_capacity(groups.len());
    for (server, futures) in groups {
        let at_once = match server {
            Some(_) => REGIONS_PER_SERVER,
            None => REGIONS_PER_SERVER * context.servers.count().max(1),
        };
        streams.push(stream::iter(futures).buffer_unordered(at_once));
    }
    let mut outputs: Vec<(usize, T)> = stream::select_all(streams).try_collect().await?;
    outputs.sort_unstable_by_key(|(at, _)| *at);
    Ok(outputs.into_iter().map(|(_, output)| output).collect())
}

/// The result of [`Work::prepare`]. A journal entry that is marked as prepared but lacks it is
/// damaged.
fn prepared<T>(decided: &Option<T>) -> Result<&T, JavaException> {
    decided
        .as_ref()
        .ok_or_else(|| JavaException::do_not_retry("the journal entry is prepared but lacks its plan"))
}
