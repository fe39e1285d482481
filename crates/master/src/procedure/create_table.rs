//! Making a table: files, rows of `hbase:meta`, open regions, state ENABLED.

use cell::region::RegionInfo;
use cell::schema::TableDescriptor;
use wire::exception::JavaException;
use wire::meta::TableState;

use crate::context::Context;
use crate::refusal;

/// The table must not exist and its namespace must.
pub(super) async fn check(context: &Context, table: &TableDescriptor) -> Result<(), JavaException> {
    context.tables.require_namespace(&table.name)?;
    match context.meta.table_state(&table.name).await? {
        Some(_) => Err(refusal::table_exists(&table.name)),
        None => Ok(()),
    }
}

/// Makes it. The files come first, under a temporary name and with one rename, so that no half-made table is ever in
/// place; `hbase:meta` then gets all rows at once, the table's state ENABLING among them.
pub(super) async fn act(
    context: &Context,
    table: &TableDescriptor,
    regions: &[RegionInfo],
) -> Result<(), JavaException> {
    context.tables.create_files(table, regions).await?;
    if context.meta.table_state(&table.name).await? != Some(TableState::Enabled) {
        context.meta.add_table(&table.name, regions).await?;
    }
    for region in regions {
        if context.assignment.state(region).is_none() {
            context.assignment.learn(region.clone());
        }
    }
    context.tables.put(table.clone(), TableState::Enabling);
    context.assignment.open(regions).await?;
    context.set_table_state(&table.name, TableState::Enabled).await
}
