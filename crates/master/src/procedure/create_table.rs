//! Creates a table: writes its files and its rows in `hbase:meta`, opens its regions, and enables
//! it.

use cell::schema::TableDescriptor;
use proto::exception::JavaException;

use super::TablePlan;
use super::bring_up::bring_up;
use crate::context::Context;
use crate::refusal;

/// Checks that the table does not exist and that its namespace exists.
pub(super) async fn check(context: &Context, table: &TableDescriptor) -> Result<(), JavaException> {
    context.namespaces.require(table.name.namespace()).await?;
    match context.meta.table_state(&table.name).await? {
        Some(_) => Err(refusal::table_exists(&table.name)),
        None => Ok(()),
    }
}

/// Creates the table. Its files are written under a temporary name and then renamed into place, so
/// that no incomplete table is ever visible. Then one write adds all rows of the table to
/// `hbase:meta`, with the state ENABLING. Finally the regions are opened and the table is enabled.
pub(super) async fn act(context: &Context, plan: &TablePlan) -> Result<(), JavaException> {
    context.tables.create_files(&plan.table, &plan.regions).await?;
    bring_up(context, plan).await
}
