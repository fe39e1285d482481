//! The second half of every procedure that creates a table's regions: from complete files to an
//! enabled table.

use proto::exception::JavaException;
use wire::meta::TableState;

use super::TablePlan;
use crate::context::Context;

/// Writes the table's rows to `hbase:meta`, which replace those of its earlier regions in the same
/// write. Then opens the regions and enables the table. The files must be in place. Continues a
/// previous call that was interrupted.
pub(super) async fn bring_up(context: &Context, plan: &TablePlan) -> Result<(), JavaException> {
    let name = &plan.table.name;
    let known = context.assignment.rows_of(name).into_iter();
    let gone: Vec<_> = known.filter(|region| !plan.regions.contains(region)).collect();
    // In the states ENABLING and ENABLED the rows are written already, and may show that regions
    // are open.
    let is_written =
        matches!(context.meta.table_state(name).await?, Some(TableState::Enabling | TableState::Enabled));
    if !is_written {
        context.meta.put_table(name, &plan.regions, &gone).await?;
    }
    context.assignment.forget_regions(&gone);
    for region in &plan.regions {
        if context.assignment.state(region).is_none() {
            context.assignment.add_from_meta(region.clone());
        }
    }
    context.tables.put((*plan.table).clone(), TableState::Enabling);
    context.assignment.open_or_retry_later(&plan.regions).await?;
    context.set_table_state(name, TableState::Enabled).await
}
