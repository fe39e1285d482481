//! Ends procedures that cannot succeed or were aborted.
//!
//! Before its point of no return, a procedure is rolled back: everything that it created is
//! removed. After that point, some procedures can simply end, because a repetition of the same call
//! completes the work. All other procedures remain and are retried.

use cell::region::RegionInfo;
use cell::schema::TableName;
use layout::region::RegionDir;
use proto::exception::JavaException;
use wire::meta::TableState;

use super::{TablePlan, Work, truncate_table};
use crate::assignment::RegionState;
use crate::context::Context;
use crate::namespaces;
use crate::tables::file_exception;

impl Work {
    /// Whether the procedure can be aborted after it has begun to act. Splits, merges and moves of
    /// regions roll back automatically; a restore moves files that a second restore needs; closing
    /// regions cannot be reopened before they are closed.
    pub(super) fn can_be_aborted(&self) -> bool {
        !matches!(
            self,
            Work::DisableTable(_)
                | Work::RestoreSnapshot { .. }
                | Work::SplitRegion { .. }
                | Work::MergeRegions { .. }
                | Work::RegionTransition(..)
                | Work::MoveRegion { .. }
                | Work::ServerCrash { .. }
                | Work::GcSplitParent(_)
                | Work::GcMergeParents(_)
        )
    }

    /// Ends the procedure without success, if the client can then repeat the call. Returns whether
    /// the procedure has ended. If not, nothing was changed.
    ///
    /// # Errors
    /// The error of `hbase:meta` or of the file system. The call can be repeated.
    pub(super) async fn end_without_success(&self, context: &Context) -> Result<bool, JavaException> {
        match self {
            Work::CreateTable(plan) => remove_table(context, plan, true).await,
            Work::CloneSnapshot { plan: Some(plan), .. } => remove_table(context, plan, false).await,
            // In the state ENABLED, the open regions are usable, and the table can be disabled.
            Work::EnableTable(table) => {
                context.set_table_state(table, TableState::Enabled).await?;
                Ok(true)
            }
            Work::CreateNamespace(namespace) => {
                if context.namespaces.get(&namespace.name).is_err() {
                    context.tables.delete_namespace(&namespace.name).await?;
                    namespaces::remove(context, &namespace.name).await?;
                }
                Ok(true)
            }
            // The new descriptor lacks these families, so a repetition of the call would not
            // archive their files. If such a family was added later, its old rows would be back.
            Work::ModifyTable { target: Some(target), .. }
                if !target.removed.is_empty() && context.tables.is_written(&target.table).await? =>
            {
                Ok(false)
            }
            Work::ModifyTable { table, .. } => {
                open_closed_regions(context, table).await;
                Ok(true)
            }
            Work::RestoreSnapshot { table, token, .. } => remove_staged(context, table, *token).await,
            // The truncated table is complete, and its regions are opened or retried.
            Work::TruncateTable { table, plan: Some(_), .. }
                if context.tables.state(table) == Some(TableState::Enabling) =>
            {
                context.set_table_state(table, TableState::Enabled).await?;
                Ok(true)
            }
            Work::TruncateTable { table, plan: Some(plan), stages_first, .. } => {
                // An older version archived the table before it staged the new one.
                let is_unchanged = *stages_first || is_whole(context, table).await?;
                Ok(is_unchanged && remove_staged(context, table, truncate_table::token(plan)).await?)
            }
            // An enabled table would serve regions without their files.
            Work::DeleteTable(table) => has_archived_nothing(context, table).await,
            Work::DisableTable(_) | Work::ServerCrash { .. } => Ok(false),
            // Nothing remains, or a repetition of the same call continues from what remains.
            Work::CloneSnapshot { plan: None, .. }
            | Work::TruncateTable { plan: None, .. }
            | Work::CreateRegion(_)
            | Work::FlushTable(..)
            | Work::ModifyNamespace(_)
            | Work::DeleteNamespace(_)
            | Work::Snapshot(..)
            | Work::SplitRegion { .. }
            | Work::MergeRegions { .. }
            | Work::RegionTransition(..)
            | Work::GcSplitParent(_)
            | Work::MoveRegion { .. }
            | Work::GcMergeParents(_) => Ok(true),
        }
    }
}

/// Opens the regions that the change of an enabled table has closed and could not reopen.
async fn open_closed_regions(context: &Context, table: &TableName) {
    if context.tables.state(table) == Some(TableState::Enabled) {
        let mut regions = context.assignment.regions_of(table);
        regions.retain(|(_, state)| *state == RegionState::Closed);
        let regions: Vec<RegionInfo> = regions.into_iter().map(|(region, _)| region).collect();
        context.assignment.begin_open_or_retry_later(&regions).await;
    }
}

/// Whether no region of a table lacks its `.regioninfo`: nothing was archived.
async fn is_whole(context: &Context, table: &TableName) -> Result<bool, JavaException> {
    let regions = context.assignment.regions_of(table).into_iter();
    let regions: Vec<RegionInfo> = regions.map(|(region, _)| region).collect();
    context.tables.has_regions(table, &regions).await
}

/// Whether no file of a table's regions can be in the archive because of a deletion. The state of a
/// region without `.regioninfo` is unknown, because it could not be marked.
async fn has_archived_nothing(context: &Context, table: &TableName) -> Result<bool, JavaException> {
    let (fs, root) = (context.tables.fs(), context.tables.root());
    for (region, _) in context.assignment.regions_of(table) {
        let state = root.region_dir_state(fs, &region).await.map_err(file_exception)?;
        if state != RegionDir::Described {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Removes the files of a restore or truncation that has not changed its table yet: for example,
/// the snapshot was deleted after the check. Returns whether that was possible. If not, a part of
/// the table may be in the archive, so it must not be enabled before the procedure is complete.
async fn remove_staged(context: &Context, table: &TableName, token: u64) -> Result<bool, JavaException> {
    let (fs, root) = (context.tables.fs(), context.tables.root());
    if root.is_replacement_staged(fs, table, token).await.map_err(file_exception)? {
        return Ok(false);
    }
    fs.delete(&root.staged_table_dir(table)).await.map_err(|error| file_exception(error.into()))?;
    Ok(true)
}

/// Removes a table that is being created. Returns whether that was possible. `owns_files`: the
/// regions are new, so a directory that contains them belongs to this procedure. The regions of a
/// clone, in contrast, may have the names of an earlier table's regions.
async fn remove_table(context: &Context, plan: &TablePlan, owns_files: bool) -> Result<bool, JavaException> {
    let (tables, name) = (&context.tables, &plan.table.name);
    match context.meta.table_state(name).await? {
        Some(TableState::Enabling) => {
            context.assignment.close(&plan.regions).await?;
            context.archive_table(name).await?;
            context.meta.remove_table(name, &context.assignment.regions_in_meta(name)).await?;
            context.assignment.forget(name);
            tables.forget(name);
            Ok(true)
        }
        Some(_) => Ok(false),
        None => {
            let is_in_place = match owns_files {
                // An earlier attempt may have archived a part of them.
                true => tables.has_any_region_dir(name, &plan.regions).await?,
                false => tables.has_regions(name, &plan.regions).await?,
            };
            if is_in_place && !owns_files {
                return Ok(false);
            }
            if is_in_place {
                context.archive_table(name).await?;
            }
            tables.delete_staged(name).await?;
            // A clone links to MOB files before it has a directory. If there is a directory, it and
            // the MOB files are those of a table that hbase:meta has lost.
            if !owns_files && !tables.has_directory(name).await? {
                tables.archive_mob_links(name).await?;
            }
            context.assignment.forget(name);
            tables.forget(name);
            Ok(true)
        }
    }
}
