//! Creates a table: files, rows in `hbase:meta`, open regions, state ENABLED.

use cell::schema::TableDescriptor;
use proto::exception::JavaException;

use super::TablePlan;
use super::bring_up::bring_up;
use crate::context::Context;
use crate::refusal;

/// The table must not exist, and its namespace must.
pub(super) async fn check(context: &Context, table: &TableDescriptor) -> Result<(), JavaException> {
    context.namespaces.require(table.name.namespace()).await?;
    match context.meta.table_state(&table.name).await? {
        Some(_) => Err(refusal::table_exists(&table.name)),
        None => Ok(()),
    }
}

/// Creates the table. The files are written first, under a temporary name, and renamed into place,
/// so that no incomplete table is ever visible. Then one write adds all rows to `hbase:meta`,
/// including the table's state ENABLING.
pub(super) async fn act(context: &Context, plan: &TablePlan) -> Result<(), JavaException> {
    context.tables.create_files(&plan.table, &plan.regions).await?;
    bring_up(context, plan).await
}
