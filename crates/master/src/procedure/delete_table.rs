//! Deletes a table: removes its rows in `hbase:meta` and moves its files to the archive.

use cell::schema::TableName;
use proto::exception::JavaException;
use wire::meta::TableState;

use crate::context::Context;
use crate::refusal;

/// Checks that the table is disabled.
pub(super) async fn check(context: &Context, table: &TableName) -> Result<(), JavaException> {
    context.require_user_table(table)?;
    match context.meta.table_state(table).await? {
        Some(TableState::Disabled) => Ok(()),
        Some(state) => Err(refusal::not_disabled(table, state)),
        None => Err(refusal::table_not_found(table)),
    }
}

/// Deletes the table. Its rows in `hbase:meta` are removed last. While they exist, the table is
/// disabled, and the deletion can be requested again. An archive that cannot take the files refuses
/// the deletion before anything has changed.
pub(super) async fn act(context: &Context, table: &TableName) -> Result<(), JavaException> {
    let regions = context.assignment.regions_in_meta(table);
    context.tables.check_archive(table).await?;
    context.archive_table(table).await?;
    context.meta.remove_table(table, &regions).await?;
    context.assignment.forget(table);
    context.tables.forget(table);
    Ok(())
}
