//! What becomes of a procedure that cannot succeed or is aborted.
//!
//! Before its point of no return it is rolled back: what it made is removed. After that point some
//! procedures can end where they are, because the same call, made again, does the rest. The others
//! remain, and wait.

use wire::exception::JavaException;
use wire::meta::TableState;

use super::{Plan, Work};
use crate::context::Context;
use crate::namespaces;

impl Work {
    /// Whether it can be aborted after it began to act. Splits, merges and moves of regions roll
    /// back by themselves; a restore moves files that a second restore needs; regions that close
    /// cannot be opened again before they are closed.
    pub(super) fn can_be_aborted(&self) -> bool {
        !matches!(
            self,
            Work::DisableTable(_)
                | Work::RestoreSnapshot { .. }
                | Work::SplitRegion { .. }
                | Work::MergeRegions { .. }
                | Work::Transit(..)
                | Work::TidySplit(_)
                | Work::TidyMerge(_)
        )
    }

    /// Ends it without success, if that leaves a state from which the same call can be made again.
    /// Returns whether it does; otherwise nothing was changed.
    ///
    /// # Errors
    /// What `hbase:meta` or the file system said; can be repeated.
    pub(super) async fn end_without_success(&self, context: &Context) -> Result<bool, JavaException> {
        match self {
            Work::CreateTable(plan) => remove_table(context, plan, true).await,
            Work::CloneSnapshot { plan: Some(plan), .. } => remove_table(context, plan, false).await,
            // In this state the regions that are open are served, and the table can be disabled.
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
            // The table's state is no longer DISABLED once its new regions are in hbase:meta.
            Work::TruncateTable { table, .. } => {
                Ok(context.meta.table_state(table).await? == Some(TableState::Disabled))
            }
            Work::DisableTable(_) | Work::RestoreSnapshot { .. } => Ok(false),
            // Nothing remains, or what remains is what the same call begins with.
            Work::CloneSnapshot { plan: None, .. }
            | Work::CreateRegion(_)
            | Work::DeleteTable(_)
            | Work::FlushTable(..)
            | Work::ModifyTable { .. }
            | Work::ModifyNamespace(_)
            | Work::DeleteNamespace(_)
            | Work::Snapshot(..)
            | Work::SplitRegion { .. }
            | Work::MergeRegions { .. }
            | Work::Transit(..)
            | Work::TidySplit(_)
            | Work::TidyMerge(_) => Ok(true),
        }
    }
}

/// Removes a table that is being made. `owns_files`: its regions are new, so a directory that has
/// them is this procedure's. The regions of a clone have the names of those of an earlier table.
async fn remove_table(context: &Context, plan: &Plan, owns_files: bool) -> Result<bool, JavaException> {
    let (tables, name) = (&context.tables, &plan.table.name);
    match context.meta.table_state(name).await? {
        Some(TableState::Enabling) => {
            context.assignment.close(&plan.regions).await?;
            tables.archive_files(name).await?;
            context.meta.remove_table(name, &context.assignment.rows_of(name)).await?;
            context.assignment.forget(name);
            tables.forget(name);
            Ok(true)
        }
        Some(_) => Ok(false),
        None => {
            let is_in_place = tables.has_regions(name, &plan.regions).await?;
            if is_in_place && !owns_files {
                return Ok(false);
            }
            if is_in_place {
                tables.archive_files(name).await?;
            }
            tables.delete_staged(name).await?;
            context.assignment.forget(name);
            tables.forget(name);
            Ok(true)
        }
    }
}
