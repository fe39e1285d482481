//! The last steps of all procedures that create a table's regions: they enable a table whose files
//! are complete.

use proto::exception::JavaException;
use wire::meta::TableState;

use super::TablePlan;
use crate::context::Context;

/// Writes the table's rows to `hbase:meta`, and removes the rows of its earlier regions in the same
/// write. Then opens the regions and enables the table. The table's files must be in place. A
/// repeated call continues where an earlier one was interrupted.
pub(super) async fn bring_up(context: &Context, plan: &TablePlan) -> Result<(), JavaException> {
    let name = &plan.table.name;
    let known = context.assignment.regions_in_meta(name).into_iter();
    let replaced: Vec<_> = known.filter(|region| !plan.regions.contains(region)).collect();
    // In the states ENABLING and ENABLED, the rows have been written and may already show open
    // regions.
    let is_written =
        matches!(context.meta.table_state(name).await?, Some(TableState::Enabling | TableState::Enabled));
    if !is_written {
        context.meta.put_table(name, &plan.regions, &replaced).await?;
    }
    context.assignment.forget_regions(&replaced);
    for region in &plan.regions {
        if context.assignment.state(region).is_none() {
            context.assignment.add_from_meta(region.clone());
        }
    }
    context.tables.put((*plan.table).clone(), TableState::Enabling);
    context.assignment.open_or_retry_later(&plan.regions).await?;
    context.set_table_state(name, TableState::Enabled).await
}
