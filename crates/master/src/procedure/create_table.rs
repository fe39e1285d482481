//! Making a table: files, rows of `hbase:meta`, open regions, state ENABLED.

use cell::schema::TableDescriptor;
use wire::exception::JavaException;

use super::Plan;
use super::bring_up::bring_up;
use crate::context::Context;
use crate::refusal;

/// The table must not exist and its namespace must.
pub(super) async fn check(context: &Context, table: &TableDescriptor) -> Result<(), JavaException> {
    context.namespaces.require(table.name.namespace()).await?;
    match context.meta.table_state(&table.name).await? {
        Some(_) => Err(refusal::table_exists(&table.name)),
        None => Ok(()),
    }
}

/// Makes it. The files come first, under a temporary name and with one rename, so that no half-made table is ever in
/// place; `hbase:meta` then gets all rows at once, the table's state ENABLING among them.
pub(super) async fn act(context: &Context, plan: &Plan) -> Result<(), JavaException> {
    context.tables.create_files(&plan.table, &plan.regions).await?;
    bring_up(context, plan).await
}
