//! The second half of every procedure that makes regions: from files in place to an enabled table.

use wire::exception::JavaException;
use wire::meta::TableState;

use super::Plan;
use crate::context::Context;

/// Writes the table's rows to `hbase:meta`, those of its earlier regions being replaced by those of the plan in one
/// step, opens the regions and enables the table. The files are in place. Done already, in part or in whole: goes on
/// from there.
pub(super) async fn bring_up(context: &Context, plan: &Plan) -> Result<(), JavaException> {
    let name = &plan.table.name;
    let known = context.assignment.rows_of(name).into_iter();
    let gone: Vec<_> = known.filter(|region| !plan.regions.contains(region)).collect();
    // ENABLING and ENABLED say that the rows are there; regions may be open, and their rows say so.
    let is_written =
        matches!(context.meta.table_state(name).await?, Some(TableState::Enabling | TableState::Enabled));
    if !is_written {
        context.meta.put_table(name, &plan.regions, &gone).await?;
    }
    context.assignment.forget_regions(&gone);
    for region in &plan.regions {
        if context.assignment.state(region).is_none() {
            context.assignment.learn(region.clone());
        }
    }
    context.tables.put((*plan.table).clone(), TableState::Enabling);
    context.assignment.open_or_retry_later(&plan.regions).await?;
    context.set_table_state(name, TableState::Enabled).await
}
